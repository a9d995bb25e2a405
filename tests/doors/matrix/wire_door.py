"""The wire port, frame by frame: no client of ours that would repeat, route or look twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from tests.doors.matrix.answers import ANSWER_S_MAX, Answer, Door, listed
from tests.doors.matrix.callers import PASSWORD

from angarium.api import ClusterStatus
from angarium.client.login import Login
from angarium.errors import AngariumError
from angarium.wire import HandshakeRefused, Hello, Role, Unreachable, dial, packed
from angarium.wire import operations as op
from angarium.wire.operations import Operation, access, backups, quotas, transactions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.doors.matrix.callers import Caller
    from tests.doors.matrix.world import World

    from angarium.bench.cluster import BenchNode
    from angarium.wire import Connection, Frame

BETWEEN_NODES: Final = frozenset(
    {
        *(Operation.JOIN, Operation.PEER, Operation.CATALOG, Operation.DISPATCH),
        *(Operation.INTERESTS, Operation.ATTACH, Operation.GROUP_WISH, Operation.PARTITIONS),
        *(
            Operation.GROUP_LOOK,
            Operation.DRAINED,
            Operation.STAGED,
            Operation.READINESS,
            Operation.TRANSACT,
            Operation.CLOCK,
        ),
        *(Operation.SAME_FOLDER, Operation.QUOTA_USE, Operation.SURVIVOR),
        Operation.OWN_REGISTRATION,
    }
)
"""What only nodes say. To a client it is as if there were no such thing."""


class Call(NamedTuple):
    """How a method is asked for."""

    operation: Operation
    header: Callable[[Mapping[str, Any]], Any]
    payload: Callable[[Mapping[str, Any]], Sequence[bytes]] = lambda _: ()
    read: Callable[[Frame], Answer] = lambda _: Answer()
    is_stream: bool = False


def _named(kind: type[Any]) -> Callable[[Mapping[str, Any]], Any]:
    """Return what makes a header of arguments of the same names."""
    return lambda given: kind(**given)


def _nothing(_: Mapping[str, Any]) -> bytes:
    return b""


def _batches(given: Mapping[str, Any]) -> Sequence[bytes]:
    batches: Sequence[bytes] = given["request"].batches
    return batches


def _fields(kind: type[Any], *names: str) -> Callable[[Mapping[str, Any]], Any]:
    """Return what makes a header of fields of the request."""
    return lambda given: kind(*(getattr(given["request"], name) for name in names))


def _status(frame: Frame) -> Answer:
    return Answer(is_less=frame.read(ClusterStatus).catalog_index == 0)


METHODS: Final[dict[str, Call]] = {
    "publish": Call(
        Operation.PUBLISH, _fields(op.PublishHeader, "topic", "partition"), payload=_batches
    ),
    "reserve": Call(Operation.RESERVE, _named(op.ReserveHeader)),
    "fetch": Call(
        Operation.FETCH, _fields(op.FetchHeader, "topic", "partition", "offset", "bytes_max")
    ),
    "find_offset": Call(Operation.FIND_OFFSET, _named(op.FindOffsetHeader)),
    "subscribe": Call(
        Operation.SUBSCRIBE,
        lambda given: op.Wants(
            tuple(
                op.Want(number, one.topic, one.partition, one.start)
                for number, one in enumerate(given["interests"], 1)
            )
        ),
        is_stream=True,
    ),
    "open_producer": Call(Operation.OPEN_PRODUCER, _named(op.OpenProducerHeader)),
    "create_topic": Call(Operation.CREATE_TOPIC, _named(op.CreateTopicHeader)),
    "alter_topic": Call(Operation.ALTER_TOPIC, _named(op.AlterTopicHeader)),
    "delete_topic": Call(Operation.DELETE_TOPIC, _named(op.TopicHeader)),
    "list_topics": Call(
        Operation.LIST_TOPICS,
        _nothing,
        read=lambda frame: listed(frame.read_large(op.TopicsAnswer).topics),
    ),
    "describe_topic": Call(Operation.DESCRIBE_TOPIC, _named(op.TopicHeader)),
    "cluster_status": Call(Operation.CLUSTER_STATUS, _nothing, read=_status),
    "drain_node": Call(Operation.DRAIN_NODE, _named(op.DrainNodeHeader)),
    "remove_node": Call(Operation.REMOVE_NODE, _named(op.RemoveNodeHeader)),
    "transfer_leader": Call(Operation.TRANSFER_LEADER, _named(op.TransferLeaderHeader)),
    "raise_level": Call(Operation.RAISE_LEVEL, _named(op.RaiseLevelHeader)),
    "describe_balance": Call(Operation.DESCRIBE_BALANCE, _nothing),
    "rebalance": Call(Operation.REBALANCE, _named(op.RebalanceHeader)),
    "cancel_rebalance": Call(Operation.CANCEL_REBALANCE, _nothing),
    "describe_recovery": Call(Operation.DESCRIBE_RECOVERY, _named(op.DescribeRecoveryHeader)),
    "describe_upgrade": Call(Operation.DESCRIBE_UPGRADE, _nothing),
    "recover_partition": Call(Operation.RECOVER_PARTITION, _named(op.RecoverPartitionHeader)),
    "set_auto_balance": Call(Operation.SET_AUTO_BALANCE, _named(op.SetAutoBalanceHeader)),
    "consume": Call(Operation.CONSUME, _named(op.ConsumeHeader), is_stream=True),
    "settle": Call(
        Operation.SETTLE,
        _named(op.SettleHeader),
        read=lambda frame: Answer(code=frame.read(op.SettleAnswer).settled[0].code),
    ),
    "report_checkpoints": Call(Operation.REPORT_CHECKPOINTS, _named(op.ReportCheckpointsHeader)),
    "list_groups": Call(
        Operation.LIST_GROUPS,
        _nothing,
        read=lambda frame: listed(frame.unpack(op.GroupsAnswer).groups),
    ),
    "describe_group": Call(Operation.DESCRIBE_GROUP, _named(op.GroupHeader)),
    "alter_group": Call(Operation.ALTER_GROUP, _named(op.AlterGroupHeader)),
    "seek_group": Call(Operation.SEEK_GROUP, _named(op.SeekGroupHeader)),
    "pause_group": Call(Operation.PAUSE_GROUP, _named(op.PauseGroupHeader)),
    "delete_group": Call(Operation.DELETE_GROUP, _named(op.DeleteGroupHeader)),
    "open_series": Call(Operation.OPEN_SERIES, _named(transactions.OpenSeriesHeader)),
    "stage": Call(
        Operation.STAGE,
        _fields(
            transactions.StageHeader, "transaction", "stage", "part", "topic", "partition", "acks"
        ),
        payload=_batches,
    ),
    "commit": Call(Operation.COMMIT, _named(transactions.DecideHeader)),
    "abort": Call(Operation.ABORT, _named(transactions.DecideHeader)),
    "forget_series": Call(Operation.FORGET_SERIES, _named(transactions.ForgetSeriesHeader)),
    "open_sequenced": Call(
        Operation.OPEN_SERIES,
        lambda given: transactions.OpenSeriesHeader(given["producer"], sequenced=True),
    ),
    "forget_sequenced": Call(
        Operation.FORGET_SERIES,
        lambda given: transactions.ForgetSeriesHeader(
            given["producer"], given["topics"], sequenced=True
        ),
    ),
    "publish_sequenced": Call(
        Operation.PUBLISH_SEQUENCED,
        _fields(
            transactions.PublishSequencedHeader,
            *("producer", "epoch", "sequence", "topic", "partition"),
        ),
        payload=_batches,
    ),
    "last_sequence": Call(Operation.LAST_SEQUENCE, _named(transactions.LastSequenceHeader)),
    "settled_by": Call(Operation.SETTLED_BY, _named(transactions.SettledByHeader)),
    "whoami": Call(Operation.WHOAMI, _nothing),
    "can": Call(Operation.CAN, _named(access.CanHeader)),
    "create_user": Call(Operation.CREATE_USER, _named(access.CreateUserHeader)),
    "alter_user": Call(Operation.ALTER_USER, _named(access.AlterUserHeader)),
    "delete_user": Call(Operation.DELETE_USER, _named(access.NameHeader)),
    "describe_user": Call(Operation.DESCRIBE_USER, _named(access.NameHeader)),
    "list_users": Call(
        Operation.LIST_USERS,
        _nothing,
        read=lambda frame: listed(frame.unpack(access.UsersAnswer).users),
    ),
    "create_role": Call(Operation.CREATE_ROLE, _named(access.CreateRoleHeader)),
    "delete_role": Call(Operation.DELETE_ROLE, _named(access.DeleteRoleHeader)),
    "list_roles": Call(
        Operation.LIST_ROLES,
        _nothing,
        read=lambda frame: listed(frame.unpack(access.RolesAnswer).roles),
    ),
    "create_grant": Call(Operation.CREATE_GRANT, _named(access.CreateGrantHeader)),
    "delete_grant": Call(Operation.DELETE_GRANT, _named(access.DeleteGrantHeader)),
    "list_grants": Call(Operation.LIST_GRANTS, _nothing),
    "create_token": Call(Operation.CREATE_TOKEN, _named(access.CreateTokenHeader)),
    "delete_token": Call(Operation.DELETE_TOKEN, _named(access.DeleteTokenHeader)),
    "list_tokens": Call(
        Operation.LIST_TOKENS,
        _named(access.ListTokensHeader),
        read=lambda frame: listed(frame.unpack(access.TokensAnswer).tokens, by="owner"),
    ),
    "set_quota": Call(Operation.SET_QUOTA, _named(quotas.SetQuotaHeader)),
    "delete_quota": Call(Operation.DELETE_QUOTA, _named(quotas.QuotaHeader)),
    "describe_quota": Call(Operation.DESCRIBE_QUOTA, _named(quotas.QuotaHeader)),
    "list_quotas": Call(Operation.LIST_QUOTAS, _nothing),
    "create_join_token": Call(Operation.CREATE_JOIN_TOKEN, _named(access.CreateJoinTokenHeader)),
    "delete_join_token": Call(Operation.DELETE_JOIN_TOKEN, _named(access.DeleteJoinTokenHeader)),
    "list_join_tokens": Call(Operation.LIST_JOIN_TOKENS, _nothing),
    "read_positions": Call(Operation.READ_POSITIONS, _named(backups.ReadPositionsHeader)),
    "read_accounts": Call(Operation.READ_ACCOUNTS, _nothing),
    "restore_topic": Call(Operation.RESTORE_TOPIC, _named(backups.RestoreTopicHeader)),
    "restore_records": Call(
        Operation.RESTORE_RECORDS,
        _fields(backups.RestoreRecordsHeader, "topic", "partition", "next_offset"),
        payload=_batches,
    ),
    "restore_positions": Call(
        Operation.RESTORE_POSITIONS, _nothing, payload=lambda given: [packed(given["kept"])]
    ),
    "restore_accounts": Call(
        Operation.RESTORE_ACCOUNTS, _nothing, payload=lambda given: [packed(given["accounts"])]
    ),
}


def _first(call: Call, frame: Frame | None) -> Answer:
    """Return what the first frame of a stream says."""
    if frame is not None and call.operation is Operation.SUBSCRIBE:
        told = frame.read(cast("type[op.Told]", op.Told))
        if isinstance(told, op.Ended):
            return Answer(code=told.code, text=told.message)
    return Answer()


async def dialled(node: BenchNode) -> Connection:
    """Return a connection to one node; on a busy machine it takes longer than a greeting may."""
    host, _, port = node.wire.rpartition(":")
    hello = Hello(role=Role.CLIENT)
    async with asyncio.timeout(ANSWER_S_MAX * 5):
        while True:
            try:
                return await dial(host=host, port=int(port), hello=hello, timeout_s=ANSWER_S_MAX)
            except (HandshakeRefused, Unreachable):
                await asyncio.sleep(0.2)


class WireDoor(Door):
    """One node's wire port, with a connection for each caller."""

    name = "wire"
    methods = METHODS

    def __init__(self, world: World, node: BenchNode) -> None:
        self._world = world
        self._node = node
        self._connections: dict[str, Connection] = {}

    @classmethod
    def declared(cls) -> Mapping[str, str]:
        behind = {call.operation: method for method, call in METHODS.items()}
        free = {Operation.AUTHENTICATE: "", **dict.fromkeys(BETWEEN_NODES, "")}
        return {one.name: {**behind, **free}.get(one, "?") for one in Operation}

    async def ask(self, caller: Caller, method: str, given: dict[str, Any]) -> Answer:
        call = METHODS[method]
        connection = await self._connection(caller)
        header = call.header(given)
        try:
            if call.is_stream:
                stream = connection.open_stream(int(call.operation), header)
                try:
                    return _first(call, await stream.receive())
                finally:
                    stream.cancel()
            frame = await connection.request(
                int(call.operation), header, call.payload(given), timeout_s=ANSWER_S_MAX
            )
        except AngariumError as error:
            return Answer(code=error.code, text=str(error))
        return call.read(frame)

    async def ask_as_a_node(self, caller: Caller, operation: Operation) -> Answer:
        """Say something that only nodes say."""
        connection = await self._connection(caller)
        try:
            await connection.request(int(operation), b"", timeout_s=ANSWER_S_MAX)
        except AngariumError as error:
            return Answer(code=error.code, text=str(error))
        return Answer()

    async def _connection(self, caller: Caller) -> Connection:
        known = self._connections.get(caller.name)
        if known is not None and known.is_open:
            if caller.user:
                return known
            # A node hangs up on who does not say who it is, perhaps in the middle of a call.
            await known.close(timeout_s=1.0)
        made = await dialled(self._node)
        if caller.narrowing is not None:
            await Login(token=self._world.token).prove(made, timeout_s=ANSWER_S_MAX)
        elif caller.user:
            login = Login(user=caller.user, password=PASSWORD)
            await login.prove(made, timeout_s=ANSWER_S_MAX)
        self._connections[caller.name] = made
        return made

    async def close(self) -> None:
        for one in self._connections.values():
            await one.close(timeout_s=1.0)
