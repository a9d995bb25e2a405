"""Which partition a record goes to: the one answer that every publisher gives.

A `Layout` is what one publisher knows of a topic's partitions: those that it writes to of its own
accord. A record with a key goes where its key's hash says, so that all publishers of one layout
agree about every key; one without goes in turn. Whoever names a partition may name any of the
topic's.

Of a homed topic a publisher writes to the partitions that live in its region. Where none does, or
all of them are lost, it writes to those of the next region in the topic's list; each of its own
partitions has one there that stands in for it, so that records of a key stay together. Records of
a key are in order per region then; with `key_order=global` they are dealt over all partitions
instead, wherever those live, and nothing stands in.

Everything here is pure, and costs no more than the remainder that it is made of: clients, doors,
transactions and Spark all ask it for each record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from angarium.api.topics import TopicInfo
    from angarium.ids import Buffer


@dataclass(frozen=True, slots=True)
class Layout:
    """The partitions of one topic that one publisher writes to."""

    partitions: tuple[int, ...]
    """Their numbers; at least one. One that stands in for several others is there as often."""
    total: int
    """How many partitions the topic has; a publisher may name any of them."""
    number: int = 0
    """Which of the topic's layouts it is: a publish names it, where keys were followed."""
    keyed: tuple[int, ...] = ()
    """Those for records with keys, where they are others."""
    region: str = ""
    """Where they live; empty if that does not matter."""
    count: int = field(init=False, repr=False, compare=False)
    """How many there are for records with keys."""
    pins_keys: bool = field(init=False, repr=False, compare=False)
    """Whether a key has its one partition, wherever that lives: nothing may stand in for it. Said
    once: it is asked for each record, and would be compared partition by partition."""

    def __post_init__(self) -> None:
        assert self.partitions, "a record needs a partition to go to"
        assert max(self.partitions) < self.total
        keyed = self.keyed or self.partitions
        object.__setattr__(self, "keyed", keyed)
        object.__setattr__(self, "count", len(keyed))
        object.__setattr__(self, "pins_keys", keyed != self.partitions)

    @classmethod
    def over(cls, total: int) -> Layout:
        """Return the layout of whoever writes to all partitions."""
        return cls(tuple(range(total)), total)

    @property
    def only(self) -> int | None:
        """The partition of every record, if there is no other."""
        return self.partitions[0] if self.count == len(self.partitions) == 1 else None

    def of_hash(self, hashed: int) -> int:
        """Return the partition of a key with this hash (`angarium.batch.key_hash`)."""
        return self.keyed[hashed % self.count]

    def of_key(self, key: Buffer) -> int:
        """Return the partition of a key."""
        # `key_hash`, written out: this is asked for each record, and a call costs as much again.
        return self.keyed[(crc32(key) or 1) % self.count]

    def in_turn(self, turn: int) -> int:
        """Return the partition whose turn it is, for records that have no key."""
        return self.partitions[turn % len(self.partitions)]

    def dealt(self, hashes: Iterable[int]) -> dict[int, list[int]]:
        """Return, for each partition that gets any, the positions of its hashes in their order."""
        found: dict[int, list[int]] = {number: [] for number in self.keyed}
        put = [found[number].append for number in self.keyed]
        count = self.count
        for position, hashed in enumerate(hashes):
            put[hashed % count](position)
        return {number: positions for number, positions in found.items() if positions}

    def of_hashes(self, hashes: Any) -> Any:
        """Return the partition of every hash, both as NumPy's arrays: `of_hash` for Spark."""
        import numpy as np  # noqa: PLC0415 - the base install has none; whoever has an array does

        return np.asarray(self.keyed, dtype=np.int64)[hashes % self.count]


def layout_of(info: TopicInfo, region: str = "", *, lost: Container[str] = ()) -> Layout:
    """Return the layout of a publisher in `region`; regions in `lost` have nobody who leads.

    A publisher without a region writes to all partitions, and so does everybody to a topic that is
    not homed.
    """
    total = max(1, len(info.partitions))
    # Partitions that were added get nothing of their own before the older ones are fenced.
    count = info.layouts[info.layout] if info.layouts else total
    homes = homes_of(info, count) if region else {}
    if not homes:
        return Layout(tuple(range(count)), total, number=info.layout)
    order = _nearest_first(tuple(homes), region)
    own = homes[order[0]]
    chosen = next((one for one in order if one not in lost), order[0])
    if info.config.home_lost == "refuse":
        chosen = order[0]
    there = homes[chosen]
    # As many as at home: whatever a partition's stand-in is, it is that for every publisher.
    partitions = tuple(there[at % len(there)] for at in range(len(own)))
    if chosen == order[0]:
        partitions = own
    keyed = tuple(range(count)) if info.config.key_order == "global" else ()
    return Layout(partitions, total, number=info.layout, keyed=keyed, region=chosen)


def former_layouts(info: TopicInfo) -> tuple[Layout, ...]:
    """Return the layouts by which a publisher without a region wrote to all partitions before the
    one in force, oldest first."""
    total = max(1, len(info.partitions))
    return tuple(
        Layout(tuple(range(count)), total, number=number)
        for number, count in enumerate(info.layouts[: info.layout])
    )


def homes_of(info: TopicInfo, count: int | None = None) -> dict[str, tuple[int, ...]]:
    """Return which partitions, or of the first `count`, are in each region that has any, in the
    topic's order of regions."""
    if info.config.placement != "homed":
        return {}
    found: dict[str, list[int]] = {region: [] for region in info.config.regions}
    for partition in info.partitions[:count]:
        if partition.home:
            found.setdefault(partition.home, []).append(partition.number)
    return {region: tuple(numbers) for region, numbers in found.items() if numbers}


def _nearest_first(regions: tuple[str, ...], own: str) -> tuple[str, ...]:
    """Return regions in the order in which a publisher turns to them."""
    if own not in regions:
        return regions
    at = regions.index(own)
    return regions[at:] + regions[:at]
