"""The end of a partition's log: where batches come in, and how they get to disk.

An appended batch is in memory, at its position in a segment, with the segment's checksum known. A
flush writes what waits there. Nothing here blocks but `write` and `sync`.

Small batches that come together, one from each of many publishers, are taken in one go: looked at
column by column instead of one by one.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from angarium.batch.checksum import extend
from angarium.batch.layout import AT_ONCE, CHECKED_START, HEADER_BYTES, MAGIC, STAMP_CRC
from angarium.errors import CorruptData, InvalidArgument, LimitExceeded
from angarium.log.segments.flush import Flush, perform, planned_writes
from angarium.log.segments.frames import Frame, frame_at, gap_frames, latest_times, stamped
from angarium.log.segments.segment import NO_TIME, Segment
from angarium.log.segments.tail import MemoryTail, Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import Buffer, Offset
    from angarium.log.disk import Disk
    from angarium.log.segments.config import SegmentConfig
    from angarium.log.segments.reader import SegmentReader
    from angarium.log.segments.recovery import Recovery
    from angarium.log.segments.segments import SegmentList


class LogEnd:
    """The active segment, what waits to be written, and the flush that is under way."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        config: SegmentConfig,
        segments: SegmentList,
        reader: SegmentReader,
        found: Recovery,
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._config = config
        self._segments = segments
        self._reader = reader
        self._stamps = found.stamps
        self._rolled: list[Segment] = []
        self._flush: Flush | None = None
        last = segments.last
        self._active = None if last is None or last.is_rolled else last
        self.tail = MemoryTail()
        self.offset = self.written_offset = found.end_offset
        # Of the active segment the process before may have left bytes that were never synced.
        self.synced_offset = found.end_offset if self._active is None else found.synced_offset

    # --- appending --------------------------------------------------------------------------

    def append(self, batches: Sequence[Buffer]) -> None:
        """See `PartitionLog.append`."""
        size = sum(map(len, batches))
        # One append of any size when nothing waits, so that no committed batch can be refused for
        # ever.
        if self.tail.runs and self.tail.bytes + size > self._config.unflushed_bytes_max:
            raise LimitExceeded("unflushed_bytes_max", "flush the segments, then append again")
        if len(batches) > 1 and self._add_run(batches, size):
            return
        for buffer in batches:
            frame = frame_at(buffer, 0)
            if frame is None or frame.is_gap or frame.length != len(buffer):
                raise InvalidArgument("only single, whole batches can be appended")
            if frame.base_offset == self.offset:
                self._add(frame, buffer)
            elif frame.base_offset < self.offset:
                # After a restart the write-ahead log brings batches again that the segments have
                # already. They are the same bytes, or this replica has diverged, which must not be
                # passed over.
                self._compare(frame)
            else:
                raise InvalidArgument(
                    f"a batch at offset {frame.base_offset} leaves a gap after {self.offset}; "
                    "gaps are declared by skip_to"
                )

    def skip_to(self, offset: Offset) -> None:
        """See `PartitionLog.skip_to`."""
        for buffer in gap_frames(self.offset, offset):
            frame = frame_at(buffer, 0)
            assert frame is not None
            self._add(frame, buffer)

    def roll(self) -> Segment:
        """Start a new segment at the end; the one before is sealed by the next flush."""
        last = self._segments.last
        if self._active is not None:
            self._active.is_rolled = True
            self._rolled.append(self._active)
        time = NO_TIME if last is None else last.last_time
        segment = self._active = Segment(self.offset, last_time=time)
        self._segments.add(segment)
        return segment

    def _add_run(self, batches: Sequence[Buffer], size: int) -> bool:
        """Take small batches in one go; False, with nothing done, if any wants a closer look."""
        config, segment, start = self._config, self._active, self.offset
        if segment is None or not segment.batches or size > config.index_bytes:
            return False
        sizes = tuple(map(len, batches))
        if min(sizes) < HEADER_BYTES:
            return False
        magics, bases, times, lengths, counts, spans, expiries, deliveries = zip(
            *map(stamped, batches), strict=True
        )
        *expected, end = accumulate(spans, initial=start)
        if (
            # Each of these is what `_add` would look at frame by frame. Any doubt, and it does.
            magics.count(MAGIC) != len(magics)
            or lengths != sizes
            or bases != tuple(expected)
            or min(spans) < 1
            or min(times) < 1
            or max(deliveries) > 0
            or segment.bytes + size > config.segment_bytes
            or max(times) - segment.first_time > config.segment_age_micros
        ):
            return False
        position = segment.bytes
        segment.point_if_due(offset=start, time=times[0], index_bytes=config.index_bytes)
        stamps = b"".join([buffer[STAMP_CRC:CHECKED_START] for buffer in batches])
        segment.add_run(
            batches=len(batches),
            records=sum(counts),
            length=size,
            next_offset=end,
            last_time=times[-1],
            crc=extend(segment.crc, b"".join(batches)),
            stamps=extend(segment.stamps, stamps),
        )
        segment.note_times(max(expiries), AT_ONCE)
        self._added(Run(start, end, list(batches), size, segment, position, segment.crc))
        return True

    def _add(self, frame: Frame, buffer: Buffer) -> None:
        segment = self._active
        if segment is None or self._is_full(segment, frame):
            segment = self.roll()
        data = buffer if isinstance(buffer, bytes) else bytes(buffer)
        position, crc = segment.bytes, extend(segment.crc, data)
        segment.add(frame, crc=crc, index_bytes=self._config.index_bytes)
        if not frame.is_gap:
            expires_at, deliver_at = latest_times(data, 0)
            segment.note_times(expires_at, deliver_at)
            if deliver_at:
                segment.note_delays(data)
        self._added(
            Run(
                frame.base_offset,
                frame.next_offset,
                [buffer],
                frame.length,
                segment,
                position,
                crc,
            )
        )

    def _added(self, run: Run) -> None:
        self.tail.add(run)
        self.offset = run.next_offset
        if self._stamps:
            self._stamps = {}  # the write-ahead log has caught up

    def _is_full(self, segment: Segment, frame: Frame) -> bool:
        if segment.bytes == 0:
            return False
        if segment.bytes + frame.length > self._config.segment_bytes:
            return True
        age = frame.append_time - segment.first_time
        return segment.batches > 0 and not frame.is_gap and age > self._config.segment_age_micros

    def _compare(self, frame: Frame) -> None:
        """Raise if a batch that came again is not the one that is stored, where that is known."""
        stored = self.tail.stamp_crc(frame.base_offset)
        if stored is None:
            stored = self._stamps.get(frame.base_offset)
        if frame.next_offset > self.offset or stored not in {None, frame.stamp_crc}:
            raise CorruptData(
                f"the batch at offset {frame.base_offset} differs from the one stored: "
                "this replica has diverged"
            )

    # --- flushing ---------------------------------------------------------------------------

    def take(self, *, sync: bool) -> Flush | None:
        """See `PartitionLog.take`."""
        # One flush at a time: positions in the files are given out when it is taken.
        if self._flush is not None:
            return None
        is_unsynced = sync and self.synced_offset < self.offset
        if not self.tail.runs and not self._rolled and not is_unsynced:
            return None
        writes = planned_writes(self.tail.runs, self._rolled, self._active)
        self._flush = Flush(writes, len(self.tail.runs), self.offset, sync)
        return self._flush

    def write(self, flush: Flush) -> None:
        """See `PartitionLog.write`."""
        perform(self._disk, self._folder, self._config, flush)

    def flushed(self, flush: Flush) -> None:
        """See `PartitionLog.flushed`."""
        self.failed(flush)
        for write in flush.writes:
            segment = write.segment
            segment.written = write.end
            if write.seals:
                segment.is_sealed = True
                segment.delays = None  # a file has them
                self._rolled.remove(segment)
                self._reader.keep_index(segment)
                # A seal syncs its segment, whatever the flush as a whole was asked to do.
                self.synced_offset = max(self.synced_offset, segment.next_offset)
        # Only now: until the bytes are in the file, readers find them in memory.
        self.tail.drop_first(flush.runs)
        self.written_offset = flush.end_offset
        # Not without: a write that is not synced can be lost with the power, and the write-ahead
        # log must keep what it has until then. Planted as
        # segments-not-synced-before-the-log-is-freed.
        if flush.sync:
            self.synced_offset = flush.end_offset

    def failed(self, flush: Flush) -> None:
        """See `PartitionLog.failed`."""
        assert flush is self._flush, "one flush at a time"
        self._flush = None

    def sync(self) -> None:
        """See `PartitionLog.sync`."""
        assert self._flush is None, "one flush at a time"
        flush = self.take(sync=True)
        if flush is None:
            return
        try:
            self.write(flush)
        except BaseException:
            self.failed(flush)
            raise
        self.flushed(flush)

    # --- letting go -------------------------------------------------------------------------

    def seal(self, segment: Segment) -> None:
        """Make sure that `segment` takes no more appends and is wholly on disk."""
        if segment is self._active:
            self.roll()
        if segment in self._rolled:
            self.sync()

    def is_done_with(self, segment: Segment) -> bool:
        """Tell whether nothing of `segment` waits to be written or is being written."""
        if segment is self._active:
            return self._flush is None and segment.written.position == segment.bytes
        return segment not in self._rolled

    def forget(self, segment: Segment) -> None:
        """Let go of a segment that is to be deleted."""
        if segment.writer is not None:
            segment.writer.close()
            segment.writer = None
        if segment is self._active:
            self._active = None
