"""The calls that are a method of the contract each: request fields in, its result out."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from angarium.api import GroupConfig, TopicConfig
from angarium.doors.grpc.from_messages import readers
from angarium.doors.grpc.to_messages import responder
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import grpc
    from google.protobuf.message import Message

    from angarium.api import Broker, TopicInfo
    from angarium.doors.grpc.calls import Calls, Context
    from angarium.doors.intake.partitions import TopicShapes


def contract_calls(
    calls: Calls, broker: Broker, shapes: TopicShapes
) -> dict[str, grpc.RpcMethodHandler[bytes, bytes]]:
    """Return the handlers, by the name of the call.

    A request's fields are the arguments of the method, by name. Where protobuf says something
    another way, a function of its own makes up for it.
    """
    # A topic that is another one from now on is asked for again before the next publish.

    async def create_topic(name: str, partitions: int, config: TopicConfig | None) -> TopicInfo:
        topic = await broker.create_topic(
            name, partitions=partitions or 1, config=config or TopicConfig()
        )
        shapes.forget(name)
        return topic

    async def alter_topic(
        name: str, partitions: int | None, config: TopicConfig | None
    ) -> TopicInfo:
        topic = await broker.alter_topic(name, partitions=partitions, config=config)
        shapes.forget(name)
        return topic

    async def delete_topic(name: str) -> None:
        await broker.delete_topic(name)
        shapes.forget(name)

    async def open_producer(request: pb.OpenProducerRequest, _: Context) -> Message:
        producer = await broker.open_producer(request.name if request.HasField("name") else None)
        return pb.OpenProducerResponse(producer_id=producer.id, epoch=producer.epoch)

    methods: dict[str, Callable[..., Awaitable[Any]]] = {
        "FindOffset": broker.find_offset,
        "Settle": broker.settle,
        "ListGroups": broker.list_groups,
        "DescribeGroup": broker.describe_group,
        "AlterGroup": lambda group, config: broker.alter_group(group, config or GroupConfig()),
        "SeekGroup": broker.seek_group,
        "PauseGroup": lambda group, undo: broker.pause_group(group, paused=not undo),
        "DeleteGroup": broker.delete_group,
        "ReportCheckpoints": broker.report_checkpoints,
        "CreateTopic": create_topic,
        "AlterTopic": alter_topic,
        "DeleteTopic": delete_topic,
        "ListTopics": broker.list_topics,
        "DescribeTopic": broker.describe_topic,
        "GetClusterStatus": broker.cluster_status,
        "DrainNode": lambda node, undo: broker.drain_node(node, draining=not undo),
        "RemoveNode": broker.remove_node,
        "TransferLeader": broker.transfer_leader,
        "RaiseLevel": broker.raise_level,
    }
    return {
        "OpenProducer": calls.unary(pb.OpenProducerRequest, open_producer),
        **{name: _handler(calls, name, method) for name, method in methods.items()},
    }


def _handler(
    calls: Calls, name: str, method: Callable[..., Awaitable[Any]]
) -> grpc.RpcMethodHandler[bytes, bytes]:
    request_class: type[Message] = getattr(pb, f"{name}Request")
    response_class: type[Message] = getattr(pb, f"{name}Response")
    reading, response_of = readers(request_class), responder(response_class)
    # The contract and the proto are declared apart. Where they differ, no door opens.
    inspect.signature(method).bind(**dict.fromkeys(reading))

    async def handle(request: Message, _: Context) -> Message:
        return response_of(await method(**{name: read(request) for name, read in reading.items()}))

    return calls.unary(request_class, handle)
