"""Producers, topics and the cluster over REST: one call of the contract each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.doors.http.answers import NOTHING, json_answer
from angarium.doors.http.contract_values import cluster_out, config_of, topic_out
from angarium.doors.http.strict_json import json_body
from angarium.doors.http.values import (
    Drain,
    Handover,
    Level,
    LevelWish,
    NewTopic,
    NodeNumber,
    Partition,
    ProducerName,
    ProducerOut,
    TopicChange,
    Topics,
)
from angarium.ids import NodeId

if TYPE_CHECKING:
    from angarium.api import Broker
    from angarium.doors.http.routing import NoParameters
    from angarium.doors.http.server.messages import Request, Response
    from angarium.doors.partitions import TopicShapes

_new_topic: Final = msgspec.json.Decoder(NewTopic)
_topic_change: Final = msgspec.json.Decoder(TopicChange)
_drain: Final = msgspec.json.Decoder(Drain)
_handover: Final = msgspec.json.Decoder(Handover)
_level: Final = msgspec.json.Decoder(LevelWish)
_producer: Final = msgspec.json.Decoder(ProducerName)


class TopicParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which topic."""

    topic: str


class PartitionParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which partition."""

    topic: str
    partition: Partition


class NodeParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which node."""

    node: NodeNumber


class Administration:
    """The requests that neither publish nor read."""

    def __init__(self, broker: Broker, shapes: TopicShapes) -> None:
        self._broker = broker
        self._shapes = shapes

    async def list_topics(self, _: Request, __: NoParameters) -> Response:
        """Return all topics."""
        topics = await self._broker.list_topics()
        return json_answer(Topics(topics=[topic_out(one) for one in topics]))

    async def create_topic(self, request: Request, _: NoParameters) -> Response:
        """Make a topic."""
        wish = json_body(request, _new_topic)
        topic = await self._broker.create_topic(
            wish.name, partitions=wish.partitions, config=config_of(wish.config)
        )
        self._shapes.forget(wish.name)
        return json_answer(topic_out(topic), status=201)

    async def describe_topic(self, _: Request, given: TopicParameters) -> Response:
        """Return one topic."""
        return json_answer(topic_out(await self._broker.describe_topic(given.topic)))

    async def alter_topic(self, request: Request, given: TopicParameters) -> Response:
        """Give a topic more partitions or other settings."""
        wish = json_body(request, _topic_change)
        topic = await self._broker.alter_topic(
            given.topic,
            partitions=wish.partitions,
            config=None if wish.config is None else config_of(wish.config),
        )
        self._shapes.forget(given.topic)
        return json_answer(topic_out(topic))

    async def delete_topic(self, _: Request, given: TopicParameters) -> Response:
        """Remove a topic."""
        await self._broker.delete_topic(given.topic)
        self._shapes.forget(given.topic)
        return NOTHING

    async def transfer_leader(self, request: Request, given: PartitionParameters) -> Response:
        """Ask a partition's leader to hand over."""
        wish = json_body(request, _handover)
        await self._broker.transfer_leader(given.topic, given.partition, NodeId(wish.to))
        return NOTHING

    async def open_producer(self, request: Request, _: NoParameters) -> Response:
        """Issue a producer's identity."""
        producer = await self._broker.open_producer(json_body(request, _producer).name)
        return json_answer(ProducerOut(id=producer.id, epoch=producer.epoch))

    async def cluster_status(self, _: Request, __: NoParameters) -> Response:
        """Return the cluster."""
        return json_answer(cluster_out(await self._broker.cluster_status()))

    async def drain_node(self, request: Request, given: NodeParameters) -> Response:
        """Move everything away from a node, or call that off."""
        wish = json_body(request, _drain)
        await self._broker.drain_node(NodeId(given.node), draining=wish.draining)
        return NOTHING

    async def remove_node(self, _: Request, given: NodeParameters) -> Response:
        """Forget a node."""
        await self._broker.remove_node(NodeId(given.node))
        return NOTHING

    async def raise_level(self, request: Request, _: NoParameters) -> Response:
        """Let the cluster work at a higher feature level."""
        level = await self._broker.raise_level(json_body(request, _level).level)
        return json_answer(Level(level=level))
