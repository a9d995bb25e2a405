"""The mark below which segments may have been deleted.

A trim is true as soon as it is committed, but the state from which a node restarts may be older.
The mark keeps it from taking what retention deleted for something that was lost.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from angarium.batch.checksum import crc32c_of_bytes
from angarium.ids import Offset
from angarium.log.disk import replace_file
from angarium.log.segments.names import START_MARK

if TYPE_CHECKING:
    from angarium.log.disk import Disk

_MARK: Final = struct.Struct("<8sqI")
_MAGIC: Final = b"ANGSTRT1"
_CRC_START: Final = _MARK.size - 4


def write_start_mark(disk: Disk, folder: str, offset: Offset) -> None:
    """Make it durable that nothing below `offset` is needed any more."""
    body = _MARK.pack(_MAGIC, offset, 0)[:_CRC_START]
    mark = body + crc32c_of_bytes(body).to_bytes(4, "little")
    replace_file(disk, f"{folder}/{START_MARK}", mark)


def read_start_mark(disk: Disk, folder: str) -> Offset:
    """Return the mark; zero if there is none. A damaged one counts as none.

    Then segments that were rightly deleted are reported as damage: an alarm too many, which the
    owner silences by copying from a peer, never one too few.
    """
    try:
        file = disk.open(f"{folder}/{START_MARK}")
    except FileNotFoundError:
        return Offset(0)
    try:
        data = file.pread(_MARK.size, 0)
    finally:
        file.close()
    if len(data) != _MARK.size:
        return Offset(0)
    magic, offset, crc = _MARK.unpack(data)
    intact = magic == _MAGIC and crc32c_of_bytes(data[:_CRC_START]) == crc
    return Offset(offset) if intact else Offset(0)
