"""Topics, producers and the cluster over REST: each request is one call of the contract.

The annotations of a call are its declaration (`routing.call`), so they are not put off here.
"""

from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from angarium.api import Broker, ClusterStatus, Producer, TopicConfig, TopicInfo
from angarium.doors.http.forms import TopicSettings, answer, chosen
from angarium.doors.http.record_json import Partition
from angarium.doors.http.routing import call
from angarium.doors.intake.partitions import TopicShapes
from angarium.ids import NodeId

NodeNumber = Annotated[int, Meta(ge=1, le=(1 << 14) - 1)]
Partitions = Annotated[int, Meta(ge=1, le=1_024)]

_topics: Final = partial(call, tag="topics")
_cluster: Final = partial(call, tag="cluster")
_producers: Final = partial(call, tag="producers")


@answer
class Topics(msgspec.Struct, frozen=True):
    """All topics, by name."""

    topics: tuple[TopicInfo, ...]


class NewTopic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A topic to make."""

    name: str
    partitions: Partitions = 1
    config: TopicSettings = TopicSettings()


class TopicChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What shall be different about a topic; what is absent stays."""

    partitions: Partitions | None = None
    """More than now."""
    config: TopicSettings | None = None
    """All settings anew: those left out take their defaults."""


class Drain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a node shall be emptied."""

    draining: bool = True


class Handover(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who shall lead."""

    to: NodeNumber


class LevelWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The feature level to work at; null: the highest that every node knows."""

    level: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


class Level(msgspec.Struct, frozen=True):
    """The feature level."""

    level: int


class ProducerName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who wants to publish; null: nobody in particular."""

    name: str | None = None


class TopicRoutes:
    """The requests that neither publish nor read."""

    def __init__(self, broker: Broker, shapes: TopicShapes) -> None:
        self._broker = broker
        self._shapes = shapes

    @_topics("GET /v1/topics", "List all topics.")
    async def list_topics(self) -> Topics:
        return Topics(await self._broker.list_topics())

    @_topics("POST /v1/topics", "Make a topic.", status=201)
    async def create_topic(self, body: NewTopic) -> TopicInfo:
        topic = await self._broker.create_topic(
            body.name, partitions=body.partitions, config=chosen(TopicConfig, body.config)
        )
        self._shapes.forget(body.name)
        return topic

    @_topics("GET /v1/topics/{topic}", "Describe a topic.")
    async def describe_topic(self, topic: str) -> TopicInfo:
        return await self._broker.describe_topic(topic)

    @_topics("PATCH /v1/topics/{topic}", "Give a topic more partitions or other settings.")
    async def alter_topic(self, topic: str, body: TopicChange) -> TopicInfo:
        config = None if body.config is None else chosen(TopicConfig, body.config)
        info = await self._broker.alter_topic(topic, partitions=body.partitions, config=config)
        self._shapes.forget(topic)
        return info

    @_topics("DELETE /v1/topics/{topic}", "Remove a topic with everything in it.")
    async def delete_topic(self, topic: str) -> None:
        await self._broker.delete_topic(topic)
        self._shapes.forget(topic)

    @_cluster(
        "POST /v1/topics/{topic}/partitions/{partition}/leader",
        "Ask a partition's leader to hand over.",
    )
    async def transfer_leader(self, topic: str, partition: Partition, body: Handover) -> None:
        await self._broker.transfer_leader(topic, partition, NodeId(body.to))

    @_producers("POST /v1/producers", "Issue a producer's identity.")
    async def open_producer(self, body: ProducerName) -> Producer:
        return await self._broker.open_producer(body.name)

    @_cluster("GET /v1/cluster", "The cluster, as this node sees it.")
    async def cluster_status(self) -> ClusterStatus:
        return await self._broker.cluster_status()

    @_cluster(
        "POST /v1/cluster/nodes/{node}/drain", "Move everything away from a node, or call that off."
    )
    async def drain_node(self, node: NodeNumber, body: Drain) -> None:
        await self._broker.drain_node(NodeId(node), draining=body.draining)

    @_cluster("DELETE /v1/cluster/nodes/{node}", "Forget a node that holds nothing any more.")
    async def remove_node(self, node: NodeNumber) -> None:
        await self._broker.remove_node(NodeId(node))

    @_cluster(
        "POST /v1/cluster/level",
        "Let the cluster work at a higher feature level, the end of an upgrade.",
    )
    async def raise_level(self, body: LevelWish) -> Level:
        return Level(await self._broker.raise_level(body.level))
