"""How far a partition's files have been compacted: a mark beside the segments.

A pass is written down before it changes the first segment and after it has changed the last. Where
the two differ, the log is between two passes: its first segments are further than the others.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.batch.checksum import crc32c_of_bytes
from angarium.ids import Micros, Offset
from angarium.log.disk import replace_file
from angarium.log.segments.names import COMPACTED_MARK

if TYPE_CHECKING:
    from angarium.log.disk import Disk

_MARK: Final = struct.Struct("<8sqqqqI")
_MAGIC: Final = b"ANGCOMP1"
_CRC_START: Final = _MARK.size - 4


class Pass(NamedTuple):
    """What a compaction is to reach."""

    until: Offset = Offset(0)
    """Below it only the latest record of each key stays. It lies between two batches."""
    tombstones_before: Micros = Micros(0)
    """Below it records with a null value go if they were appended before this time."""


class Stage(NamedTuple):
    """Where a log stands."""

    done: Pass = Pass()
    begun: Pass = Pass()
    """The pass under way; the one that is done if there is none."""

    @property
    def is_between(self) -> bool:
        """Whether a pass is under way."""
        return self.done != self.begun


def write_compacted_mark(disk: Disk, folder: str, stage: Stage) -> None:
    """Make it durable where the log stands."""
    body = _MARK.pack(_MAGIC, *stage.done, *stage.begun, 0)[:_CRC_START]
    mark = body + crc32c_of_bytes(body).to_bytes(4, "little")
    replace_file(disk, f"{folder}/{COMPACTED_MARK}", mark)


def read_compacted_mark(disk: Disk, folder: str) -> Stage:
    """Return where the log stands; at the beginning if there is no mark, or a damaged one.

    Then everything is looked at once more, which changes nothing that was right.
    """
    try:
        file = disk.open(f"{folder}/{COMPACTED_MARK}")
    except FileNotFoundError:
        return Stage()
    try:
        data = file.pread(_MARK.size, 0)
    finally:
        file.close()
    if len(data) != _MARK.size or crc32c_of_bytes(data[:_CRC_START]) != _MARK.unpack(data)[5]:
        return Stage()
    magic, until, before, begun_until, begun_before, _ = _MARK.unpack(data)
    if magic != _MAGIC:
        return Stage()
    return Stage(
        Pass(Offset(until), Micros(before)), Pass(Offset(begun_until), Micros(begun_before))
    )
