"""What the catalog knows: nodes, topics, partitions, and its answers."""

from __future__ import annotations

from bisect import bisect_right
from enum import IntEnum
from typing import Final, TypeAlias

import msgspec

from angarium.ids import (
    Epoch,
    Incarnation,
    Index,
    Micros,
    NodeId,
    ProducerId,
    RaftGroupId,
    ReplicaId,
    TopicId,
    replica_id,
    witness_id,
)
from angarium.machine.catalog.access_values import GrantMade
from angarium.machine.outcomes import Done, Refused
from angarium.machine.partition_limits import PartitionLimits
from angarium.modes import DeliveryMode

NO_NODE: Final = NodeId(0)


class Labels(msgspec.Struct, frozen=True, array_like=True):
    """Where a node is: the failure domains that replicas are spread over."""

    region: str = ""
    zone: str = ""
    host: str = ""
    """Nodes on one machine share a host. A node without one counts as a machine of its own."""


class Node(msgspec.Struct, frozen=True, array_like=True):
    """A member of the cluster."""

    id: NodeId
    incarnation: Incarnation
    """Of its data directory. A wiped node keeps its id and gets another incarnation."""
    addresses: tuple[tuple[str, str], ...]
    """Door and address, as in ("wire", "10.0.0.1:7400")."""
    labels: Labels
    level_min: int
    level_max: int
    """The feature levels it can work at."""
    draining: bool = False
    """It gets no new replicas, and those it has are to be moved away."""
    renewed: tuple[tuple[RaftGroupId, Incarnation], ...] = ()
    """Groups whose replica was lost to damage there, and under which incarnation it came back."""
    gone: bool = False
    """It has not been heard of since its cluster was recovered without it. It counts as draining
    until it registers again."""
    name: str = ""
    """The NAME of the certificate that this number is bound to; empty while it is bound to none."""

    def replica_in(self, group: RaftGroupId) -> ReplicaId:
        """Return who this node is in a group."""
        for known, incarnation in self.renewed:
            if known == group:
                return replica_id(self.id, incarnation)
        return replica_id(self.id, self.incarnation)

    def witness_in(self, group: RaftGroupId) -> ReplicaId:
        """Return who this node would be in a group as a witness."""
        return witness_id(self.replica_in(group))


class Cleanup(IntEnum):
    """What retention does."""

    DELETE = 0
    """Old segments go as a whole."""
    COMPACT = 1
    """The latest record of each key stays."""


class TopicSettings(msgspec.Struct, frozen=True, array_like=True):
    """What may be altered about a topic. `None` stands for "no limit"."""

    replication: int = 3
    mode: DeliveryMode = DeliveryMode.CONSISTENT
    retention_micros: int | None = None
    retention_bytes: int | None = None
    until_consumed: bool = False
    """What every group has settled is trimmed, besides what age and size say."""
    expiry_micros: int | None = None
    cleanup: Cleanup = Cleanup.DELETE
    tombstone_micros: int = 24 * 3600 * 1_000_000
    """How long compaction keeps a record with a null value."""
    batch_bytes_max: int = 4 << 20
    """Larger batches are refused."""
    homes: tuple[str, ...] = ()
    """Homed: regions that have partitions of their own, in turn. Spread: those in which leaders
    should be, best first. None: anywhere."""
    limits: PartitionLimits = PartitionLimits()
    dirty_percent: int = 50
    """How large a part of a partition is new before it is compacted again."""
    placement: str = "spread"
    """Or "homed"."""
    readers: tuple[str, ...] = ()
    """Regions that get a copy of each partition that does not vote; `ALL_REGIONS`: every one."""
    key_order: str = "region"
    """Homed: "region" or "global". For clients; the catalog only keeps it."""
    home_lost: str = "next"
    """Homed: "next" or "refuse". Likewise."""
    leaders_follow: bool = False
    """Spread: whether leaders go to the region from which most publishes come."""
    witness: tuple[str, ...] = ()
    """Regions one of which has a replica that votes and has no records, best first; no other is in
    any of them. None: there is no such replica."""


class Partition(msgspec.Struct, frozen=True, array_like=True):
    """One partition: a Raft group and where it lives."""

    group: RaftGroupId
    topic: TopicId
    number: int
    replicas: tuple[NodeId, ...]
    """The first one is the preferred leader."""
    founders: tuple[ReplicaId, ...]
    """Who forms the Raft group: its first voters. Whoever else gets a replica joins it. Nobody
    once it has moved: a founder that comes back later must not start from the beginning."""
    target: tuple[NodeId, ...] = ()
    """Where it is being moved; empty when it stays."""
    readers: tuple[NodeId, ...] = ()
    """Who has a copy without a vote, once it has arrived. None of them is in `target`, or without
    one in `replicas`; but one that is may be here until the move is over."""
    led_in: str = ""
    """The region in which it should be led before all others; of a topic whose leaders follow."""
    led_since: Micros = Micros(0)
    """When that was last said, by whomever: publishers, an operator or a rebalance."""
    witness: NodeId = NO_NODE
    """Who has a vote and no records: what should be, without a target of its own. 0: nobody."""

    @property
    def holders(self) -> tuple[NodeId, ...]:
        """Everybody who is to have a replica of whatever kind, now or soon."""
        witness = (self.witness,) if self.witness else ()
        return tuple(dict.fromkeys((*self.replicas, *self.target, *self.readers, *witness)))

    @property
    def voters(self) -> tuple[NodeId, ...]:
        """Everybody who votes when nothing moves."""
        return (*self.replicas, self.witness) if self.witness else self.replicas


class Topic(msgspec.Struct, frozen=True, array_like=True):
    """A named row of partitions."""

    id: TopicId
    name: str
    settings: TopicSettings
    groups: tuple[RaftGroupId, ...]
    created_at: Micros
    layouts: tuple[int, ...] = ()
    """How many partitions keys were dealt to, layout by layout, once some were added; the last one
    is that of now, or of soon."""
    unfenced: tuple[int, ...] = ()
    """Older partitions that are not known to have the last layout's fence. While there are some,
    keys are dealt by the layout before it."""
    creator: str = ""
    """The principal that created it; empty: it counts for no quota."""
    partitions_by: tuple[tuple[str, int], ...] = ()
    """How many of its partitions each principal created, by name. The others count for none."""
    begun: tuple[Micros, ...] = ()
    """When each layout came into force, as far as that was noted (feature level 8); else 0."""

    @property
    def layout(self) -> int:
        """The layout in force."""
        return max(len(self.layouts) - 1 - bool(self.unfenced), 0)

    def ended(self, layout: int) -> Micros | None:
        """Return when a layout was replaced; None if it is in force, or the time is not known."""
        return (self.begun[layout + 1] or None) if layout + 1 < len(self.begun) else None

    def born(self, number: int) -> int:
        """Return the layout that a partition came with."""
        return bisect_right(self.layouts, number)


class NamedProducer(msgspec.Struct, frozen=True, array_like=True):
    """A producer that outlives its client's restarts."""

    id: ProducerId
    epoch: Epoch
    base: int = 0
    """Where a producer that is shared counts from."""


# --- answers --------------------------------------------------------------------------------


class Formed(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The cluster has this id, for ever."""

    cluster: str


class NodeRegistered(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The node has this id."""

    node: NodeId


class TopicMade(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The topic is there; `repeated` when it was, in just this form."""

    topic: TopicId
    groups: tuple[RaftGroupId, ...]
    repeated: bool = False


class Moving(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The partition is on its way to these nodes."""

    group: RaftGroupId
    target: tuple[NodeId, ...]


class ProducersIssued(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """The ids `[first, past)` belong to the caller."""

    first: ProducerId
    past: ProducerId


class ProducerOpened(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """The named producer's id, and an epoch that fences all earlier ones."""

    producer: ProducerId
    epoch: Epoch


class LevelRaised(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """The cluster works at this level."""

    level: int


class ProducerShared(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """The shared producer's id, its epoch, and which number has the sequence 0."""

    producer: ProducerId
    epoch: Epoch
    base: int


CatalogOutcome: TypeAlias = (
    Formed
    | NodeRegistered
    | TopicMade
    | Moving
    | ProducersIssued
    | ProducerOpened
    | ProducerShared
    | LevelRaised
    | GrantMade
    | Done
    | Refused
)


class CatalogApplied(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that followed from one entry of group 0."""

    index: Index
    outcomes: tuple[CatalogOutcome, ...] = ()
    nodes: tuple[NodeId, ...] = ()
    """Nodes that were added, changed or removed."""
    groups: tuple[RaftGroupId, ...] = ()
    """Partitions that were added, moved or removed."""
    topics: tuple[TopicId, ...] = ()
    """Topics that were added, altered or removed."""
