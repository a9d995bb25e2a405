"""What is called: each method of the contract with arguments, and which things it is done to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from angarium.api import (
    Checkpoint,
    ConsumeRequest,
    FetchRequest,
    GroupConfig,
    Interest,
    PublishRequest,
    Settlement,
    Start,
    StartAt,
    TopicConfig,
    Verb,
)
from angarium.api.access import Action, Grant, ResourceKind, SubjectKind
from angarium.api.backups import KeptAccounts, KeptPositions, RestoreRequest
from angarium.api.quotas import UNLIMITED, QuotaKind, QuotaSubject
from angarium.api.transactions import (
    GroupAck,
    SequencedPublish,
    StagedIn,
    StageRequest,
    TransactionId,
)
from angarium.batch import encode_one
from angarium.ids import Epoch, NodeId, Offset
from angarium.service.access.rules import LETTER_RULES, RULES, Asks, Rule

if TYPE_CHECKING:
    from collections.abc import Callable

PREFIXES: Final = {"plain": "team-ab", "team": "team-a", "own": "angarium"}
"""What names begin with: those of a team, those of another whose name only begins alike, and the
cluster's own."""

EARLIEST: Final = Start(StartAt.EARLIEST)
LETTERS: Final = "with a dead-letter topic"
NO_NODE: Final = 4_321
"""A node that there is not."""

DOOR_RULES: Final = {
    "metrics": Rule((Asks(Action.METRICS_READ, ResourceKind.CLUSTER, lambda _: ("",)),))
}
"""What doors ask by themselves: it is no method of the contract."""

METHODS: Final[dict[str, Rule]] = {
    **RULES,
    **{f"dead_letters.{name}": rule for name, rule in LETTER_RULES.items()},
    **DOOR_RULES,
}
"""All that has a rule. Whatever is missing in the rows makes a test fail."""


@dataclass(frozen=True, kw_only=True)
class Names:
    """The things that one call is done to."""

    topic: str
    group: str
    series: str
    producer: str
    user: str
    role: str
    token: str
    grant: int
    quota: str
    """The user whose it is."""
    join_token: int
    fresh: str
    """Nothing is called so yet."""
    number: int
    """Not used before."""
    epoch: int
    """Of the series that transactions are written in."""
    roles: tuple[str, ...] = ()
    """Those that the user has."""

    def batch(self) -> bytes:
        return bytes(encode_one(b"x"))

    def transaction(self) -> TransactionId:
        return TransactionId(self.series, Epoch(self.epoch), self.number)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method with arguments."""

    method: str
    given: Callable[[Names], dict[str, Any]]
    what: str = ""
    """What is particular about these arguments."""
    cases: tuple[str, ...] = ("plain", "team")
    takes: str = ""
    """Which of the things it uses up: a new one is made for the next call."""
    beyond: frozenset[str] = frozenset()
    """Codes that only come behind the table: so far the call was allowed."""
    is_own: bool = False
    """It is about the caller itself."""

    @property
    def rule(self) -> Rule:
        return METHODS[self.method]

    def __str__(self) -> str:
        return f"{self.method} {self.what}".strip()


def _row(method: str, given: Callable[[Names], dict[str, Any]], **more: Any) -> Row:
    return Row(method=method, given=given, **more)


def _once(method: str, given: Callable[[Names], dict[str, Any]], **more: Any) -> Row:
    """Return a row that touches nothing with a name."""
    return Row(method=method, given=given, cases=("plain",), **more)


def _codes(*codes: str) -> frozenset[str]:
    return frozenset(codes)


def _group_config(n: Names) -> GroupConfig:
    return GroupConfig(dead_letter_topic=n.topic)


_RECORDS: Final = (
    _row(
        "publish",
        lambda n: {"request": PublishRequest(topic=n.topic, partition=0, batches=(n.batch(),))},
    ),
    _row("reserve", lambda n: {"topic": n.topic, "partition": 0, "count": 1}),
    _row(
        "fetch",
        lambda n: {"request": FetchRequest(topic=n.topic, partition=0, offset=Offset(0))},
    ),
    _row("find_offset", lambda n: {"topic": n.topic, "partition": 0, "start": EARLIEST}),
    _row(
        "subscribe",
        lambda n: {"interests": [Interest(topic=n.topic, partition=0, start=EARLIEST)]},
    ),
    _row("subscribe_passing", lambda n: {"topic": n.topic, "partitions": [0]}),
    _row("open_producer", lambda n: {"name": n.producer}),
    _once("open_producer", lambda _: {"name": None}, what="without a name"),
)

_TOPICS: Final = (
    _row("create_topic", lambda n: {"name": n.fresh, "partitions": 1, "config": TopicConfig()}),
    _row(
        "alter_topic",
        lambda n: {
            "name": n.topic,
            "partitions": None,
            "config": TopicConfig(retention_ms=86_400_000),
        },
    ),
    _row("delete_topic", lambda n: {"name": n.topic}, takes="topic"),
    _once("list_topics", lambda _: {}),
    _row("describe_topic", lambda n: {"name": n.topic}),
)

_CLUSTER: Final = (
    _once("cluster_status", lambda _: {}),
    _once("drain_node", lambda _: {"node": NodeId(1), "draining": False}),
    _once("remove_node", lambda _: {"node": NodeId(NO_NODE)}, beyond=_codes("NOT_FOUND")),
    _row("transfer_leader", lambda n: {"topic": n.topic, "partition": 0, "to": NodeId(1)}),
    _once("raise_level", lambda _: {"level": None}),
    _once("describe_balance", lambda _: {}),
    _once("rebalance", lambda _: {"bytes_per_s": None}),
    _once("cancel_rebalance", lambda _: {}, beyond=_codes("PRECONDITION_FAILED")),
    _once("set_auto_balance", lambda _: {"automatic": False}),
    _once("describe_upgrade", lambda _: {}),
    _row("describe_recovery", lambda n: {"topic": n.topic, "partition": 0}),
    _row(
        "recover_partition",
        lambda n: {"topic": n.topic, "partition": 0, "code": "00000000"},
        beyond=_codes("PRECONDITION_FAILED"),
    ),
    _once("metrics", lambda _: {}),
    _once("metrics", lambda _: {"page": "/status"}, what="of /status"),
)

_GROUPS: Final = (
    _row("consume", lambda n: {"request": ConsumeRequest(group=n.group, topics=(n.topic,))}),
    _row(
        "consume",
        lambda n: {
            "request": ConsumeRequest(group=n.group, topics=(n.topic,), config=_group_config(n))
        },
        what=LETTERS,
    ),
    _row(
        "settle",
        lambda n: {
            "group": n.group,
            "member": "nobody",
            "settlements": (Settlement(n.topic, 0, Verb.ACK, (0, 1)),),
        },
        beyond=_codes("GROUP_FENCED"),
    ),
    _row(
        "report_checkpoints",
        lambda n: {"group": f"{n.group}-log", "checkpoints": (Checkpoint(n.topic, 0, Offset(0)),)},
    ),
    _once("list_groups", lambda _: {}),
    _row("describe_group", lambda n: {"group": n.group}),
    _row("alter_group", lambda n: {"group": n.group, "config": GroupConfig()}),
    _row(
        "alter_group",
        lambda n: {"group": n.group, "config": _group_config(n)},
        what=LETTERS,
    ),
    _row(
        "seek_group",
        lambda n: {
            "group": n.group,
            "topic": None,
            "partition": None,
            "start": EARLIEST,
            "dry_run": True,
        },
    ),
    _row(
        "seek_group",
        lambda n: {
            "group": n.group,
            "topic": n.topic,
            "partition": 0,
            "start": EARLIEST,
            "dry_run": True,
        },
        what="in a topic",
    ),
    _row("pause_group", lambda n: {"group": n.group, "paused": False}),
    _row("delete_group", lambda n: {"group": n.group, "topic": None}, takes="group"),
    _row(
        "delete_group",
        lambda n: {"group": n.group, "topic": n.topic},
        what="in a topic",
        takes="group",
    ),
)

_LETTERS: Final = tuple(
    _row(f"dead_letters.{name}", lambda n: {"topic": n.topic}, cases=("plain", "team", "own"))
    for name in LETTER_RULES
)

_TRANSACTIONS: Final = (
    _row("open_series", lambda n: {"name": f"{n.series}-opened"}),
    _row(
        "stage",
        lambda n: {
            "request": StageRequest(
                transaction=n.transaction(),
                stage="s",
                part=0,
                topic=n.topic,
                partition=0,
                batches=(n.batch(),),
            )
        },
        what="of batches",
    ),
    _row(
        "stage",
        lambda n: {
            "request": StageRequest(
                transaction=n.transaction(),
                stage="s",
                part=0,
                topic=n.topic,
                partition=0,
                acks=(GroupAck(n.group, (0, 1)),),
            )
        },
        what="of acknowledgements",
        # Members at other doors, which are tried side by side, may have settled it.
        beyond=_codes("GROUP_FENCED"),
    ),
    _row(
        "commit",
        lambda n: {"transaction": n.transaction(), "stages": (), "content": ""},
    ),
    _row(
        "commit",
        lambda n: {
            "transaction": n.transaction(),
            "stages": (StagedIn(n.topic, 0, ("unknown",)),),
            "content": "",
        },
        what="of stages",
        beyond=_codes("TRANSACTION_ABORTED", "PRECONDITION_FAILED", "INVALID_ARGUMENT"),
    ),
    _row(
        "abort",
        lambda n: {"transaction": n.transaction(), "stages": (StagedIn(n.topic, 0, ("s",)),)},
    ),
    _row("forget_series", lambda n: {"name": n.fresh, "topics": (n.topic,)}),
    _row("open_sequenced", lambda n: {"producer": f"{n.producer}-opened"}),
    _row("forget_sequenced", lambda n: {"producer": n.fresh, "topics": (n.topic,)}),
    _row(
        "publish_sequenced",
        lambda n: {
            "request": SequencedPublish(
                producer=n.producer,
                epoch=Epoch(0),
                sequence=n.number,
                topic=n.topic,
                partition=0,
                batches=(n.batch(),),
            )
        },
    ),
    _row(
        "last_sequence",
        lambda n: {"producer": n.producer, "epoch": Epoch(0), "topic": n.topic, "partition": 0},
    ),
    _row("settled_by", lambda n: {"group": n.group, "topic": n.topic, "partition": 0}),
)

_ACCESS: Final = (
    _once("whoami", lambda _: {}),
    _row(
        "can",
        lambda n: {
            "user": n.user,
            "action": "topic.read",
            "kind": ResourceKind.TOPIC,
            "name": n.topic,
        },
    ),
    _row("create_user", lambda n: {"name": n.fresh, "roles": ()}),
    _row("create_user", lambda n: {"name": n.fresh, "roles": ("monitor",)}, what="with a role"),
    _row("alter_user", lambda n: {"name": n.user, "roles": n.roles}, what="of roles"),
    _row("alter_user", lambda n: {"name": n.user, "is_locked": False}, what="of the lock"),
    _row("delete_user", lambda n: {"name": n.user}, takes="user"),
    _row("describe_user", lambda n: {"name": n.user}),
    _once("list_users", lambda _: {}),
    _row("create_role", lambda n: {"name": n.fresh}),
    _row("delete_role", lambda n: {"name": n.role}, takes="role"),
    _once("list_roles", lambda _: {}),
    _row(
        "create_grant",
        lambda n: {
            "subject_kind": SubjectKind.USER,
            "subject": n.user,
            "grant": Grant(actions=("topic.read",), kind=ResourceKind.TOPIC, name=n.fresh),
        },
    ),
    _once("delete_grant", lambda n: {"grant": n.grant}, takes="grant"),
    _once("list_grants", lambda _: {}),
    _row("create_token", lambda n: {"owner": n.user, "name": "issued"}),
    _row("delete_token", lambda n: {"owner": n.user, "name": n.token}, takes="token"),
    _once("list_tokens", lambda _: {}),
    _row("list_tokens", lambda n: {"owner": n.user}, what="of a user"),
)

_QUOTAS: Final = (
    _once(
        "set_quota",
        lambda n: {
            "subject_kind": QuotaSubject.USER,
            "subject": n.user,
            "limits": {QuotaKind.REQUESTS: 1_000_000},
            "cleared": (),
        },
    ),
    _row(
        "describe_quota",
        lambda n: {"subject_kind": QuotaSubject.USER, "subject": n.user},
    ),
    _once(
        "describe_quota",
        lambda _: {"subject_kind": QuotaSubject.DEFAULT, "subject": ""},
        what="of everybody",
        beyond=_codes("NOT_FOUND"),
    ),
    _once(
        "set_quota",
        lambda _: {
            "subject_kind": QuotaSubject.DEFAULT,
            "subject": "",
            # Said, and nobody is limited by it.
            "limits": {QuotaKind.CONNECTIONS: UNLIMITED},
            "cleared": (),
        },
        what="of everybody",
    ),
    _once("list_quotas", lambda _: {}),
    _once(
        "delete_quota",
        lambda _: {"subject_kind": QuotaSubject.DEFAULT, "subject": ""},
        what="of everybody",
        beyond=_codes("NOT_FOUND"),
    ),
    _once(
        "delete_quota",
        lambda n: {"subject_kind": QuotaSubject.USER, "subject": n.quota},
        takes="quota",
    ),
)

_JOIN_TOKENS: Final = (
    _once("create_join_token", lambda _: {"until": None}),
    _once("delete_join_token", lambda n: {"token": n.join_token}, takes="join_token"),
    _once("list_join_tokens", lambda _: {}),
)

_BACKUPS: Final = (
    _once("read_positions", lambda n: {"topic": n.topic, "partition": 0}),
    _once("read_accounts", lambda _: {}),
    _once("restore_topic", lambda n: {"name": n.fresh, "partitions": 1, "config": TopicConfig()}),
    _once(
        "restore_records",
        lambda n: {
            "request": RestoreRequest(topic=n.topic, partition=0, next_offset=Offset(0)),
        },
        beyond=_codes("OFFSET_OUT_OF_RANGE"),
    ),
    _once("restore_positions", lambda n: {"kept": KeptPositions(topic=n.topic, partition=0)}),
    _once("restore_accounts", lambda _: {"accounts": KeptAccounts()}),
)

_OWN_NAMES: Final = tuple(
    replace(one, cases=("own",), beyond=_codes("INVALID_ARGUMENT"))
    for one in (*_RECORDS, *_TOPICS, *_GROUPS)
    if str(one)
    in {
        *("publish", "fetch", "find_offset", "subscribe", "describe_topic"),
        *("describe_group", "pause_group", "seek_group"),
    }
)
"""Of the cluster's own only what does no harm: some of it would be gone."""

_ONESELF: Final = (
    _once("alter_user", lambda n: {"name": n.user}, is_own=True, what="of nothing of oneself"),
    *(
        replace(one, cases=("plain",), is_own=True, what=f"{one.what} of oneself".strip())
        for one in (*_ACCESS, *_QUOTAS)
        if one.method in {"can", "alter_user", "describe_user", "create_token"}
        or str(one) == "describe_quota"
        or str(one) == "list_tokens of a user"
    ),
)

ROWS: Final = (
    *(*_RECORDS, *_TOPICS, *_CLUSTER, *_GROUPS),
    *(*_LETTERS, *_TRANSACTIONS, *_ACCESS, *_QUOTAS, *_JOIN_TOKENS, *_BACKUPS, *_OWN_NAMES),
    *_ONESELF,
)
