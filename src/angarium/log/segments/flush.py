"""Writing what waits in memory to the segment files, in three steps.

`take` (on the loop) fixes what is to be written, `write` (in a thread, if the owner likes) does
everything that blocks, and `flushed` (on the loop) lets go of the memory. Writing the same flush
twice leaves the same bytes, so a flush that met a full disk is simply tried again.

The order of writes is what recovery relies on: a segment is sealed, with bytes and footer durable,
before the file of the next one is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from angarium.log.segments.delay_file import write_delays
from angarium.log.segments.footer import write_footer
from angarium.log.segments.index import Point
from angarium.log.segments.names import SEGMENT, file_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from angarium.ids import Buffer, Offset
    from angarium.log.disk import Disk, File
    from angarium.log.segments.config import SegmentConfig
    from angarium.log.segments.segment import Segment
    from angarium.log.segments.tail import Run


@dataclass(slots=True)
class SegmentWrite:
    """What one flush does to one segment."""

    segment: Segment
    position: int
    end: Point
    buffers: list[Buffer] = field(default_factory=list)
    seals: bool = False


@dataclass(frozen=True, slots=True)
class Flush:
    """Batches on their way to the disk. At most one is on its way at a time."""

    writes: Sequence[SegmentWrite]
    runs: int
    """How many runs of the tail it covers."""
    end_offset: Offset
    """The log's end once this is written."""
    sync: bool
    """Whether it is to survive a power cut when `write` returns."""


def planned_writes(
    runs: Iterable[Run], rolled: Iterable[Segment], active: Segment | None
) -> list[SegmentWrite]:
    """Return the writes that bring `runs` to disk and seal the `rolled` segments, in order.

    The active segment is among them even without new bytes, because it may have to be synced.
    """
    writes: dict[Offset, SegmentWrite] = {}
    for segment in (*rolled, *(() if active is None else (active,))):
        writes[segment.base_offset] = SegmentWrite(
            segment, segment.written.position, segment.written, seals=segment.is_rolled
        )
    for run in runs:
        write = writes[run.segment.base_offset]
        write.buffers += run.buffers
        write.end = Point(run.position + run.length, run.crc)
    return [write for write in writes.values() if write.buffers or write.seals or write.position]


def perform(disk: Disk, folder: str, config: SegmentConfig, flush: Flush) -> None:
    """Write everything in `flush`; raises `DiskFull` or, fatally, `SyncFailed`."""
    for write in flush.writes:
        segment = write.segment
        file = _writer(disk, folder, segment)
        if write.buffers:
            # A full disk shows before the first byte is written, and not in the middle of a batch.
            _reserve(file, segment, write.end.position, config)
            file.pwrite(write.buffers, write.position)
        if write.seals:
            file.truncate(write.end.position)
            segment.allocated = write.end.position
        if write.seals or flush.sync:
            # Before the footer, which says that the whole segment is sound.
            file.datasync()
        if write.seals:
            if segment.delays is not None:
                write_delays(disk, folder, segment, segment.delays)
            write_footer(disk, folder, segment)
            file.close()
            segment.writer = None


def _writer(disk: Disk, folder: str, segment: Segment) -> File:
    """Return the segment's file for writing, made if need be, under a name that will last."""
    if segment.writer is not None:
        return segment.writer
    name = file_name(folder, segment.base_offset, SEGMENT)
    try:
        segment.writer = disk.open(name)
    except FileNotFoundError:
        segment.writer = disk.create(name)
    disk.sync_directory(folder)
    segment.allocated = segment.writer.size()
    return segment.writer


def _reserve(file: File, segment: Segment, length: int, config: SegmentConfig) -> None:
    """Make sure the file has room for `length` bytes before any of them is written."""
    if length <= segment.allocated:
        return
    step = config.preallocate_bytes
    wanted = max(min(-(-length // step) * step, config.segment_bytes), length)
    file.preallocate(wanted)
    segment.allocated = wanted
