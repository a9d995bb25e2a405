"""The contract as frames: which operation carries which request, and how it is laid out.

Both ends use this page: the client, which asks, and the wire door of a node, which answers. Small
values travel in the header as msgpack; batches travel in the payload, end to end, as they are (a
batch knows its own length), so nobody copies or looks into them on the way.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

import msgspec

from angarium.api import (
    Ack,
    ClusterStatus,
    Producer,
    Start,
    TopicConfig,
    TopicInfo,
)
from angarium.ids import Incarnation, NodeId, Offset
from angarium.modes import DeliveryMode


class Operation(IntEnum):
    """What a request or stream is about. Numbers are for ever; 1 is Raft traffic."""

    PUBLISH = 10
    FETCH = 11
    FIND_OFFSET = 12
    OPEN_PRODUCER = 13
    SUBSCRIBE = 14
    CREATE_TOPIC = 20
    ALTER_TOPIC = 21
    DELETE_TOPIC = 22
    LIST_TOPICS = 23
    DESCRIBE_TOPIC = 24
    CLUSTER_STATUS = 30
    DRAIN_NODE = 31
    REMOVE_NODE = 32
    TRANSFER_LEADER = 33
    RAISE_LEVEL = 34
    JOIN = 40
    PEER = 41
    """Between nodes: segments, repairs (`replica.peers`)."""
    CATALOG = 42
    """Between nodes: a catalog command for its leader."""
    DISPATCH = 43
    """Between nodes: PERFORMANCE batches for subscribers elsewhere."""
    INTERESTS = 44
    """Between nodes: what a node's subscribers want to be handed."""


# --- publish and read: the payload holds the batches --------------------------------------------


class PublishHeader(msgspec.Struct, frozen=True, array_like=True):
    """The payload holds the batches. Answered with `PublishAnswer`."""

    topic: str
    partition: int
    mode: DeliveryMode | None = None


class PublishAnswer(msgspec.Struct, frozen=True, array_like=True):
    """One ack per batch, in their order."""

    acks: tuple[Ack, ...]


class FetchHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `FetchAnswer`, whose payload holds the batches."""

    topic: str
    partition: int
    offset: Offset
    bytes_max: int
    wait_ms: int = 0
    fresh: bool = False


class FetchAnswer(msgspec.Struct, frozen=True, array_like=True):
    """See `api.FetchResult`."""

    start_offset: Offset
    end_offset: Offset


class FindOffsetHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `FindOffsetAnswer`."""

    topic: str
    partition: int
    start: Start


class FindOffsetAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The offset that the start stands for."""

    offset: Offset


class OpenProducerHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.Producer`."""

    name: str | None = None


# --- subscribe: a stream ------------------------------------------------------------------------
#
# The client opens the stream with `Wants` and may send further `Want` and `Drop` frames. The node
# sends `Delivered` frames, whose payload holds batches, and `Ended` for a partition it cannot go
# on with. Credit is the stream's own: whoever does not read is not sent more.


class Want(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Deliver this partition under a number that the client chooses and uses once."""

    number: int
    topic: str
    partition: int
    start: Start = Start()


class Drop(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Deliver nothing more under this number."""

    number: int


Wish: TypeAlias = Want | Drop


class Wants(msgspec.Struct, frozen=True, array_like=True):
    """How a subscription begins."""

    wants: tuple[Want, ...]


class Delivered(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The payload holds batches; records below `from_offset` are not part of the delivery."""

    number: int
    from_offset: Offset = Offset(0)
    live: bool = False


class Ended(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Nothing more comes under this number; the code says why (an `angarium.errors` code)."""

    number: int
    code: str
    message: str


Told: TypeAlias = Delivered | Ended


# --- administration ----------------------------------------------------------------------------


class CreateTopicHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.TopicInfo`."""

    name: str
    partitions: int
    config: TopicConfig


class AlterTopicHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.TopicInfo`."""

    name: str
    partitions: int | None
    config: TopicConfig | None


class TopicHeader(msgspec.Struct, frozen=True, array_like=True):
    """A topic by name: to delete (answered with nothing) or describe (`api.TopicInfo`)."""

    name: str


class TopicsAnswer(msgspec.Struct, frozen=True, array_like=True):
    """All topics."""

    topics: tuple[TopicInfo, ...]


class DrainNodeHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with nothing."""

    node: NodeId
    draining: bool


class RemoveNodeHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with nothing."""

    node: NodeId


class TransferLeaderHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with nothing."""

    topic: str
    partition: int
    to: NodeId


class RaiseLevelHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `LevelAnswer`."""

    level: int | None = None
    """None: the highest that every node knows."""


class LevelAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The feature level the cluster works at."""

    level: int


class JoinHeader(msgspec.Struct, frozen=True, array_like=True):
    """A node asks to become, or to be again, a member. Answered with `JoinAnswer`."""

    node: NodeId | None
    """The id it was given before; None for a newcomer."""
    incarnation: Incarnation
    addresses: tuple[tuple[str, str], ...]
    region: str = ""
    zone: str = ""
    host: str = ""
    level_min: int = 1
    level_max: int = 1
    """The feature levels it can work at."""


class JoinAnswer(msgspec.Struct, frozen=True, array_like=True):
    """Who the newcomer is from now on, and where the others are."""

    cluster_id: str
    node: NodeId
    peers: tuple[tuple[NodeId, str], ...]
    """Nodes and their wire addresses."""
    level: int = 1
    """The feature level the cluster works at."""


__all__ = [
    "AlterTopicHeader",
    "ClusterStatus",
    "CreateTopicHeader",
    "Delivered",
    "DrainNodeHeader",
    "Drop",
    "Ended",
    "FetchAnswer",
    "FetchHeader",
    "FindOffsetAnswer",
    "FindOffsetHeader",
    "JoinAnswer",
    "JoinHeader",
    "LevelAnswer",
    "OpenProducerHeader",
    "Operation",
    "Producer",
    "PublishAnswer",
    "PublishHeader",
    "RaiseLevelHeader",
    "RemoveNodeHeader",
    "Told",
    "TopicHeader",
    "TopicsAnswer",
    "TransferLeaderHeader",
    "Want",
    "Wants",
    "Wish",
]
