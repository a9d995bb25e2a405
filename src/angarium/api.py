"""The contract: everything a client can ask of a broker, whichever door it comes through.

Doors translate to these values and back, the Python client speaks them over the wire, and the
service behind them is the only place where a rule is enforced. A request that fails raises an
error of `angarium.errors`; there is no other way to fail.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from angarium.ids import (
    Buffer,
    Epoch,
    Index,
    Micros,
    NodeId,
    Offset,
    ProducerId,
    Term,
    TopicId,
)
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

FETCH_BYTES_MAX: Final = 8 << 20
"""Bytes one fetch returns at the most, whatever was asked for; a larger batch comes alone."""

FETCH_WAIT_MS_MAX: Final = 30_000
"""How long a fetch may wait for records to come, whatever was asked for."""


# --- publishing ------------------------------------------------------------------------------


class PublishRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Batches for one partition, in this order."""

    topic: str
    partition: int
    batches: tuple[Buffer, ...]
    mode: DeliveryMode | None = None
    """None: the topic's own."""


class Ack(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one batch."""

    mode: DeliveryMode
    topic: str
    partition: int
    base_offset: Offset | None = None
    """The offset of its first record; None in PERFORMANCE mode, which stores nothing, and for a
    duplicate so old that its place is no longer remembered."""
    next_offset: Offset | None = None
    append_time: Micros | None = None
    term: Term | None = None
    """The leader's term; an EVENTUAL offset holds only as long as this leader's log does."""
    id: str = ""
    """In PERFORMANCE mode: the leader's epoch and a counter."""
    subscribers: int = 0
    """In PERFORMANCE mode: how many subscribers it was handed to."""
    provisional: bool = False
    duplicate: bool = False
    code: str = ""
    """Not empty if this batch was refused while its neighbours were not: the error's code."""
    message: str = ""


class Producer(msgspec.Struct, frozen=True, kw_only=True):
    """An idempotent producer's identity: sequences start at 0 in each partition and epoch."""

    id: ProducerId
    epoch: Epoch


# --- reading ---------------------------------------------------------------------------------


class FetchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Committed batches of one partition, from an offset on."""

    topic: str
    partition: int
    offset: Offset
    bytes_max: int = 1 << 20
    wait_ms: int = 0
    """At the end of the log, wait this long for more before answering with nothing."""
    fresh: bool = False
    """Ask the leader, and let it make sure that it still leads: never stale."""


class FetchResult(msgspec.Struct, frozen=True, kw_only=True):
    """Whole batches; the first one may begin below the offset asked for."""

    start_offset: Offset
    """The first offset that can still be read."""
    end_offset: Offset
    """The end of what is committed, as far as the answering node knows."""
    batches: tuple[Buffer, ...] = ()


class Place(IntEnum):
    """Where in a partition to begin."""

    EARLIEST = 0
    LATEST = 1
    """At the end: only what comes after this request."""
    OFFSET = 2
    TIMESTAMP = 3
    """At the first record appended at this time, in µs, or later."""


class Start(msgspec.Struct, frozen=True, array_like=True):
    """Where to begin: a place, and the offset or the time where it needs one."""

    place: Place = Place.LATEST
    value: int = 0


class Interest(msgspec.Struct, frozen=True, kw_only=True):
    """One partition that a subscriber wants, and from where."""

    topic: str
    partition: int
    start: Start = Start()


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """Batches on their way to a subscriber."""

    topic: str
    partition: int
    batches: tuple[Buffer, ...]
    from_offset: Offset = Offset(0)
    """Records below it are not part of the delivery: the first batch may begin earlier."""
    live: bool = False
    """True for PERFORMANCE batches: they have no offset and are stored nowhere."""


class Subscription(Protocol):
    """A subscriber's view of its partitions. Slow readers slow down nobody but themselves."""

    def __aiter__(self) -> AsyncIterator[Delivery]:
        """Yield deliveries until the subscription is closed; raises what broke it."""

    async def add(self, interests: Sequence[Interest]) -> None:
        """Deliver these partitions, too."""

    async def drop(self, topic: str, partition: int) -> None:
        """Deliver nothing more of a partition."""

    async def close(self) -> None:
        """End it."""


# --- topics ----------------------------------------------------------------------------------


class TopicConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What can be chosen about a topic. None stands for "no limit"."""

    replication: int | None = None
    """None: three, or as many as the cluster has hosts."""
    mode: DeliveryMode = DeliveryMode.CONSISTENT
    retention_ms: int | None = None
    retention_bytes: int | None = None
    batch_bytes_max: int = 4 << 20


class PartitionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One partition, as the answering node sees it."""

    number: int
    replicas: tuple[NodeId, ...]
    leader: NodeId | None = None
    start_offset: Offset | None = None
    """None where the answering node has no replica."""
    end_offset: Offset | None = None
    in_sync: tuple[NodeId, ...] | None = None
    """Replicas that vote, can be reached and have nearly everything; nobody while the membership
    changes; None if the answering node does not lead the partition and so cannot know. As long as
    all are in sync, any one of three may be taken down."""


class TopicInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One topic."""

    id: TopicId
    name: str
    config: TopicConfig
    partitions: tuple[PartitionInfo, ...]
    created_at: Micros


# --- the cluster -----------------------------------------------------------------------------


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One node."""

    id: NodeId
    addresses: dict[str, str]
    """By door: "wire", "grpc", "http"."""
    region: str = ""
    zone: str = ""
    host: str = ""
    draining: bool = False
    alive: bool = True
    """Whether the answering node hears from it."""
    leads: int = 0
    replicas: int = 0
    level_max: int = 1
    """The highest feature level its release knows."""


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster, as the answering node sees it."""

    cluster_id: str
    node: NodeId
    """Who answers."""
    catalog_leader: NodeId | None
    catalog_index: Index
    nodes: tuple[NodeInfo, ...]
    topics: int
    partitions: int
    feature_level: int
    version: str
    catalog_in_sync: tuple[NodeId, ...] | None = None
    """Nodes that vote on the catalog, can be reached and have nearly all of it; None if the
    answering node does not lead the catalog."""


# --- the contract itself ---------------------------------------------------------------------


class Broker(Protocol):
    """What a broker does. A node's service implements it, and so does the client."""

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        """Store or hand over batches; one answer per batch, in their order."""

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """Return committed batches; an empty topic gives an empty result, not an error."""

    async def find_offset(self, topic: str, partition: int, start: Start) -> Offset:
        """Return the offset that `start` stands for."""

    async def subscribe(self, interests: Sequence[Interest]) -> Subscription:
        """Begin to deliver partitions."""

    async def open_producer(self, name: str | None = None) -> Producer:
        """Return a new identity, or with a name the same one in a new epoch."""

    async def create_topic(self, name: str, *, partitions: int, config: TopicConfig) -> TopicInfo:
        """Make a topic; `AlreadyExists` if there is another one of that name."""

    async def alter_topic(
        self, name: str, *, partitions: int | None, config: TopicConfig | None
    ) -> TopicInfo:
        """Give a topic more partitions or other settings."""

    async def delete_topic(self, name: str) -> None:
        """Remove a topic with everything in it."""

    async def list_topics(self) -> tuple[TopicInfo, ...]:
        """Return all topics, by name."""

    async def describe_topic(self, name: str) -> TopicInfo:
        """Return one topic; `NotFound`."""

    async def cluster_status(self) -> ClusterStatus:
        """Return the cluster as this node sees it."""

    async def drain_node(self, node: NodeId, *, draining: bool) -> None:
        """Move everything away from a node, or let it have replicas again."""

    async def remove_node(self, node: NodeId) -> None:
        """Forget a node that holds nothing any more."""

    async def transfer_leader(self, topic: str, partition: int, to: NodeId) -> None:
        """Ask a partition's leader to hand over."""

    async def raise_level(self, level: int | None = None) -> int:
        """Let the cluster work at a higher feature level; None: the highest that every node knows.

        The end of an upgrade: releases that do not know the level can no longer take part. Returns
        the level; `PreconditionFailed` names the nodes that are too old for it.
        """
