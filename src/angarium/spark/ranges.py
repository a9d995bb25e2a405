"""Offset ranges, and how they become tasks.

A task costs Spark tens of milliseconds whatever it reads, so small ranges share one; a long range
is read by several. The records of a range keep their order within their task.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RECORDS_PER_TASK_MIN: Final = 10_000
"""Ranges share a task up to about this many records, unless `minPartitions` is given."""


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """Records of one partition: those from `start` up to below `stop`."""

    topic: str
    partition: int
    start: int
    stop: int
    topic_id: int = 0
    """The topic's id when the range was planned: a namesake made later is another topic."""

    @property
    def records(self) -> int:
        """How many offsets there are; fewer records where some were compacted away or expired."""
        return max(0, self.stop - self.start)

    def __str__(self) -> str:
        return f"{self.topic} partition {self.partition} [{self.start}, {self.stop})"


def tasks(
    ranges: Iterable[OffsetRange], *, min_partitions: int | None, records_max: int
) -> list[tuple[OffsetRange, ...]]:
    """Return what each task reads; empty ranges are left out."""
    wanted = sorted(one for one in ranges if one.records)
    total = sum(one.records for one in wanted)
    if min_partitions is not None:
        # Rounded down, so that there are at least as many pieces as were asked for.
        records_max = min(records_max, max(1, total // min_partitions))
    pieces = [piece for one in wanted for piece in _pieces(one, records_max)]
    if min_partitions is not None:
        return [(piece,) for piece in pieces]
    return _shared(pieces, min(RECORDS_PER_TASK_MIN, records_max))


def _pieces(whole: OffsetRange, records_max: int) -> list[OffsetRange]:
    count = -(-whole.records // records_max)
    cuts = [whole.start + whole.records * at // count for at in range(count + 1)]
    return [
        OffsetRange(whole.topic, whole.partition, start, stop, whole.topic_id)
        for start, stop in pairwise(cuts)
    ]


def _shared(pieces: Sequence[OffsetRange], enough: int) -> list[tuple[OffsetRange, ...]]:
    shared: list[tuple[OffsetRange, ...]] = []
    group: list[OffsetRange] = []
    records = 0
    for piece in pieces:
        if group and records + piece.records > enough:
            shared.append(tuple(group))
            group, records = [], 0
        group.append(piece)
        records += piece.records
    if group:
        shared.append(tuple(group))
    return shared
