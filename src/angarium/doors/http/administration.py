"""Producers, topics and the cluster over REST: one call of the contract each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.api import TopicConfig
from angarium.doors.http.answers import NOTHING, json_answer
from angarium.doors.http.contract_values import topic_out
from angarium.doors.http.forms import chosen
from angarium.doors.http.routing import Routes
from angarium.doors.http.strict_json import json_body
from angarium.doors.http.values import (
    Cluster,
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
    TopicOut,
    Topics,
)
from angarium.ids import NodeId

if TYPE_CHECKING:
    from angarium.api import Broker
    from angarium.doors.http.routing import NoParameters
    from angarium.doors.intake.partitions import TopicShapes
    from angarium.wire.http.messages import Request, Response

_new_topic: Final = msgspec.json.Decoder(NewTopic)
_topic_change: Final = msgspec.json.Decoder(TopicChange)
_drain: Final = msgspec.json.Decoder(Drain)
_handover: Final = msgspec.json.Decoder(Handover)
_level: Final = msgspec.json.Decoder(LevelWish)
_producer: Final = msgspec.json.Decoder(ProducerName)


_topics: Final = Routes("topics")
_cluster: Final = Routes("cluster")


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
    """The requests that neither publish nor read: one call of the contract each."""

    def __init__(self, broker: Broker, shapes: TopicShapes) -> None:
        self._broker = broker
        self._shapes = shapes

    @_topics.get("/v1/topics", "List all topics.", answer=Topics)
    async def list_topics(self, _: Request, __: NoParameters) -> Response:
        topics = await self._broker.list_topics()
        return json_answer({"topics": [topic_out(one) for one in topics]})

    @_topics.post(
        "/v1/topics", "Make a topic.", body=NewTopic, answer=TopicOut, status=201, errors=(409,)
    )
    async def create_topic(self, request: Request, _: NoParameters) -> Response:
        wish = json_body(request, _new_topic)
        topic = await self._broker.create_topic(
            wish.name, partitions=wish.partitions, config=chosen(TopicConfig, wish.config)
        )
        self._shapes.forget(wish.name)
        return json_answer(topic_out(topic), status=201)

    @_topics.get(
        "/v1/topics/{topic}", "Describe a topic.", parameters=TopicParameters, answer=TopicOut
    )
    async def describe_topic(self, _: Request, given: TopicParameters) -> Response:
        return json_answer(topic_out(await self._broker.describe_topic(given.topic)))

    @_topics.patch(
        "/v1/topics/{topic}",
        "Give a topic more partitions or other settings.",
        parameters=TopicParameters,
        body=TopicChange,
        answer=TopicOut,
        errors=(409,),
    )
    async def alter_topic(self, request: Request, given: TopicParameters) -> Response:
        wish = json_body(request, _topic_change)
        topic = await self._broker.alter_topic(
            given.topic,
            partitions=wish.partitions,
            config=None if wish.config is None else chosen(TopicConfig, wish.config),
        )
        self._shapes.forget(given.topic)
        return json_answer(topic_out(topic))

    @_topics.delete(
        "/v1/topics/{topic}", "Remove a topic with everything in it.", parameters=TopicParameters
    )
    async def delete_topic(self, _: Request, given: TopicParameters) -> Response:
        await self._broker.delete_topic(given.topic)
        self._shapes.forget(given.topic)
        return NOTHING

    @_cluster.post(
        "/v1/topics/{topic}/partitions/{partition}/leader",
        "Ask a partition's leader to hand over.",
        parameters=PartitionParameters,
        body=Handover,
        errors=(409,),
    )
    async def transfer_leader(self, request: Request, given: PartitionParameters) -> Response:
        wish = json_body(request, _handover)
        await self._broker.transfer_leader(given.topic, given.partition, NodeId(wish.to))
        return NOTHING

    @Routes("producers").post(
        "/v1/producers",
        "Issue a producer's identity.",
        body=ProducerName,
        answer=ProducerOut,
        errors=(409,),
    )
    async def open_producer(self, request: Request, _: NoParameters) -> Response:
        producer = await self._broker.open_producer(json_body(request, _producer).name)
        return json_answer(ProducerOut(id=producer.id, epoch=producer.epoch))

    @_cluster.get("/v1/cluster", "The cluster, as this node sees it.", answer=Cluster)
    async def cluster_status(self, _: Request, __: NoParameters) -> Response:
        return json_answer(await self._broker.cluster_status())

    @_cluster.post(
        "/v1/cluster/nodes/{node}/drain",
        "Move everything away from a node, or call that off.",
        parameters=NodeParameters,
        body=Drain,
        errors=(409,),
    )
    async def drain_node(self, request: Request, given: NodeParameters) -> Response:
        wish = json_body(request, _drain)
        await self._broker.drain_node(NodeId(given.node), draining=wish.draining)
        return NOTHING

    @_cluster.delete(
        "/v1/cluster/nodes/{node}",
        "Forget a node that holds nothing any more.",
        parameters=NodeParameters,
        errors=(409,),
    )
    async def remove_node(self, _: Request, given: NodeParameters) -> Response:
        await self._broker.remove_node(NodeId(given.node))
        return NOTHING

    @_cluster.post(
        "/v1/cluster/level",
        "Let the cluster work at a higher feature level, the end of an upgrade.",
        body=LevelWish,
        answer=Level,
        errors=(409,),
    )
    async def raise_level(self, request: Request, _: NoParameters) -> Response:
        level = await self._broker.raise_level(json_body(request, _level).level)
        return json_answer(Level(level=level))
