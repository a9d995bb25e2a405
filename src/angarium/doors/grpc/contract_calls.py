"""The calls that are a method of the contract each: request fields in, its result out."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, Protocol

from angarium.api import Broker, GroupConfig, TopicConfig
from angarium.api.access import AccessBroker, JoinTokenBroker
from angarium.api.administration import AdministrationBroker
from angarium.api.balance import BalanceBroker
from angarium.api.quotas import QuotaBroker
from angarium.api.recovery import RecoveryBroker
from angarium.api.upgrades import UpgradeBroker
from angarium.doors.grpc.calls import answered
from angarium.doors.grpc.from_messages import readers
from angarium.doors.grpc.to_messages import responder
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from google.protobuf.message import Message

    from angarium.api import TopicInfo
    from angarium.doors.intake.partitions import TopicShapes
    from angarium.wire.grpc import Call, Method


METHODS: Final[Mapping[str, Callable[..., Awaitable[Any]]]] = {
    "FindOffset": Broker.find_offset,
    "Settle": Broker.settle,
    "ListGroups": Broker.list_groups,
    "DescribeGroup": Broker.describe_group,
    "SeekGroup": Broker.seek_group,
    "DeleteGroup": Broker.delete_group,
    "ReportCheckpoints": Broker.report_checkpoints,
    "ListTopics": Broker.list_topics,
    "DescribeTopic": Broker.describe_topic,
    "GetClusterStatus": Broker.cluster_status,
    "RemoveNode": Broker.remove_node,
    "TransferLeader": Broker.transfer_leader,
    "RaiseLevel": Broker.raise_level,
    "DescribeBalance": BalanceBroker.describe_balance,
    "Rebalance": BalanceBroker.rebalance,
    "CancelRebalance": BalanceBroker.cancel_rebalance,
    "SetAutoBalance": BalanceBroker.set_auto_balance,
    "DescribeUpgrade": UpgradeBroker.describe_upgrade,
    "DescribeRecovery": RecoveryBroker.describe_recovery,
    "RecoverPartition": RecoveryBroker.recover_partition,
    "Whoami": AccessBroker.whoami,
    "Can": AccessBroker.can,
    "CreateUser": AccessBroker.create_user,
    "AlterUser": AccessBroker.alter_user,
    "DeleteUser": AccessBroker.delete_user,
    "DescribeUser": AccessBroker.describe_user,
    "ListUsers": AccessBroker.list_users,
    "CreateRole": AccessBroker.create_role,
    "DeleteRole": AccessBroker.delete_role,
    "ListRoles": AccessBroker.list_roles,
    "CreateGrant": AccessBroker.create_grant,
    "DeleteGrant": AccessBroker.delete_grant,
    "ListGrants": AccessBroker.list_grants,
    "CreateToken": AccessBroker.create_token,
    "DeleteToken": AccessBroker.delete_token,
    "ListTokens": AccessBroker.list_tokens,
    "SetQuota": QuotaBroker.set_quota,
    "DeleteQuota": QuotaBroker.delete_quota,
    "DescribeQuota": QuotaBroker.describe_quota,
    "ListQuotas": QuotaBroker.list_quotas,
    "CreateJoinToken": JoinTokenBroker.create_join_token,
    "DeleteJoinToken": JoinTokenBroker.delete_join_token,
    "ListJoinTokens": JoinTokenBroker.list_join_tokens,
}
"""Calls that are a method of the contract, word for word."""


class GrpcBroker(Broker, AdministrationBroker, Protocol):
    """What the door serves: the contract, but for what only our own client speaks."""


def contract_calls(broker: GrpcBroker, shapes: TopicShapes) -> dict[str, Method]:
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

    async def open_producer(request: pb.OpenProducerRequest, _: Call) -> Message:
        producer = await broker.open_producer(request.name if request.HasField("name") else None)
        return pb.OpenProducerResponse(producer_id=producer.id, epoch=producer.epoch)

    own: dict[str, Callable[..., Awaitable[Any]]] = {
        "CreateTopic": create_topic,
        "AlterTopic": alter_topic,
        "DeleteTopic": delete_topic,
        "AlterGroup": lambda group, config: broker.alter_group(group, config or GroupConfig()),
        "PauseGroup": lambda group, undo: broker.pause_group(group, paused=not undo),
        "DrainNode": lambda node, undo: broker.drain_node(node, draining=not undo),
    }
    return {
        "OpenProducer": answered(pb.OpenProducerRequest, open_producer),
        **{name: _handler(name, method) for name, method in own.items()},
        **{name: _handler(name, method, broker) for name, method in METHODS.items()},
    }


def _handler(
    name: str, method: Callable[..., Awaitable[Any]], broker: GrpcBroker | None = None
) -> Method:
    """Serve a call by a function, or by a method of the contract that `broker` has."""
    request_class: type[Message] = getattr(pb, f"{name}Request")
    reading = readers(request_class)
    response_class: type[Message] = getattr(pb, f"{name}Response")
    response_of = responder(response_class)
    # The contract and the proto are declared apart. Where they differ, no door opens.
    inspect.signature(method).bind(*(() if broker is None else (broker,)), **dict.fromkeys(reading))

    async def handle(request: Message, _: Call) -> Message:
        given = {name: read(request) for name, read in reading.items()}
        call = method if broker is None else getattr(broker, method.__name__)
        return response_of(await call(**given))

    return answered(request_class, handle)
