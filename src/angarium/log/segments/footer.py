"""The footer of a sealed segment: a small file beside it that says what the segment must be.

It is written after the segment's bytes are durable, so a footer that is there and intact vouches
for length and checksum. Opening a log reads only the fixed head of each footer; the index behind
it is read when somebody asks for an offset in that segment. Both have a checksum of their own. A
lost or damaged footer is rebuilt from the segment.

The head leaves room for later side files: it has the latest `deliver_at` of the segment, so that
a search for delayed records knows which segments hold any.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from angarium.batch.checksum import crc32c, crc32c_of_bytes
from angarium.ids import Micros, Offset
from angarium.log.disk import replace_file
from angarium.log.segments.index import Point, SparseIndex
from angarium.log.segments.names import FOOTER, file_name
from angarium.log.segments.segment import Segment

if TYPE_CHECKING:
    from angarium.log.disk import Disk

MAGIC: Final = b"ANGFOOT1"

_HEAD: Final = struct.Struct("<8s10qIIII")
"""Magic; base offset, next offset, bytes, batches, records, first time, last time, latest expiry,
latest delivery, length of the index; checksums of the segment, the index, the stamps, the head."""
HEAD_BYTES: Final = _HEAD.size
_CRC_START: Final = HEAD_BYTES - 4


def write_footer(disk: Disk, folder: str, segment: Segment, *, suffix: str = FOOTER) -> None:
    """Put the footer of a segment whose bytes are durable beside it, atomically."""
    assert segment.index is not None
    index = segment.index.encode()
    head = _HEAD.pack(
        MAGIC,
        segment.base_offset,
        segment.next_offset,
        segment.bytes,
        segment.batches,
        segment.records,
        segment.first_time,
        segment.last_time,
        segment.expires_at_max,
        segment.deliver_at_max,
        len(index),
        segment.crc,
        crc32c_of_bytes(index),
        segment.stamps,
        0,
    )[:_CRC_START]
    checksum = crc32c_of_bytes(head).to_bytes(4, "little")
    replace_file(disk, file_name(folder, segment.base_offset, suffix), head + checksum + index)


def read_footer(disk: Disk, folder: str, base_offset: Offset) -> Segment | None:
    """Return the sealed segment a footer describes, its index not yet loaded; None without one.

    A footer that is damaged, or is another segment's, counts as none.
    """
    head = _read(disk, folder, base_offset, HEAD_BYTES, 0)
    fields = _checked_head(head)
    if fields is None or fields[1] != base_offset:
        return None
    segment = Segment(base_offset)
    segment.index = None
    segment.next_offset = Offset(fields[2])
    segment.bytes, segment.batches, segment.records = fields[3:6]
    segment.first_time, segment.last_time = Micros(fields[6]), Micros(fields[7])
    segment.expires_at_max, segment.deliver_at_max = Micros(fields[8]), Micros(fields[9])
    segment.crc, segment.stamps = fields[11], fields[13]
    segment.written = Point(segment.bytes, segment.crc)
    segment.is_rolled = segment.is_sealed = True
    return segment


def read_index(disk: Disk, folder: str, base_offset: Offset) -> SparseIndex | None:
    """Return the index from a footer, or None if it is not there or damaged."""
    head = _read(disk, folder, base_offset, HEAD_BYTES, 0)
    fields = _checked_head(head)
    if fields is None:
        return None
    length, checksum = fields[10], fields[12]
    data = _read(disk, folder, base_offset, length, HEAD_BYTES)
    if len(data) != length or crc32c(data) != checksum:
        return None
    return SparseIndex.decode(data)


def _checked_head(head: bytes) -> tuple[int, ...] | None:
    if len(head) != HEAD_BYTES:
        return None
    fields: tuple[int, ...] = _HEAD.unpack(head)
    intact = crc32c_of_bytes(head[:_CRC_START]) == fields[14]
    return fields if intact and head.startswith(MAGIC) else None


def _read(disk: Disk, folder: str, base_offset: Offset, length: int, position: int) -> bytes:
    try:
        file = disk.open(file_name(folder, base_offset, FOOTER))
    except FileNotFoundError:
        return b""
    try:
        return file.pread(length, position)
    finally:
        file.close()
