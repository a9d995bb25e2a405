"""What a topic's settings say about regions, and what of that a cluster cannot hold.

`spread`: replicas in as many regions as there are, leaders in the best of those that are named.
`homed`: each partition has a home, the regions taking turns. Its leader and a majority of its
replicas are there; all of them, if the home has hosts enough. Either may have readers: replicas
without a vote in regions that have none with one.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from angarium.machine.catalog.values import Node, Partition, TopicSettings

REGIONS_LEVEL: Final = 6
"""The feature level from which on topics are placed by regions."""

WITNESS_LEVEL: Final = 7
"""The feature level from which on partitions may have a witness."""

SPREAD: Final = "spread"
HOMED: Final = "homed"

ALL_REGIONS: Final = "*"
"""Among a topic's readers: every region that has nodes."""

REGIONS_NAMED_MAX: Final = 8
"""Regions that a refusal names."""


class Wish(NamedTuple):
    """Where the replicas of a partition should be."""

    replication: int
    regions: tuple[str, ...] = ()
    """Where its leader should be, best first; of a homed one just its home. None: anywhere."""
    is_homed: bool = False
    """Whether a majority has to be there, and all should be."""
    witness: tuple[str, ...] = ()
    """The regions of its witness, in which none of them may be; none: it has no witness."""

    def may_be_in(self, region: str) -> bool:
        """Tell whether a replica with records may be in a region."""
        return region not in self.witness

    @property
    def at_home_min(self) -> int:
        """How many replicas have to be in the home."""
        return majority(self.replication) if self.is_homed else 0


def majority(replication: int) -> int:
    """Return how many of so many replicas decide."""
    return replication // 2 + 1


def home_of(settings: TopicSettings, number: int) -> str:
    """Return the region that a partition is homed in; empty if its topic is spread."""
    if settings.placement != HOMED or not settings.homes:
        return ""
    return settings.homes[number % len(settings.homes)]


def wish_of(settings: TopicSettings, number: int) -> Wish:
    """Return where a partition's replicas should be."""
    home = home_of(settings, number)
    regions = (home,) if home else settings.homes
    return Wish(settings.replication, regions, is_homed=bool(home), witness=settings.witness)


def wish_for(settings: TopicSettings, partition: Partition) -> Wish:
    """Return the same of a partition that is there: if its leaders follow, where they went."""
    wish = wish_of(settings, partition.number)
    if not settings.leaders_follow or not partition.led_in:
        return wish
    return wish._replace(regions=tuple(dict.fromkeys((partition.led_in, *wish.regions))))


def uses_regions(settings: TopicSettings) -> bool:
    """Tell whether settings say anything that an older release has no meaning for."""
    return bool(
        settings.homes
        or settings.readers
        or settings.placement != SPREAD
        or settings.key_order != "region"
        or settings.home_lost != "next"
        or settings.leaders_follow
        or settings.witness
    )


def has_moved(before: TopicSettings, after: TopicSettings) -> bool:
    """Tell whether the partitions of a topic with other settings belong elsewhere."""
    return any(
        getattr(before, one) != getattr(after, one)
        for one in ("replication", "placement", "homes", "readers", "witness")
    )


def regions_fault(settings: TopicSettings, partitions: int) -> str | None:
    """Return what is wrong with settings in whatever cluster, if anything."""
    homes, readers = settings.homes, settings.readers
    fault = None
    if settings.placement not in {SPREAD, HOMED}:
        fault = f"placement is {SPREAD} or {HOMED}, not {settings.placement!r}"
    elif any(not one for one in (*homes, *readers)) or ALL_REGIONS in homes:
        fault = "a region has a name; only `readers` may say * for all of them"
    elif len(set(homes)) < len(homes) or len(set(readers)) < len(readers):
        fault = "a region is named twice"
    elif settings.placement == HOMED and not homes:
        fault = "a homed topic needs `regions`: those that have partitions of their own"
    elif settings.placement == HOMED and partitions < len(homes):
        fault = (
            f"{len(homes)} regions need at least as many partitions, one for each, not {partitions}"
        )
    elif settings.witness:
        fault = _witness_fault(settings)
    return fault


def _witness_fault(settings: TopicSettings) -> str | None:
    both = sorted(set(settings.witness) & set(settings.homes))
    if ALL_REGIONS in settings.witness or "" in settings.witness:
        return "a witness is in a region that has a name"
    if both:
        return f"{both[0]!r} cannot be one of `regions` and have the witness: that breaks ties"
    if settings.replication % 2:
        return (
            f"a witness breaks the tie of an even number of replicas, 2, 4 or 6, and not of "
            f"{settings.replication}"
        )
    return None


def shortage(settings: TopicSettings, nodes: Sequence[Node], hosts: Counter[str]) -> str | None:
    """Return what a cluster of `nodes` lacks for such a topic, if anything.

    `hosts`: how many hosts there are in each region.
    """
    readers = (one for one in settings.readers if one != ALL_REGIONS)
    named = (*settings.homes, *readers, *settings.witness)
    for region in named:
        if not hosts[region]:
            return f"no node is in region {region!r}; {_regions_there(nodes)}"
    for number in range(len(settings.homes)) if settings.placement == HOMED else ():
        wish = wish_of(settings, number)
        home, there = wish.regions[0], hosts[wish.regions[0]]
        if there < wish.at_home_min:
            return (
                f"region {home!r} has {_hosts(there)} to offer, and as a home it needs "
                f"{wish.at_home_min} for a majority of {wish.replication} replicas: add nodes "
                "there, or ask for fewer replicas"
            )
    return None


def may_hold(wish: Wish, hosts: Counter[str]) -> bool:
    """Tell whether so many hosts in each region are enough for a partition."""
    if hosts_for_records(wish, hosts) < wish.replication:
        return False
    return not wish.is_homed or hosts[wish.regions[0]] >= wish.at_home_min


def hosts_for_records(wish: Wish, hosts: Counter[str]) -> int:
    """Return how many hosts may have a replica with records."""
    return sum(count for region, count in hosts.items() if wish.may_be_in(region))


def reading_regions(settings: TopicSettings, nodes: Iterable[Node]) -> tuple[str, ...]:
    """Return the regions that are to have something to read from."""
    if ALL_REGIONS not in settings.readers:
        return settings.readers
    return tuple(sorted({node.labels.region for node in nodes} - {""}))


def usual_replication(
    most: int, homes: Sequence[str], hosts: Counter[str], *, has_witness: bool = False
) -> int:
    """Return how many replicas a topic has whose maker did not say: up to `most`.

    No more than there are hosts, and of a homed one than its homes can have a majority of; two
    where a witness breaks their tie.
    """
    if has_witness:
        return 2
    count = min(most, hosts.total())
    while count > 1 and any(hosts[home] < majority(count) for home in homes):
        count -= 1
    return max(count, 1)


def needed_region(regions: Sequence[str]) -> str | None:
    """Return the region without which replicas in `regions` are no majority, if there is one."""
    found = Counter(regions)
    region, count = max(found.items(), key=lambda one: (one[1], one[0]), default=("", 0))
    return region if region and len(regions) - count < majority(len(regions)) else None


def told_of_loss(needed: Mapping[str, int], partitions: int) -> str:
    """Say what a topic loses with a region; `needed`: how many partitions need which one."""
    if not needed:
        return ""
    told = ", ".join(f"{needed[one]} without {one}" for one in sorted(needed)[:REGIONS_NAMED_MAX])
    return (
        f"The loss of a region stops partitions until it is back (of {partitions}: {told}): a "
        "majority of their replicas is there. Only replicas in three regions survive it."
    )


def _regions_there(nodes: Sequence[Node]) -> str:
    there = sorted({node.labels.region for node in nodes} - {""})
    if not there:
        return "no node says where it is (`region` in its settings)"
    shown = ", ".join(there[:REGIONS_NAMED_MAX])
    more = len(there) - REGIONS_NAMED_MAX
    return f"there are nodes in {shown}{f' and {more} more' if more > 0 else ''}"


def _hosts(count: int) -> str:
    return f"{count} host{'' if count == 1 else 's'}"
