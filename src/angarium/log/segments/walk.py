"""Walking along a whole segment file from its beginning.

It opens nothing and keeps nothing, so it may run in a thread beside the readers of the same file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.errors import CorruptData
from angarium.log.segments.frames import GAP_BYTES, frame_at, is_intact
from angarium.log.segments.names import SEGMENT, file_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.log.disk import Disk, File
    from angarium.log.segments.frames import Frame
    from angarium.log.segments.segment import Segment

CHUNK_BYTES: Final = 1 << 20
"""Bytes read at a time; a longer frame is read whole."""


def frames_of(disk: Disk, folder: str, segment: Segment) -> Iterator[tuple[Frame, memoryview]]:
    """Do as `frames_in`, with the segment's file; `CorruptData` as well if that is lost."""
    try:
        file = disk.open(file_name(folder, segment.base_offset, SEGMENT))
    except FileNotFoundError:
        raise CorruptData(f"segment {segment.base_offset} is lost") from None
    try:
        yield from frames_in(file, segment)
    finally:
        file.close()


def frames_in(file: File, segment: Segment) -> Iterator[tuple[Frame, memoryview]]:
    """Yield what has been written of a segment, frame by frame, each with its bytes.

    Both checksums of every frame are verified; `CorruptData` at the first one that is not whole.
    """
    end = segment.written.position
    position, offset = 0, segment.base_offset
    chunk, start = b"", 0
    while position < end:
        at = position - start
        frame = frame_at(chunk, at)
        if frame is None or at + frame.length > len(chunk):
            needed = GAP_BYTES if frame is None else frame.length
            if at == 0 and len(chunk) >= needed:
                raise CorruptData(f"segment {segment.base_offset} is damaged at {offset}")
            chunk, start = (
                file.pread(min(max(needed, CHUNK_BYTES), end - position), position),
                position,
            )
            if len(chunk) < needed:
                raise CorruptData(f"segment {segment.base_offset} ends at {offset}")
            continue
        if frame.base_offset != offset or not is_intact(chunk, at, frame):
            raise CorruptData(f"segment {segment.base_offset} is damaged at {offset}")
        yield frame, memoryview(chunk)[at : at + frame.length]
        position += frame.length
        offset = frame.next_offset
