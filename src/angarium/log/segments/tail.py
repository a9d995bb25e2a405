"""Frames that have been appended and not yet written: readers see them at once, from memory."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from angarium.ids import Buffer, Micros, Offset
    from angarium.log.segments.frames import Frame
    from angarium.log.segments.segment import Segment


class Waiting(NamedTuple):
    """A frame in memory, with its place in a segment."""

    frame: Frame
    buffer: Buffer
    segment: Segment
    position: int
    crc: int
    """The segment's checksum with this frame included."""


class MemoryTail:
    """The frames behind what has been written, in the order of their offsets."""

    __slots__ = ("_bases", "bytes", "frames")

    def __init__(self) -> None:
        self.frames: list[Waiting] = []
        self.bytes = 0
        self._bases: list[Offset] = []

    def add(self, waiting: Waiting) -> None:
        """Put a frame behind all others."""
        self.frames.append(waiting)
        self._bases.append(waiting.frame.base_offset)
        self.bytes += waiting.frame.length

    def drop_first(self, count: int) -> None:
        """Let go of the first `count` frames: they have been written."""
        self.bytes -= sum(waiting.frame.length for waiting in self.frames[:count])
        del self.frames[:count]
        del self._bases[:count]

    def read(self, offset: Offset, bytes_max: int, *, gaps: bool = False) -> list[memoryview]:
        """Return whole batches from the one that holds `offset` on, at least one if any.

        With `gaps`, the frames that declare gaps are among them.
        """
        batches: list[memoryview] = []
        total = 0
        for place in range(max(bisect_right(self._bases, offset) - 1, 0), len(self.frames)):
            frame, buffer, *_ = self.frames[place]
            if frame.next_offset <= offset or (frame.is_gap and not gaps):
                continue
            total += frame.length
            if total > bytes_max and batches:
                break
            batches.append(memoryview(buffer))
        return batches

    def first_at_time(self, time: Micros) -> Offset | None:
        """Return the base offset of the first batch appended at `time` or later."""
        for frame, *_ in self.frames:
            if not frame.is_gap and frame.append_time >= time:
                return frame.base_offset
        return None

    def time_at(self, offset: Offset) -> Micros | None:
        """Return the append time of the first batch that ends behind `offset`."""
        for frame, *_ in self.frames:
            if not frame.is_gap and frame.next_offset > offset:
                return frame.append_time
        return None

    def stamp_crc(self, base_offset: Offset) -> int | None:
        """Return the stamp's checksum of the frame that begins at `base_offset`, if it is here."""
        place = bisect_right(self._bases, base_offset) - 1
        if place < 0 or self._bases[place] != base_offset:
            return None
        return self.frames[place].frame.stamp_crc
