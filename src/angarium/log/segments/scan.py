"""Reading a segment file from its beginning and believing nothing: both checksums of every frame,
and that each one starts at the offset where the one before ended.

The scan stops at the first frame that is not whole. It never searches for a later one: bytes that
look like a batch may be part of somebody's record, and only the index of a sealed segment knows
where frames really begin.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.batch.checksum import extend
from angarium.log.segments.frames import GAP_BYTES, frame_at, is_intact, latest_times
from angarium.log.segments.index import Point
from angarium.log.segments.segment import Segment

if TYPE_CHECKING:
    from angarium.ids import Offset
    from angarium.log.disk import File

_CHUNK_BYTES: Final = 1 << 20
"""Bytes read at a time; a longer frame is read whole."""


class Tail(Enum):
    """What lies behind the last whole frame."""

    END = "end"
    """Nothing: the file ends there."""
    ZEROS = "zeros"
    """Preallocated room that was never written."""
    BROKEN = "broken"
    """Bytes that are not a whole frame: a torn write, or damage."""


class Scanned(NamedTuple):
    """What a scan found: the segment up to the last whole frame, and what follows it."""

    segment: Segment
    tail: Tail
    stamps: dict[Offset, int]
    """Of frames from `remember_from` on, the stamp's checksum by base offset."""


class Scan:
    """A scan that goes on as the file grows: what was verified is not read again."""

    __slots__ = (
        "_file",
        "_index_bytes",
        "_remember_from",
        "_until",
        "is_over",
        "segment",
        "stamps",
    )

    def __init__(
        self,
        file: File,
        base_offset: Offset,
        *,
        index_bytes: int,
        until: Offset | None = None,
        remember_from: Offset | None = None,
    ) -> None:
        self.segment: Final = Segment(base_offset)
        """What has been verified."""
        self.stamps: Final[dict[Offset, int]] = {}
        self.is_over = False
        """True when the next frame is not one that belongs there: more bytes change nothing."""
        self._file = file
        self._index_bytes = index_bytes
        self._until = until
        self._remember_from = remember_from

    def go_on(self, size: int) -> None:
        """Verify the frames that are whole within the first `size` bytes of the file."""
        segment, until, index = self.segment, self._until, self.segment.index
        assert index is not None
        chunk = b""
        # The chunk's position in the file; positions within the chunk.
        start, position, block = segment.bytes, 0, 0
        while not self.is_over and segment.next_offset != until:
            frame = frame_at(chunk, position)
            here = start + position
            if frame is None and len(chunk) - position >= GAP_BYTES:
                self.is_over = True
                break
            if frame is None or position + frame.length > len(chunk):
                needed = GAP_BYTES if frame is None else frame.length
                if needed > size - here:
                    break
                segment.crc = extend(segment.crc, chunk[block:position])
                chunk = self._file.pread(min(max(needed, _CHUNK_BYTES), size - here), here)
                start, position, block = here, 0, 0
                if len(chunk) < needed:
                    break
                continue
            fits = frame.base_offset == segment.next_offset and is_intact(chunk, position, frame)
            if not fits or (until is not None and frame.next_offset > until):
                self.is_over = True
                break
            if segment.bytes - index.last_position() >= self._index_bytes:
                segment.crc = extend(segment.crc, chunk[block:position])
                block = position
            segment.add(frame, crc=segment.crc, index_bytes=self._index_bytes)
            if not frame.is_gap:
                segment.note_times(*latest_times(chunk, position))
            if self._remember_from is not None and frame.next_offset > self._remember_from:
                self.stamps[frame.base_offset] = frame.stamp_crc
            position += frame.length
        segment.crc = extend(segment.crc, chunk[block:position])
        segment.written = Point(segment.bytes, segment.crc)
        segment.allocated = self._file.size()


def scan(
    file: File,
    base_offset: Offset,
    *,
    index_bytes: int,
    length: int | None = None,
    until: Offset | None = None,
    remember_from: Offset | None = None,
) -> Scanned:
    """Verify the frames of a file, of its first `length` bytes, or of those below `until`."""
    size = file.size() if length is None else min(length, file.size())
    under_way = Scan(
        file, base_offset, index_bytes=index_bytes, until=until, remember_from=remember_from
    )
    under_way.go_on(size)
    segment = under_way.segment
    return Scanned(segment, _tail(file, segment.bytes, size), under_way.stamps)


def _tail(file: File, position: int, size: int) -> Tail:
    if position >= size:
        return Tail.END
    while position < size:
        chunk = file.pread(min(_CHUNK_BYTES, size - position), position)
        if chunk.count(0) != len(chunk):
            return Tail.BROKEN
        position += max(len(chunk), 1)
    return Tail.ZEROS
