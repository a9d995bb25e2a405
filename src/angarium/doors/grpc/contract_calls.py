"""Producers, topics and the cluster: one call of the contract each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api import TopicConfig
from angarium.doors.grpc.values import config_of, message_of, partition_of
from angarium.ids import NodeId
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from angarium.api import Broker
    from angarium.doors.grpc.calls import Context
    from angarium.doors.intake.partitions import TopicShapes


class Administration:
    """The unary calls that neither publish nor read."""

    def __init__(self, broker: Broker, shapes: TopicShapes) -> None:
        self._broker = broker
        self._shapes = shapes

    async def open_producer(
        self, request: pb.OpenProducerRequest, _: Context
    ) -> pb.OpenProducerResponse:
        """Issue a producer's identity."""
        name = request.name if request.HasField("name") else None
        producer = await self._broker.open_producer(name)
        return pb.OpenProducerResponse(producer_id=producer.id, epoch=producer.epoch)

    async def create_topic(
        self, request: pb.CreateTopicRequest, _: Context
    ) -> pb.CreateTopicResponse:
        """Make a topic."""
        topic = await self._broker.create_topic(
            request.name,
            partitions=request.partitions or 1,
            config=config_of(TopicConfig, request.config),
        )
        self._shapes.forget(request.name)
        return pb.CreateTopicResponse(topic=message_of(pb.TopicInfo, topic))

    async def alter_topic(self, request: pb.AlterTopicRequest, _: Context) -> pb.AlterTopicResponse:
        """Give a topic more partitions or other settings."""
        topic = await self._broker.alter_topic(
            request.name,
            partitions=request.partitions if request.HasField("partitions") else None,
            config=config_of(TopicConfig, request.config) if request.HasField("config") else None,
        )
        self._shapes.forget(request.name)
        return pb.AlterTopicResponse(topic=message_of(pb.TopicInfo, topic))

    async def delete_topic(
        self, request: pb.DeleteTopicRequest, _: Context
    ) -> pb.DeleteTopicResponse:
        """Remove a topic."""
        await self._broker.delete_topic(request.name)
        self._shapes.forget(request.name)
        return pb.DeleteTopicResponse()

    async def list_topics(self, _: pb.ListTopicsRequest, __: Context) -> pb.ListTopicsResponse:
        """Return all topics."""
        topics = await self._broker.list_topics()
        return pb.ListTopicsResponse(topics=[message_of(pb.TopicInfo, topic) for topic in topics])

    async def describe_topic(
        self, request: pb.DescribeTopicRequest, _: Context
    ) -> pb.DescribeTopicResponse:
        """Return one topic."""
        topic = await self._broker.describe_topic(request.name)
        return pb.DescribeTopicResponse(topic=message_of(pb.TopicInfo, topic))

    async def get_cluster_status(
        self, _: pb.GetClusterStatusRequest, __: Context
    ) -> pb.GetClusterStatusResponse:
        """Return the cluster."""
        return message_of(pb.GetClusterStatusResponse, await self._broker.cluster_status())

    async def drain_node(self, request: pb.DrainNodeRequest, _: Context) -> pb.DrainNodeResponse:
        """Move everything away from a node, or call that off."""
        await self._broker.drain_node(NodeId(request.node), draining=not request.undo)
        return pb.DrainNodeResponse()

    async def remove_node(self, request: pb.RemoveNodeRequest, _: Context) -> pb.RemoveNodeResponse:
        """Forget a node."""
        await self._broker.remove_node(NodeId(request.node))
        return pb.RemoveNodeResponse()

    async def transfer_leader(
        self, request: pb.TransferLeaderRequest, _: Context
    ) -> pb.TransferLeaderResponse:
        """Ask a leader to hand over."""
        await self._broker.transfer_leader(
            request.topic, partition_of(request.partition), NodeId(request.to)
        )
        return pb.TransferLeaderResponse()

    async def raise_level(self, request: pb.RaiseLevelRequest, _: Context) -> pb.RaiseLevelResponse:
        """Let the cluster work at a higher feature level."""
        level = request.level if request.HasField("level") else None
        return pb.RaiseLevelResponse(level=await self._broker.raise_level(level))
