"""Was every acknowledged record delivered once, in order, and nothing else?

Whole columns of ids are sorted and compared, by C loops; Python walks single ids only where the
columns differ, which is where something is wrong.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from itertools import repeat
from operator import add, gt, itemgetter, rshift
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import astuple

from angarium.bench.load import partition_of
from angarium.bench.stamps import PROBE, record_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from angarium.bench.load import Work


class Verdict(msgspec.Struct, frozen=True):
    """How many records broke which promise."""

    acknowledged: int = 0
    delivered: int = 0
    lost: int = 0
    """Acknowledged, and not delivered."""
    invented: int = 0
    """Delivered, and never sent to that partition."""
    repeated: int = 0
    """Delivered again."""
    reordered: int = 0
    """Delivered after a record of the same worker and partition that was sent later."""
    unknown: int = 0
    """Delivered although nobody was told that they were stored: no mistake, only unlucky."""

    @property
    def is_clean(self) -> bool:
        """Tell whether nothing was invented, repeated or out of order; loss is for the mode."""
        return not (self.invented or self.repeated or self.reordered)

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(*map(add, astuple(self), astuple(other)))


def verdict(columns: Sequence[array[int]], works: Sequence[Work], *, batch: int) -> Verdict:
    """Return the verdict over all partitions; `columns` holds the ids that came from each."""
    total = Verdict()
    for number, column in enumerate(columns):
        total += _of_partition(number, len(columns), column, works, batch)
    return total


def _of_partition(
    number: int, partitions: int, column: array[int], works: Sequence[Work], batch: int
) -> Verdict:
    # Sorting by worker alone is stable, so what is left of each worker is the order of arrival.
    workers = array("Q", map(rshift, column, repeat(40)))
    if any(map(gt, workers, workers[1:])):
        pairs = sorted(zip(workers, column, strict=True), key=itemgetter(0))
        column = array("Q", map(itemgetter(1), pairs))
        workers = array("Q", sorted(workers))
    total = Verdict()
    known = {work.worker for work in works} | {PROBE}
    for stranger in sorted(set(workers) - known):
        count = bisect_left(workers, stranger + 1) - bisect_left(workers, stranger)
        total += Verdict(delivered=count, invented=count)
    for work in works:
        start = bisect_left(workers, work.worker)
        arrived = column[start : bisect_left(workers, work.worker + 1)]
        total += _of_worker(arrived, work, number=number, partitions=partitions, batch=batch)
    return total


def _of_worker(
    arrived: array[int], work: Work, *, number: int, partitions: int, batch: int
) -> Verdict:
    first = (number - partition_of(work.worker, 0, partitions)) % partitions
    calls = range(first, work.calls, partitions)
    kept = calls if not work.failed else [call for call in calls if call not in work.failed]
    expected = _ids(work.worker, kept, batch)
    if arrived == expected:
        return Verdict(acknowledged=len(expected), delivered=len(arrived))
    acknowledged, delivered = set(expected), set(arrived)
    attempted = acknowledged.union(
        _ids(work.worker, [call for call in calls if call in work.failed], batch)
    )
    return Verdict(
        acknowledged=len(expected),
        delivered=len(arrived),
        lost=len(acknowledged - delivered),
        invented=len(delivered - attempted),
        repeated=len(arrived) - len(delivered),
        reordered=_reordered(arrived),
        unknown=len(delivered & attempted - acknowledged),
    )


def _ids(worker: int, calls: Iterable[int], batch: int) -> array[int]:
    """Return the ids of all records of some calls, in order."""
    base = record_id(worker, 0)
    if isinstance(calls, range) and calls.step == 1:
        return array("Q", range(base + calls.start * batch, base + calls.stop * batch))
    found = array("Q")
    for call in calls:
        found.extend(range(base + call * batch, base + (call + 1) * batch))
    return found


def _reordered(arrived: Sequence[int]) -> int:
    """Count ids that are smaller than one before them; repeated ones are another matter."""
    seen: Counter[int] = Counter()
    highest = count = 0
    for number in arrived:
        seen[number] += 1
        if number < highest and seen[number] == 1:
            count += 1
        highest = max(highest, number)
    return count
