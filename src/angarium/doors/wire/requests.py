"""The table of requests on the wire port: for each operation its header, its call, its answer.

`wire.operations` has the headers and answers. What does not fit in a row has a function below the
tables. PUBLISH and FETCH, the hot ones, are written out in `door`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from angarium.api.transactions import SequencedPublish, StageRequest
from angarium.doors.wire.answering import (
    asks,
    asks_nothing,
    asks_whole,
    brings_batches,
    in_payload,
)
from angarium.node.timekeeping import wall_clock
from angarium.service.transactions.participants import commands_in
from angarium.wire import operations as op
from angarium.wire import packed, roomy
from angarium.wire.operations import Operation, access, members, transactions

if TYPE_CHECKING:
    from angarium.api import Broker, GroupBroker, TopicInfo
    from angarium.api.access import AccessBroker
    from angarium.api.transactions import Aborted, Series, TransactionBroker
    from angarium.node.node import Node
    from angarium.service.access import PermittedBroker
    from angarium.service.broker import Service
    from angarium.service.dispatching import Dispatcher
    from angarium.wire import Request
    from angarium.wire.handlers import RequestHandler

    Rows: TypeAlias = dict[Operation, RequestHandler]


def of_clients(broker: PermittedBroker, dispatcher: Dispatcher) -> Rows:
    """Return what a principal may ask, if its grants say so."""
    return {
        **_about_records(broker),
        **_about_topics(broker, dispatcher),
        **_about_the_cluster(broker),
        **_about_groups(broker),
        **_about_transactions(broker),
        **_about_access(broker),
    }


def of_nodes(service: Service, node: Node) -> Rows:
    """Return what nodes ask before they are peers: one that wants to come in, and one that finds
    another process on its folder. Nobody else may, where nodes prove what they are."""

    def same_folder(request: Request) -> None:
        request.answer(node.rivals.prove(request.read(op.SameFolderHeader).nonce))

    return {
        Operation.JOIN: asks_whole(op.JoinHeader, service.join),
        Operation.SAME_FOLDER: same_folder,
    }


def of_peers(broker: Service, node: Node) -> Rows:
    """Return what only other nodes may ask."""

    # Those that need not wait answer inside the read, without a task.

    def partitions(request: Request) -> None:
        groups = request.read(op.PartitionsHeader).groups
        request.answer(*roomy(op.PartitionsAnswer(broker.partitions_here(groups))))

    def look(request: Request) -> None:
        seen = broker.groups.looking.seen_here(request.read(members.GroupLookHeader))
        request.answer(b"", [packed(members.GroupLookAnswer(seen))])

    def readiness(request: Request) -> None:
        request.answer(op.ReadinessAnswer(node.readiness.reasons(), node.durable_end))

    def clock(request: Request) -> None:
        # Now, and unchecked: the node that asks finds out by itself whether it is right.
        request.answer(op.ClockAnswer(wall_clock()))

    async def catalog(request: Request) -> None:
        request.answer(await node.catalog.serve(request.payload))

    async def transact(request: Request) -> None:
        header = request.read(transactions.TransactHeader)
        commands = commands_in(request.payload, header.lengths)
        told = await broker.transactions.participants.serve(header.group, commands)
        request.answer(transactions.TransactAnswer(told))

    return {
        Operation.PARTITIONS: partitions,
        Operation.GROUP_LOOK: look,
        Operation.GROUP_WISH: asks_whole(members.GroupWishHeader, broker.groups.wishes.grant),
        Operation.READINESS: readiness,
        Operation.CLOCK: clock,
        Operation.CATALOG: catalog,
        Operation.TRANSACT: transact,
    }


def _about_records(broker: PermittedBroker) -> Rows:
    return {
        Operation.FIND_OFFSET: asks(op.FindOffsetHeader, broker.find_offset, op.FindOffsetAnswer),
        Operation.OPEN_PRODUCER: asks(op.OpenProducerHeader, broker.open_producer),
        Operation.RESERVE: asks(op.ReserveHeader, broker.reserve, op.ReserveAnswer),
    }


def _about_topics(broker: Broker, dispatcher: Dispatcher) -> Rows:
    async def described(name: str) -> TopicInfo:
        info = await broker.describe_topic(name)
        # Clients ask this behind a subscription, over the same connection, to know that the
        # subscription is in place: on every node, then.
        await dispatcher.settled()
        return info

    return {
        Operation.CREATE_TOPIC: asks(op.CreateTopicHeader, broker.create_topic, layout=roomy),
        Operation.ALTER_TOPIC: asks(op.AlterTopicHeader, broker.alter_topic, layout=roomy),
        Operation.DELETE_TOPIC: asks(op.TopicHeader, broker.delete_topic),
        Operation.LIST_TOPICS: asks_nothing(broker.list_topics, op.TopicsAnswer, roomy),
        Operation.DESCRIBE_TOPIC: asks(op.TopicHeader, described, layout=roomy),
    }


def _about_the_cluster(broker: Broker) -> Rows:
    return {
        Operation.CLUSTER_STATUS: asks_nothing(broker.cluster_status),
        Operation.DRAIN_NODE: asks(op.DrainNodeHeader, broker.drain_node),
        Operation.REMOVE_NODE: asks(op.RemoveNodeHeader, broker.remove_node),
        Operation.TRANSFER_LEADER: asks(op.TransferLeaderHeader, broker.transfer_leader),
        Operation.RAISE_LEVEL: asks(op.RaiseLevelHeader, broker.raise_level, op.LevelAnswer),
    }


def _about_groups(groups: GroupBroker) -> Rows:
    return {
        Operation.SETTLE: asks(op.SettleHeader, groups.settle, op.SettleAnswer),
        Operation.LIST_GROUPS: asks_nothing(groups.list_groups, op.GroupsAnswer, in_payload),
        Operation.DESCRIBE_GROUP: asks(op.GroupHeader, groups.describe_group, layout=in_payload),
        Operation.ALTER_GROUP: asks(op.AlterGroupHeader, groups.alter_group, layout=in_payload),
        Operation.SEEK_GROUP: asks(
            op.SeekGroupHeader, groups.seek_group, op.SeekGroupAnswer, in_payload
        ),
        Operation.PAUSE_GROUP: asks(op.PauseGroupHeader, groups.pause_group),
        Operation.DELETE_GROUP: asks(op.DeleteGroupHeader, groups.delete_group),
        Operation.REPORT_CHECKPOINTS: asks(op.ReportCheckpointsHeader, groups.report_checkpoints),
    }


def _about_transactions(broker: TransactionBroker) -> Rows:
    async def opened(name: str, sequenced: bool) -> Series:
        return await (broker.open_sequenced if sequenced else broker.open_series)(name)

    async def forgotten(name: str, topics: tuple[str, ...], sequenced: bool) -> None:
        await (broker.forget_sequenced if sequenced else broker.forget_series)(name, topics)

    async def aborted(header: transactions.DecideHeader) -> Aborted:
        return await broker.abort(header.transaction, header.stages)

    return {
        Operation.OPEN_SERIES: asks(transactions.OpenSeriesHeader, opened),
        Operation.STAGE: brings_batches(transactions.StageHeader, StageRequest, broker.stage),
        Operation.COMMIT: asks(transactions.DecideHeader, broker.commit),
        Operation.ABORT: asks_whole(transactions.DecideHeader, aborted),
        Operation.FORGET_SERIES: asks(transactions.ForgetSeriesHeader, forgotten),
        Operation.PUBLISH_SEQUENCED: brings_batches(
            transactions.PublishSequencedHeader, SequencedPublish, broker.publish_sequenced
        ),
        Operation.LAST_SEQUENCE: asks(
            transactions.LastSequenceHeader, broker.last_sequence, transactions.LastSequenceAnswer
        ),
        Operation.SETTLED_BY: asks(transactions.SettledByHeader, broker.settled_by),
    }


def _about_access(broker: AccessBroker) -> Rows:
    return {
        Operation.WHOAMI: asks_nothing(broker.whoami, layout=in_payload),
        Operation.CAN: asks(access.CanHeader, broker.can, layout=in_payload),
        Operation.CREATE_USER: asks(access.CreateUserHeader, broker.create_user, layout=in_payload),
        Operation.ALTER_USER: asks(access.AlterUserHeader, broker.alter_user, layout=in_payload),
        Operation.DELETE_USER: asks(access.NameHeader, broker.delete_user),
        Operation.DESCRIBE_USER: asks(access.NameHeader, broker.describe_user, layout=in_payload),
        Operation.LIST_USERS: asks_nothing(broker.list_users, access.UsersAnswer, in_payload),
        Operation.CREATE_ROLE: asks(access.CreateRoleHeader, broker.create_role, layout=in_payload),
        Operation.DELETE_ROLE: asks(access.NameHeader, broker.delete_role),
        Operation.LIST_ROLES: asks_nothing(broker.list_roles, access.RolesAnswer, in_payload),
        Operation.CREATE_GRANT: asks(
            access.CreateGrantHeader, broker.create_grant, layout=in_payload
        ),
        Operation.DELETE_GRANT: asks(access.DeleteGrantHeader, broker.delete_grant),
        Operation.LIST_GRANTS: asks_nothing(broker.list_grants, access.GrantsAnswer, in_payload),
        Operation.CREATE_TOKEN: asks(
            access.CreateTokenHeader, broker.create_token, layout=in_payload
        ),
        Operation.DELETE_TOKEN: asks(access.DeleteTokenHeader, broker.delete_token),
        Operation.LIST_TOKENS: asks(
            access.ListTokensHeader, broker.list_tokens, access.TokensAnswer, in_payload
        ),
    }
