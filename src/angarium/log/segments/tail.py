"""Batches that have been appended and not yet written: readers see them at once, from memory.

They are kept in *runs*: what one append brought into one segment, with no point of the index
inside. Many small batches that come together so cost hardly more than one.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from angarium.log.segments.frames import GAP_BYTES, frame_at, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import Buffer, Micros, Offset
    from angarium.log.segments.frames import Frame
    from angarium.log.segments.segment import Segment


class Run(NamedTuple):
    """Frames in memory that follow one another, with their position in a segment."""

    base_offset: Offset
    next_offset: Offset
    buffers: list[Buffer]
    """A frame each."""
    length: int
    segment: Segment
    position: int
    crc: int
    """The segment's checksum with this run included."""

    def frames(self) -> Iterator[Frame]:
        """Yield what each frame says of itself."""
        for buffer in self.buffers:
            frame = frame_at(buffer, 0)
            assert frame is not None, "it was looked at when it came"
            yield frame


class MemoryTail:
    """The runs behind what has been written, in the order of their offsets."""

    __slots__ = ("_bases", "bytes", "runs")

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.bytes = 0
        self._bases: list[Offset] = []

    def add(self, run: Run) -> None:
        """Put a run behind all others."""
        self.runs.append(run)
        self._bases.append(run.base_offset)
        self.bytes += run.length

    def drop_first(self, count: int) -> None:
        """Let go of the first `count` runs: they have been written."""
        self.bytes -= sum([run.length for run in self.runs[:count]])
        del self.runs[:count]
        del self._bases[:count]

    def read(self, offset: Offset, bytes_max: int, *, gaps: bool = False) -> list[memoryview]:
        """Return whole batches from the one that holds `offset` on, at least one if any.

        With `gaps`, the frames that declare gaps are among them.
        """
        batches: list[memoryview] = []
        total = 0
        for number in range(self._run_of(offset), len(self.runs)):
            for buffer in self.runs[number].buffers:
                base, length, span = walk(buffer)
                if base + span <= offset or (length == GAP_BYTES and not gaps):
                    continue
                total += length
                if total > bytes_max and batches:
                    return batches
                batches.append(memoryview(buffer))
        return batches

    def first_at_time(self, time: Micros) -> Offset | None:
        """Return the base offset of the first batch appended at `time` or later."""
        for run in self.runs:
            for frame in run.frames():
                if not frame.is_gap and frame.append_time >= time:
                    return frame.base_offset
        return None

    def time_at(self, offset: Offset) -> Micros | None:
        """Return the append time of the first batch that ends behind `offset`."""
        for number in range(self._run_of(offset), len(self.runs)):
            for frame in self.runs[number].frames():
                if not frame.is_gap and frame.next_offset > offset:
                    return frame.append_time
        return None

    def stamp_crc(self, base_offset: Offset) -> int | None:
        """Return the stamp's checksum of the frame that begins at `base_offset`, if it is here."""
        number = bisect_right(self._bases, base_offset) - 1
        if number < 0:
            return None
        frames = self.runs[number].frames()
        return next((one.stamp_crc for one in frames if one.base_offset == base_offset), None)

    def _run_of(self, offset: Offset) -> int:
        """Return the number of the run that holds `offset`, or of the first one."""
        return max(bisect_right(self._bases, offset) - 1, 0)
