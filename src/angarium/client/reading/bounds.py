"""What a reader insists on: how new it has to be, and what has to be there."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from angarium.client.publishing.receipts import Receipt
from angarium.errors import InvalidArgument
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Sequence

SEEN_MAX: Final = 100_000
"""Partitions whose ends a client remembers. At the bound the one it read longest ago is forgotten,
and may be read anew from a replica that lags behind."""


class Seen:
    """How far one client has seen each partition, so that it never sees less again."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, int], int] = {}

    def note(self, topic: str, partition: int, end: int) -> None:
        """Take over where a partition ended."""
        before = self._ends.pop((topic, partition), 0)
        if len(self._ends) >= SEEN_MAX:
            del self._ends[next(iter(self._ends))]
        self._ends[topic, partition] = max(before, end)

    def at_least(self, topic: str, partition: int, wanted: int | None) -> Offset | None:
        """Return the highest offset that an answer has to know of; None if there is none."""
        known = max(self._ends.get((topic, partition), 0) - 1, -1 if wanted is None else wanted)
        return None if known < 0 else Offset(known)


def offset_known(at_least: Receipt | int | None, topic: str, partition: int) -> int | None:
    """Return the offset that has to be there; a receipt of another partition is a mistake."""
    if not isinstance(at_least, Receipt):
        return at_least
    if (at_least.topic, at_least.partition) != (topic, partition):
        raise InvalidArgument(
            f"the receipt is of {at_least.topic}[{at_least.partition}], and {topic}[{partition}]"
            " is read"
        )
    return at_least.offset


def offsets_known(
    at_least: Receipt | Sequence[Receipt] | None,
) -> dict[tuple[str, int], Offset]:
    """Return by topic and partition what has to be there, as receipts tell."""
    receipts = (at_least,) if isinstance(at_least, Receipt) else at_least or ()
    found: dict[tuple[str, int], Offset] = {}
    for one in receipts:
        if one.offset is not None:
            key = (one.topic, one.partition)
            found[key] = Offset(max(one.offset, found.get(key, 0)))
    return found


def staleness_ms_of(max_staleness: float | timedelta | None) -> int | None:
    """Return a bound in milliseconds."""
    if max_staleness is None:
        return None
    if isinstance(max_staleness, timedelta):
        max_staleness = max_staleness.total_seconds()
    if not max_staleness >= 0:
        raise InvalidArgument(f"max_staleness is not negative: {max_staleness}")
    return int(max_staleness * 1_000)
