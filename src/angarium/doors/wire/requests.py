"""The table of requests on the wire port: for each operation its header, its call, its answer.

`wire.operations` has the headers and answers. What does not fit in a row has a function below the
tables. PUBLISH and FETCH, the hot ones, are written out in `door`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from angarium.api.backups import KeptAccounts, KeptPositions, RestoreRequest
from angarium.api.transactions import SequencedPublish, StageRequest
from angarium.doors.wire.answering import (
    asks,
    asks_nothing,
    asks_whole,
    brings,
    brings_batches,
    in_payload,
)
from angarium.errors import JoinRefused
from angarium.node.timekeeping import wall_clock
from angarium.service.transactions.participants import commands_in
from angarium.wire import operations as op
from angarium.wire import packed, roomy
from angarium.wire.operations import Operation, access, backups, members, quotas, transactions

if TYPE_CHECKING:
    from angarium.api import Broker, GroupBroker, TopicInfo
    from angarium.api.access import AccessBroker, JoinTokenBroker
    from angarium.api.backups import BackupBroker
    from angarium.api.balance import BalanceBroker
    from angarium.api.quotas import QuotaBroker
    from angarium.api.recovery import RecoveryBroker
    from angarium.api.transactions import Aborted, Series, TransactionBroker
    from angarium.node.node import Node
    from angarium.service.access import Access, PermittedBroker
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
        **_about_quotas(broker),
        **_about_join_tokens(broker),
        **_about_backups(broker),
        **_about_balance(broker),
        **_about_recovery(broker),
        Operation.DESCRIBE_UPGRADE: asks_nothing(broker.describe_upgrade, layout=in_payload),
    }


def of_nodes(service: Service, node: Node) -> Rows:
    """Return what nodes ask before they are peers: one that wants to come in, one that finds
    another process on its folder, and one that is asked what it is. Where nodes have
    certificates, all others are refused."""

    def same_folder(request: Request) -> None:
        request.answer(node.rivals.prove(request.read(op.SameFolderHeader).nonce))

    def own_registration(request: Request) -> None:
        request.answer(node.bindings.consents(request.read(op.OwnRegistrationHeader)))

    async def join(request: Request) -> None:
        shown = request.connection.peer_certificate if node.config.tls is not None else None
        name = None if shown is None else shown.node_name
        try:
            wish = request.read(op.JoinHeader)
            request.answer(await service.join(wish, "" if name is None else name.name))
        except JoinRefused as refused:
            node.admission.note_refusal(request.connection, "a wish to join", refused)
            raise

    return {
        Operation.JOIN: join,
        Operation.SAME_FOLDER: same_folder,
        Operation.OWN_REGISTRATION: own_registration,
    }


def of_strangers(node: Node) -> Rows:
    """Return the same for who has not proven to be a node, and has to: one refusal, with why."""

    def join(request: Request) -> None:
        node.admission.refuse_join(request.connection)

    return {Operation.JOIN: join}


def of_peers(broker: Service, node: Node, access: Access) -> Rows:
    """Return what only other nodes may ask."""

    # Those that need not wait answer inside the read, without a task.

    def partitions(request: Request) -> None:
        asked = request.read(op.PartitionsHeader)
        seen = broker.partitions_here(asked.groups, with_sizes=asked.with_sizes)
        request.answer(*roomy(op.PartitionsAnswer(seen)))

    def look(request: Request) -> None:
        seen = broker.groups.looking.seen_here(request.read(members.GroupLookHeader))
        request.answer(b"", [packed(members.GroupLookAnswer(seen))])

    def survivor(request: Request) -> None:
        seen = broker.recovering.seen_here(request.read(op.SurvivorHeader).group)
        request.answer(b"", [packed(seen)])

    def drained(request: Request) -> None:
        seen = broker.groups.hosting.draining.seen_here(request.read(members.DrainedHeader))
        request.answer(members.DrainedAnswer(seen))

    def staged(request: Request) -> None:
        request.answer(node.spanning.seen_here(request.read(transactions.StagedHeader)))

    def readiness(request: Request) -> None:
        facts = node.readiness.facts_of(node.id)
        request.answer(
            op.ReadinessAnswer(
                node.readiness.reasons(),
                node.durable_end,
                **msgspec.structs.asdict(facts),
                is_disk_full=node.host.wal.is_full,
            )
        )

    def clock(request: Request) -> None:
        # Now, and unchecked: the node that asks finds out by itself whether it is right.
        request.answer(op.ClockAnswer(wall_clock()))

    def quota_use(request: Request) -> None:
        request.answer(b"", [packed(access.sharing.used_here())])

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
        Operation.DRAINED: drained,
        Operation.STAGED: staged,
        Operation.GROUP_WISH: asks_whole(members.GroupWishHeader, broker.groups.wishes.grant),
        Operation.READINESS: readiness,
        Operation.SURVIVOR: survivor,
        Operation.CLOCK: clock,
        Operation.CATALOG: catalog,
        Operation.TRANSACT: transact,
        Operation.QUOTA_USE: quota_use,
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
        Operation.DELETE_ROLE: asks(access.DeleteRoleHeader, broker.delete_role),
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


def _about_quotas(broker: QuotaBroker) -> Rows:
    return {
        Operation.SET_QUOTA: asks(quotas.SetQuotaHeader, broker.set_quota, layout=in_payload),
        Operation.DELETE_QUOTA: asks(quotas.QuotaHeader, broker.delete_quota),
        Operation.DESCRIBE_QUOTA: asks(
            quotas.QuotaHeader, broker.describe_quota, layout=in_payload
        ),
        Operation.LIST_QUOTAS: asks_nothing(broker.list_quotas, quotas.QuotasAnswer, in_payload),
    }


def _about_join_tokens(broker: JoinTokenBroker) -> Rows:
    return {
        Operation.CREATE_JOIN_TOKEN: asks(
            access.CreateJoinTokenHeader, broker.create_join_token, layout=in_payload
        ),
        Operation.DELETE_JOIN_TOKEN: asks(access.DeleteJoinTokenHeader, broker.delete_join_token),
        Operation.LIST_JOIN_TOKENS: asks_nothing(
            broker.list_join_tokens, access.JoinTokensAnswer, in_payload
        ),
    }


def _about_backups(broker: BackupBroker) -> Rows:
    return {
        Operation.READ_POSITIONS: asks(
            backups.ReadPositionsHeader, broker.read_positions, layout=in_payload
        ),
        Operation.READ_ACCOUNTS: asks_nothing(broker.read_accounts, layout=in_payload),
        Operation.RESTORE_TOPIC: asks(
            backups.RestoreTopicHeader, broker.restore_topic, layout=roomy
        ),
        Operation.RESTORE_RECORDS: brings_batches(
            backups.RestoreRecordsHeader, RestoreRequest, broker.restore_records
        ),
        Operation.RESTORE_POSITIONS: brings(KeptPositions, broker.restore_positions),
        Operation.RESTORE_ACCOUNTS: brings(KeptAccounts, broker.restore_accounts, in_payload),
    }


def _about_balance(broker: BalanceBroker) -> Rows:
    return {
        Operation.DESCRIBE_BALANCE: asks_nothing(broker.describe_balance, layout=in_payload),
        Operation.REBALANCE: asks(op.RebalanceHeader, broker.rebalance, layout=in_payload),
        Operation.CANCEL_REBALANCE: asks_nothing(broker.cancel_rebalance, layout=in_payload),
        Operation.SET_AUTO_BALANCE: asks(
            op.SetAutoBalanceHeader, broker.set_auto_balance, layout=in_payload
        ),
    }


def _about_recovery(broker: RecoveryBroker) -> Rows:
    return {
        Operation.DESCRIBE_RECOVERY: asks(
            op.DescribeRecoveryHeader, broker.describe_recovery, layout=in_payload
        ),
        Operation.RECOVER_PARTITION: asks(
            op.RecoverPartitionHeader, broker.recover_partition, layout=in_payload
        ),
    }
