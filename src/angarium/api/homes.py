"""Which regions have lost their partitions of a topic, as one publisher sees it.

A region is lost to a topic when none of the partitions that live there has had a leader for
`HOME_LOST_S`, or at once where the cluster says that this will not pass by itself. It is there
again as soon as one has a leader. Pure: the caller says what time it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.api.layout import homes_of
from angarium.errors import HomeLost

if TYPE_CHECKING:
    from angarium.api.topics import PartitionInfo, TopicInfo

HOME_LOST_S: Final = 3.0
"""How long a region's partitions are without a leader before publishers turn to the next one: an
election takes a second or two."""


class Homes:
    """The homes of one topic."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        """Since when nobody leads anything there."""
        self._are_gone: frozenset[str] = frozenset()

    def learn(self, info: TopicInfo, *, now: float) -> None:
        """Take over how the topic stands."""
        gone = set()
        waiting = {}
        for region, numbers in homes_of(info).items():
            partitions = [info.partitions[number] for number in numbers]
            if any(one.leader is not None for one in partitions):
                continue
            waiting[region] = self._since.get(region, now)
            if all(map(_will_stay_so, partitions)):
                gone.add(region)
        self._since = waiting
        self._are_gone = frozenset(gone)

    @property
    def are_doubtful(self) -> bool:
        """Whether nobody leads anything in some region, so that somebody should look again soon."""
        return bool(self._since)

    def lost(self, *, now: float) -> frozenset[str]:
        """Return the regions that are lost."""
        if not self._since:
            return frozenset()
        long = {one for one, since in self._since.items() if now - since >= HOME_LOST_S}
        return self._are_gone | long


def home_lost(topic: str, region: str) -> HomeLost:
    """Return why nothing can be published to a topic from a region."""
    return HomeLost(
        f"nobody leads the partitions of {topic!r} that live in {region!r}; publish when they are"
        " back, or have the topic changed to home_lost=next"
    )


def _will_stay_so(partition: PartitionInfo) -> bool:
    return bool(partition.trouble)
