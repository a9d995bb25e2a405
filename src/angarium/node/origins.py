"""From which regions the partitions that a node leads are published to, and who should lead then.

A publish costs one addition. What was counted lies in slices of time, of which the last few are the
window: a leader follows its publishers when one region has a clear majority in the whole window,
and more than half in every slice of it. So neither a burst nor an even share moves anything, and
who has just begun to lead counts for a whole window first.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final

from angarium.machine.catalog.nodes import LABEL_CHARACTERS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from angarium.ids import Micros, NodeId, RaftGroupId
    from angarium.machine.catalog import Partition

SLICES: Final = 6
"""Slices of a window."""

CLEAR_PERCENT: Final = 66
"""More than this part of all publishes in a window has to come from a region to be followed. Of
those whose publishers do not say where they are, too: they might come from anywhere."""

REGIONS_MAX: Final = 64
"""Regions that are counted apart, for a partition and a slice: clients may say what they like.
Publishes from further ones count as from nowhere."""

UNKNOWN: Final = ""


class Origins:
    """Counts publishes by partition and region, in slices of time."""

    def __init__(self) -> None:
        self._now: dict[RaftGroupId, dict[str, int]] = {}
        self._window: deque[Mapping[RaftGroupId, Mapping[str, int]]] = deque(maxlen=SLICES)
        self._ends: float | None = None
        """When the slice of now ends; None while there is nothing to look at."""

    def count(self, group: RaftGroupId, region: str) -> None:
        """Count a publish, whatever is in it: each of them waits for the leader once."""
        counts = self._now.setdefault(group, {})
        # Longer than any node's: only to be kept in memory.
        if len(region) > LABEL_CHARACTERS_MAX:
            region = UNKNOWN
        if region not in counts and len(counts) >= REGIONS_MAX:
            region = UNKNOWN
        counts[region] = counts.get(region, 0) + 1

    def ended_slice(self, *, now: float, length: float) -> list[RaftGroupId]:
        """Return the partitions that were published to in the slice that has just ended, if any.

        If it ended long ago, nothing that was counted says how it is now, and all begins anew.
        """
        if self._ends is None:
            if self._now:
                self._ends = now + length
            return []
        if now < self._ends:
            return []
        groups = list(self._now)
        self._window.append(self._now)
        self._now = {}
        is_late = now >= self._ends + length
        self._ends += length
        if is_late or not any(self._window):
            self._window.clear()
            self._ends = None
        return [] if is_late else groups

    def window(self, group: RaftGroupId) -> list[Mapping[str, int]]:
        """Return how often a partition was published to from which region, slice by slice."""
        return [one.get(group, {}) for one in self._window]


def followed_region(window: Sequence[Mapping[str, int]]) -> str | None:
    """Return the region from which clearly most publishes come; None if there is none.

    There is none before the window is full.
    """
    if len(window) < SLICES:
        return None
    counts: Counter[str] = Counter()
    for one in window:
        counts.update(one)
    region, count = max(counts.items(), key=lambda one: one[1], default=(UNKNOWN, 0))
    if region == UNKNOWN or 100 * count <= CLEAR_PERCENT * counts.total():
        return None
    # A slice without publishes has no majority, either.
    if any(2 * one.get(region, 0) <= sum(one.values()) for one in window):
        return None
    return region


def followed_leader(
    replicas: Sequence[NodeId],
    regions: Mapping[NodeId, str],
    window: Sequence[Mapping[str, int]],
    *,
    could_lead: Callable[[NodeId], bool],
) -> NodeId | None:
    """Return which replica should be preferred as the leader instead of the first; None if none.

    It is in the region that is followed, and `could_lead` now.
    """
    region = followed_region(window)
    if region is None or regions.get(replicas[0]) == region:
        return None
    there: Iterable[NodeId] = (one for one in replicas if regions.get(one) == region)
    return next((one for one in there if could_lead(one)), None)


def may_follow(partition: Partition, *, now: Micros, pause_s: float) -> bool:
    """Tell whether nobody has said of late where a partition is to be led."""
    return now - partition.led_since >= 1_000_000 * pause_s
