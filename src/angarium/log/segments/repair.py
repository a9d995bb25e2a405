"""Putting good frames, fetched from a peer, where this replica's own are damaged.

Replicas hold the same bytes, so a repair writes in place. Into a sealed segment it writes exactly
the bytes between two index points, and only if they fit the checksums of these points. A segment
that is broken off is continued frame by frame until it is complete. A crash in the middle leaves
damage that the next reader or the next opening finds again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.batch.checksum import extend
from angarium.errors import CorruptData, InvalidArgument
from angarium.log.segments.footer import write_footer
from angarium.log.segments.frames import frame_at, gap_frames, is_intact, latest_times
from angarium.log.segments.names import SEGMENT, file_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.ids import Buffer, Offset
    from angarium.log.disk import Disk, File
    from angarium.log.segments.config import SegmentConfig
    from angarium.log.segments.frames import Frame
    from angarium.log.segments.index import Point
    from angarium.log.segments.reader import SegmentReader
    from angarium.log.segments.segment import Segment, SegmentDamage


def patch(
    disk: Disk,
    folder: str,
    reader: SegmentReader,
    segment: Segment,
    damage: SegmentDamage,
    frames: Iterable[Buffer],
) -> bool:
    """Overwrite the damaged bytes of a sealed segment by good ones that fit its checksums.

    False says that `frames` end before the damage does, and that nothing was changed.
    """
    index = reader.index(segment)
    first = index.row_of_offset(damage.from_offset)
    start, stamps = index[first], index.stamps(first)
    if damage.to_offset == segment.next_offset:
        end, stamps_end = segment.written, segment.stamps
    else:
        last = index.row_of_offset(damage.to_offset)
        end, stamps_end = index[last], index.stamps(last)
    kept = _kept(reader, segment, start, index.offset(first), damage.from_offset)
    added = _checked(frames, start=damage.from_offset, end=damage.to_offset)
    if not added or added[-1][0].next_offset != damage.to_offset:
        return False
    # The checksums that were sealed with the segment decide. A peer's frames are written only if
    # the file becomes, byte for byte, what it was.
    wanted = (*end, stamps_end)
    good = b"".join(data for _, data in (*kept, *added))
    if _summed(start, stamps, (*kept, *added)) != wanted:
        # Gaps that compaction has left may be cut elsewhere in the peer's segments.
        added = _with_whole_gaps(added)
        good = b"".join(data for _, data in (*kept, *added))
    if _summed(start, stamps, (*kept, *added)) != wanted:
        raise CorruptData(
            f"segment {segment.base_offset}: the frames offered for [{damage.from_offset}, "
            f"{damage.to_offset}) are not those that were there"
        )
    file = _opened(disk, folder, segment)
    try:
        # In place, between two points of the index: a crash in between leaves damage where damage
        # was.
        file.pwrite([good], start.position)
        file.datasync()
    finally:
        file.close()
    return True


def extend_broken(
    disk: Disk, folder: str, config: SegmentConfig, segment: Segment, frames: Iterable[Buffer]
) -> None:
    """Go on behind the whole part of a broken segment; once it is complete it is sealed."""
    assert segment.whole_until is not None
    until = segment.next_offset
    added = _checked(frames, start=segment.whole_until, end=until)
    file = _opened(disk, folder, segment)
    try:
        file.pwrite([data for _, data in added], segment.bytes)
        segment.next_offset = segment.whole_until
        for frame, data in added:
            segment.add(frame, crc=extend(segment.crc, data), index_bytes=config.index_bytes)
            if not frame.is_gap:
                segment.note_times(*latest_times(data, 0))
        segment.break_off(until)
        if segment.whole_until == until:
            # Complete: what lies behind is rest of the damage.
            file.truncate(segment.bytes)
            file.datasync()
            write_footer(disk, folder, segment)
            segment.whole_until = None
            segment.is_sealed = True
    finally:
        file.close()


def _summed(
    start: Point, stamps: int, frames: Iterable[tuple[Frame, bytes]]
) -> tuple[int, int, int]:
    """Return where frames from a point on end, with both checksums."""
    position, crc = start
    for frame, data in frames:
        position, crc = position + len(data), extend(crc, data)
        stamps = extend(stamps, frame.stamp_crc.to_bytes(4, "little"))
    return position, crc, stamps


def _with_whole_gaps(frames: Iterable[tuple[Frame, bytes]]) -> list[tuple[Frame, bytes]]:
    """Return frames in which neighbouring gaps are one."""
    whole: list[tuple[Frame, bytes]] = []
    for frame, data in frames:
        if whole and frame.is_gap and whole[-1][0].is_gap:
            start = whole.pop()[0].base_offset
            whole += _gaps(start, frame.next_offset)
        else:
            whole.append((frame, data))
    return whole


def _gaps(start: Offset, end: Offset) -> list[tuple[Frame, bytes]]:
    found = []
    for data in gap_frames(start, end):
        frame = frame_at(data, 0)
        assert frame is not None
        found.append((frame, data))
    return found


def _checked(frames: Iterable[Buffer], *, start: Offset, end: Offset) -> list[tuple[Frame, bytes]]:
    """Return the frames that lie in `[start, end)`; they must be whole and leave no hole."""
    inside: list[tuple[Frame, bytes]] = []
    for buffer in frames:
        data = bytes(buffer)
        frame = frame_at(data, 0)
        if frame is None or frame.length != len(data) or not is_intact(data, 0, frame):
            raise InvalidArgument("a repair takes single, whole frames")
        if frame.next_offset <= start or frame.base_offset >= end:
            continue
        expected = inside[-1][0].next_offset if inside else start
        if frame.is_gap and frame.base_offset <= expected:
            # Gaps hold nothing: of one that is wider than the damage the part in it is taken.
            inside += _gaps(expected, min(frame.next_offset, end))
            continue
        if frame.base_offset != expected or frame.next_offset > end:
            raise InvalidArgument(
                f"a repair goes on at offset {expected}, not at {frame.base_offset}"
            )
        inside.append((frame, data))
    return inside


def _kept(
    reader: SegmentReader, segment: Segment, start: Point, offset: Offset, until: Offset
) -> list[tuple[Frame, bytes]]:
    """Return the whole frames between a point and the damage behind it."""
    chunk = reader.raw(segment, start.position, segment.written.position - start.position)
    kept: list[tuple[Frame, bytes]] = []
    position = 0
    while offset < until:
        frame = frame_at(chunk, position)
        if frame is None or not is_intact(chunk, position, frame):
            raise reader.found_at(segment, start.position)  # more than was known before
        kept.append((frame, chunk[position : position + frame.length]))
        position += frame.length
        offset = frame.next_offset
    return kept


def _opened(disk: Disk, folder: str, segment: Segment) -> File:
    """Return the segment's file for writing, made if it is lost."""
    name = file_name(folder, segment.base_offset, SEGMENT)
    try:
        return disk.open(name)
    except FileNotFoundError:
        file = disk.create(name)
        disk.sync_directory(folder)
        return file
