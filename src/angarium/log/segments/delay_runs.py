"""The delayed records of a segment that still grows: compact, sorted piece by piece.

A record takes 16 bytes here, in arrays, whatever else it holds. Times come a whole column at a time
from the batches; only one whose records are in part not delayed is looked at record by record.
After every `RUN_RECORDS` records a piece is sorted and never touched again (a *run*). No sort, and
no question, takes long however large the segment is.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from heapq import merge
from itertools import compress
from struct import Struct
from typing import TYPE_CHECKING, Final

from angarium.batch.layout import AT_ONCE, fixed_columns, unpacked_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.ids import Buffer, Offset

RUN_RECORDS: Final = 8_192
"""Delayed records sorted at a time: about two milliseconds."""

_latest_delivery: Final = Struct("<q").unpack_from
_LATEST_START: Final = 128


def is_delayed(batch: Buffer) -> bool:
    """Tell whether a batch holds a record that asks for a delay."""
    return bool(_latest_delivery(batch, _LATEST_START)[0] != AT_ONCE)


class DelayRuns:
    """Times of delivery and offsets of one segment, which begins at `base`."""

    __slots__ = ("_base", "_deltas", "_newest", "_runs", "_times")

    def __init__(self, base: Offset) -> None:
        self._base = base
        self._runs: list[tuple[array[int], array[int]]] = []
        self._times = array("q")
        """What has come since the last run, in the order of offsets."""
        self._deltas = array("q")
        self._newest: tuple[array[int], array[int]] | None = None
        """The same, sorted; None since something came."""

    def __len__(self) -> int:
        return sum(len(times) for times, _ in self._runs) + len(self._times)

    def add(self, batch: Buffer) -> None:
        """Take the delayed records of a stamped batch behind all others."""
        header = unpacked_header(batch)
        columns = fixed_columns(header.flags, header.count)
        first = header.base_offset - self._base
        view = memoryview(batch)
        times: Sequence[int]
        deltas: Sequence[int] = range(first, first + header.count)
        if columns.offset_deltas:
            stored = view[columns.offset_deltas :][: 4 * header.count].cast("i")
            deltas = [first + delta for delta in stored]
        if columns.deliver_at:
            times = array("q", view[columns.deliver_at :][: 8 * header.count].tobytes())
            if header.deliver_at_min == AT_ONCE:
                deltas = list(compress(deltas, times))
                times = list(filter(None, times))
        else:
            times = array("q", (header.deliver_at_max,)) * header.count
        self._newest = None
        self._times.extend(times)
        self._deltas.extend(deltas)
        while len(self._times) >= RUN_RECORDS:
            self._close_run()

    def after(self, after: tuple[int, int], *, floor: int) -> Iterator[tuple[int, int]]:
        """Yield (time, offset) of what comes after `after` in that order, from `floor` on."""
        runs = self._runs if not self._times else [*self._runs, self._sorted_newest()]
        base = self._base
        parts = [_after(run, base, after, floor) for run in runs if run[0][-1] >= after[0]]
        return parts[0] if len(parts) == 1 else merge(*parts)

    def earliest(self, after: int, *, floor: int) -> int | None:
        """Return the earliest time later than `after`, of records from `floor` on."""
        first = next(self.after((after, _LAST), floor=floor), None)
        return None if first is None else first[0]

    def in_order(self) -> Iterator[tuple[array[int], array[int]]]:
        """Yield times and distances of all records in the order of delivery, some at a time.

        For writing them in a thread: each step holds up others only for a moment.
        """
        runs = self._runs if not self._times else [*self._runs, self._sorted_newest()]
        done = [0] * len(runs)
        for pivot in _pivots(runs):
            times, deltas = array("q"), array("q")
            for at, run in enumerate(runs):
                past = bisect_right(run[0], pivot, done[at])
                times += run[0][done[at] : past]
                deltas += run[1][done[at] : past]
                done[at] = past
            yield _sorted(times, deltas)

    def _sorted_newest(self) -> tuple[array[int], array[int]]:
        if self._newest is None:
            self._newest = _sorted(self._times, self._deltas)
        return self._newest

    def _close_run(self) -> None:
        self._runs.append(_sorted(self._times[:RUN_RECORDS], self._deltas[:RUN_RECORDS]))
        del self._times[:RUN_RECORDS], self._deltas[:RUN_RECORDS]


def first_after(times: Sequence[int], deltas: Sequence[int], after: tuple[int, int]) -> int:
    """Return the number of the first record behind `after` (time, distance) in a sorted piece."""
    time, delta = after
    low = bisect_left(times, time)
    return bisect_right(deltas, delta, low, bisect_right(times, time, low))


_LAST: Final = 1 << 63
"""Behind every offset."""


def _sorted(times: array[int], deltas: array[int]) -> tuple[array[int], array[int]]:
    """Return both in the order of delivery; of equal times the one that came first is first.

    Records come in the order of their offsets, within a run and from run to run. The sort by time
    is stable, so equal times stay in the order of their offsets.
    """
    order = sorted(range(len(times)), key=times.__getitem__)
    return array("q", map(times.__getitem__, order)), array("q", map(deltas.__getitem__, order))


def _after(
    run: tuple[array[int], array[int]], base: int, after: tuple[int, int], floor: int
) -> Iterator[tuple[int, int]]:
    times, deltas = run
    for at in range(first_after(times, deltas, (after[0], after[1] - base)), len(times)):
        offset = base + deltas[at]
        if offset >= floor:
            yield times[at], offset


def _pivots(runs: Sequence[tuple[array[int], array[int]]]) -> list[int]:
    """Return times that cut all records into parts of about one run each; the last cuts all."""
    if not runs:
        return []
    stride = max(1, RUN_RECORDS // len(runs))
    samples = sorted({time for times, _ in runs for time in times[::stride]})
    # About `len(runs)` samples stand for a run's worth of records.
    chosen = samples[len(runs) :: len(runs)]
    last = max(times[-1] for times, _ in runs)
    return [*(time for time in chosen if time < last), last]
