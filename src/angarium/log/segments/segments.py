"""The segments of a partition in the order of their offsets, one adjoining the other."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.ids import Micros, Offset
    from angarium.log.segments.segment import Segment


class SegmentList:
    """Finds segments by offset and by time."""

    __slots__ = ("_bases", "_segments")

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = list(segments)
        self._bases = [segment.base_offset for segment in segments]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    @property
    def last(self) -> Segment | None:
        """The segment with the highest offsets, if there is any."""
        return self._segments[-1] if self._segments else None

    def add(self, segment: Segment) -> None:
        """Put a segment behind all others."""
        self._segments.append(segment)
        self._bases.append(segment.base_offset)

    def drop_first(self, count: int) -> None:
        """Forget the first `count` segments."""
        del self._segments[:count]
        del self._bases[:count]

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Replace neighbouring segments by `new`, which begins where the first of them does."""
        at = self._segments.index(old[0])
        assert self._segments[at : at + len(old)] == list(old)
        self._segments[at : at + len(old)] = [new]
        self._bases[at : at + len(old)] = [new.base_offset]

    def at(self, offset: Offset) -> Segment:
        """Return the segment in which `offset`, which is in the log, lies."""
        return self._segments[bisect_right(self._bases, offset) - 1]

    def holding(self, offset: Offset) -> Iterator[Segment]:
        """Yield the segment in which `offset` lies, or would lie, and all behind it."""
        yield from self._segments[max(bisect_right(self._bases, offset) - 1, 0) :]

    def named(self, base_offset: Offset) -> Segment | None:
        """Return the segment that begins exactly at `base_offset`."""
        at = bisect_right(self._bases, base_offset) - 1
        return self._segments[at] if at >= 0 and self._bases[at] == base_offset else None

    def after(self, base_offset: Offset) -> Iterator[Segment]:
        """Yield the segments that begin behind `base_offset`."""
        yield from self._segments[bisect_right(self._bases, base_offset) :]

    def from_time(self, time: Micros) -> Iterator[Segment]:
        """Yield the segments that may hold batches appended at `time` or later.

        Nobody knows when what is damaged was appended: its segment may hold anything.
        """
        first = bisect_right(self._segments, time - 1, key=_last_time)
        damaged = (at for at in range(first) if self._segments[at].whole_until is not None)
        yield from self._segments[next(damaged, first) :]


def _last_time(segment: Segment) -> Micros:
    return segment.last_time
