"""What each method of the contract asks of the table of permissions. The one declaration.

`PermittedBroker` is made from it, and so are docs/reference/permissions.md and the tests of every
method with every role. A method that is not here does not exist on a permitted broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from angarium.api.access import Action, ResourceKind
from angarium.api.audit import AuditEvent
from angarium.api.dead_letters import DEAD_LETTERS
from angarium.api.quotas import QuotaSubject
from angarium.service.access.group_views import (
    balance_shown,
    group_shown,
    groups_shown,
    moves_shown,
)

if TYPE_CHECKING:
    from angarium.api import GroupConfig
    from angarium.api.transactions import StageRequest

Names: TypeAlias = Callable[[Mapping[str, Any]], Iterable[str]]
"""Takes the arguments of a call, by name; returns the names of the resources that it touches."""


@dataclass(frozen=True, slots=True)
class Asks:
    """One question: may this be done to each of those?"""

    action: Action
    kind: ResourceKind
    names: Names
    when: str = ""
    """In which cases it is asked, for the documents; empty: always."""
    of_everybody: bool = False
    """Asked about oneself, too, whatever the rule says."""


@dataclass(frozen=True, slots=True)
class Shows:
    """Of what a call returns, only rows are shown for which this is allowed."""

    action: Action
    kind: ResourceKind
    name: Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Rule:
    """What one method asks."""

    asks: tuple[Asks, ...] = ()
    shows: Shows | None = None
    instead: str = ""
    """What is returned to who may not, for the documents; empty: a refusal."""
    own: bool = False
    """About oneself everybody may: who has proved itself by a password or a certificate. Not by a
    token, which would get out of its bounds so, nor by somebody else's word."""
    topics_shown: Callable[[Any, Callable[[str], bool]], Any] | None = None
    """Takes what a call returns, and whether a topic may be known of; leaves out what names other
    topics."""


def _the(argument: str) -> Names:
    """Return who takes the name of a resource from an argument."""
    return lambda given: (given[argument],)


def _its(field: str) -> Names:
    """Return who takes it from a field of the request."""
    return lambda given: (getattr(given["request"], field),)


def _whole(_: Mapping[str, Any]) -> tuple[str]:
    return ("",)


def _wanted(given: Mapping[str, Any]) -> Iterable[str]:
    return dict.fromkeys(one.topic for one in given["interests"])


def _consumed(given: Mapping[str, Any]) -> Iterable[str]:
    return dict.fromkeys(given["request"].topics)


def _staged_in(given: Mapping[str, Any]) -> tuple[str, ...]:
    request: StageRequest = given["request"]
    return (request.topic,) if request.batches else ()


def _acked(given: Mapping[str, Any]) -> Iterable[str]:
    request: StageRequest = given["request"]
    return dict.fromkeys(one.group for one in request.acks)


def _acked_in(given: Mapping[str, Any]) -> tuple[str, ...]:
    request: StageRequest = given["request"]
    return (request.topic,) if request.acks else ()


def _reported(given: Mapping[str, Any]) -> Iterable[str]:
    return dict.fromkeys(one.topic for one in given["checkpoints"])


def _settled(given: Mapping[str, Any]) -> Iterable[str]:
    return dict.fromkeys(one.topic for one in given["settlements"])


def _decided(given: Mapping[str, Any]) -> Iterable[str]:
    return dict.fromkeys(one.topic for one in given["stages"])


def _forgotten(given: Mapping[str, Any]) -> Iterable[str]:
    return dict.fromkeys(given["topics"])


def _if_given(argument: str) -> Names:
    """Return who takes the name from an argument that may be None."""
    return lambda given: () if given.get(argument) is None else (given[argument],)


def _nothing(_: Mapping[str, Any]) -> tuple[str, ...]:
    return ()


def _letters_to(config: GroupConfig | None) -> tuple[str, ...]:
    """Where a group would put its dead letters, if that is not where all do."""
    if config is None or config.dead_letter_topic == DEAD_LETTERS:
        return ()
    return (config.dead_letter_topic,)


def _topic(action: Action, names: Names, when: str = "") -> Asks:
    return Asks(action, ResourceKind.TOPIC, names, when)


def _knowing(names: Names, when: str = "") -> Asks:
    """Return the question for topics that a call names beside what it is about: otherwise its
    answer would tell whether there are such topics."""
    return Asks(Action.TOPIC_DESCRIBE, ResourceKind.TOPIC, names, when)


def _group(action: Action, names: Names, when: str = "") -> Asks:
    return Asks(action, ResourceKind.GROUP, names, when)


def _series(action: Action, names: Names) -> Asks:
    return Asks(action, ResourceKind.TRANSACTION, names)


def _deciding() -> Rule:
    named = _series(Action.TRANSACTION_WRITE, lambda given: (given["transaction"].name,))
    return Rule((named, _knowing(_decided, "that it has stages in")))


def _producer(action: Action, names: Names, when: str = "") -> Asks:
    return Asks(action, ResourceKind.PRODUCER, names, when)


def _cluster(action: Action) -> Rule:
    return Rule((Asks(action, ResourceKind.CLUSTER, _whole),))


def _on_user(action: Action, names: Names) -> Asks:
    return Asks(action, ResourceKind.USER, names)


def _user(action: Action, names: Names, *, own: bool = False) -> Rule:
    return Rule((_on_user(action, names),), own=own)


def _role(action: Action) -> Rule:
    return Rule((Asks(action, ResourceKind.ROLE, _the("name")),))


def _if_roles(given: Mapping[str, Any]) -> tuple[str, ...]:
    return ("",) if given.get("roles") else ()


def _if_roles_change(given: Mapping[str, Any]) -> tuple[str, ...]:
    # Having none is a change, too: a role may forbid what something else allows.
    return () if given.get("roles") is None else ("",)


_WITH_ROLES: Final = Asks(Action.GRANT_CREATE, ResourceKind.CLUSTER, _if_roles, "with roles")
"""A role is as good as its grants: who gives one gives those."""


def _if_locks(given: Mapping[str, Any]) -> tuple[str, ...]:
    return () if given.get("is_locked") is None else (given["name"],)


_LOCKING: Final = Asks(
    Action.USER_ALTER, ResourceKind.USER, _if_locks, "to lock or unlock", of_everybody=True
)
"""Whoever is locked out must not have a moment in which to unlock itself."""

_OTHER_ROLES: Final = Asks(
    Action.GRANT_CREATE, ResourceKind.CLUSTER, _if_roles_change, "with roles"
)


RECORD_RULES: Final[dict[str, Rule]] = {
    "publish": Rule((_topic(Action.TOPIC_PUBLISH, _its("topic")),)),
    "reserve": Rule((_topic(Action.TOPIC_PUBLISH, _the("topic")),)),
    "fetch": Rule((_topic(Action.TOPIC_READ, _its("topic")),)),
    "find_offset": Rule((_topic(Action.TOPIC_READ, _the("topic")),)),
    "subscribe": Rule((_topic(Action.TOPIC_READ, _wanted),)),
    "subscribe_passing": Rule((_topic(Action.TOPIC_READ, _the("topic")),)),
    "open_producer": Rule((_producer(Action.PRODUCER_WRITE, _if_given("name"), "with a name"),)),
}

TOPIC_RULES: Final[dict[str, Rule]] = {
    "create_topic": Rule((_topic(Action.TOPIC_CREATE, _the("name")),)),
    "alter_topic": Rule((_topic(Action.TOPIC_ALTER, _the("name")),)),
    "delete_topic": Rule((_topic(Action.TOPIC_DELETE, _the("name")),)),
    "list_topics": Rule(
        shows=Shows(Action.TOPIC_DESCRIBE, ResourceKind.TOPIC, lambda info: str(info.name))
    ),
    "describe_topic": Rule((_topic(Action.TOPIC_DESCRIBE, _the("name")),)),
}

CLUSTER_RULES: Final[dict[str, Rule]] = {
    "cluster_status": Rule(
        (Asks(Action.CLUSTER_DESCRIBE, ResourceKind.CLUSTER, _whole),),
        instead="where the nodes are, and nothing else",
    ),
    "drain_node": _cluster(Action.CLUSTER_OPERATE),
    "remove_node": _cluster(Action.CLUSTER_OPERATE),
    "transfer_leader": Rule(
        (Asks(Action.CLUSTER_OPERATE, ResourceKind.CLUSTER, _whole), _knowing(_the("topic")))
    ),
    "raise_level": _cluster(Action.CLUSTER_OPERATE),
}

BALANCE_RULES: Final[dict[str, Rule]] = {
    "describe_balance": Rule(
        (Asks(Action.CLUSTER_DESCRIBE, ResourceKind.CLUSTER, _whole),), topics_shown=balance_shown
    ),
    **dict.fromkeys(
        ("rebalance", "cancel_rebalance", "set_auto_balance"),
        Rule(
            (Asks(Action.CLUSTER_OPERATE, ResourceKind.CLUSTER, _whole),),
            topics_shown=balance_shown,
        ),
    ),
}

UPGRADE_RULES: Final[dict[str, Rule]] = {
    "describe_upgrade": _cluster(Action.CLUSTER_OPERATE),
}

RECOVERY_RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(
        ("describe_recovery", "recover_partition"),
        Rule((Asks(Action.CLUSTER_RECOVER, ResourceKind.CLUSTER, _whole), _knowing(_the("topic")))),
    ),
}

JOIN_TOKEN_RULES: Final[dict[str, Rule]] = {
    "create_join_token": _cluster(Action.CLUSTER_INVITE),
    "delete_join_token": _cluster(Action.CLUSTER_INVITE),
    "list_join_tokens": _cluster(Action.CLUSTER_INVITE),
}

_BACKUP: Final = Asks(Action.CLUSTER_BACKUP, ResourceKind.CLUSTER, _whole)
_RESTORE: Final = Asks(Action.CLUSTER_RESTORE, ResourceKind.CLUSTER, _whole)

BACKUP_RULES: Final[dict[str, Rule]] = {
    "read_positions": Rule((_BACKUP, _knowing(_the("topic")))),
    "read_accounts": Rule((_BACKUP,)),
    # Topics are asked for, too: whom a ban keeps from one must not write there by a restore.
    "restore_topic": Rule((_RESTORE, _topic(Action.TOPIC_CREATE, _the("name")))),
    "restore_records": Rule((_RESTORE, _knowing(_its("topic")))),
    "restore_positions": Rule((_RESTORE, _knowing(lambda given: (given["kept"].topic,)))),
    "restore_accounts": Rule((_RESTORE,)),
}

GROUP_RULES: Final[dict[str, Rule]] = {
    "consume": Rule(
        (
            _group(Action.GROUP_CONSUME, _its("group")),
            _topic(Action.TOPIC_READ, _consumed),
            _topic(
                Action.TOPIC_PUBLISH,
                lambda given: _letters_to(given["request"].config),
                "to a dead-letter topic of its own choice",
            ),
        )
    ),
    "settle": Rule((_group(Action.GROUP_CONSUME, _the("group")), _knowing(_settled))),
    "report_checkpoints": Rule(
        (_group(Action.GROUP_CONSUME, _the("group")), _topic(Action.TOPIC_READ, _reported))
    ),
    "list_groups": Rule(
        shows=Shows(Action.GROUP_DESCRIBE, ResourceKind.GROUP, lambda info: str(info.name)),
        topics_shown=groups_shown,
    ),
    "describe_group": Rule(
        (_group(Action.GROUP_DESCRIBE, _the("group")),), topics_shown=group_shown
    ),
    "alter_group": Rule(
        (
            _group(Action.GROUP_ALTER, _the("group")),
            _topic(
                Action.TOPIC_PUBLISH,
                lambda given: _letters_to(given["config"]),
                "to a dead-letter topic of its own choice",
            ),
        ),
        topics_shown=group_shown,
    ),
    "seek_group": Rule(
        (_group(Action.GROUP_SEEK, _the("group")), _knowing(_if_given("topic"), "if one is named")),
        topics_shown=moves_shown,
    ),
    "pause_group": Rule((_group(Action.GROUP_ALTER, _the("group")),)),
    "delete_group": Rule(
        (
            _group(Action.GROUP_DELETE, _the("group")),
            _knowing(_if_given("topic"), "if one is named"),
        )
    ),
}

TRANSACTION_RULES: Final[dict[str, Rule]] = {
    "open_series": Rule((_series(Action.TRANSACTION_WRITE, _the("name")),)),
    "stage": Rule(
        (
            _series(Action.TRANSACTION_WRITE, lambda given: (given["request"].transaction.name,)),
            _topic(Action.TOPIC_PUBLISH, _staged_in, "with batches"),
            _group(Action.GROUP_CONSUME, _acked, "with acknowledgements"),
            _topic(Action.TOPIC_READ, _acked_in, "with acknowledgements"),
        )
    ),
    "commit": _deciding(),
    "abort": _deciding(),
    "forget_series": Rule(
        (_series(Action.TRANSACTION_FORGET, _the("name")), _knowing(_forgotten, "that are named"))
    ),
    "open_sequenced": Rule((_producer(Action.PRODUCER_WRITE, _the("producer")),)),
    "forget_sequenced": Rule(
        (
            _producer(Action.PRODUCER_FORGET, _the("producer")),
            _knowing(_forgotten, "that are named"),
        )
    ),
    "publish_sequenced": Rule(
        (
            _producer(Action.PRODUCER_WRITE, _its("producer")),
            _topic(Action.TOPIC_PUBLISH, _its("topic")),
        )
    ),
    # It fences the producer's older epochs there, which is a write.
    "last_sequence": Rule(
        (
            _producer(Action.PRODUCER_WRITE, _the("producer")),
            _topic(Action.TOPIC_PUBLISH, _the("topic")),
        )
    ),
    "settled_by": Rule(
        (
            _group(Action.GROUP_DESCRIBE, _the("group")),
            _topic(Action.TOPIC_DESCRIBE, _the("topic")),
        )
    ),
}

LETTER_RULES: Final[dict[str, Rule]] = {
    "list": Rule((_topic(Action.DEADLETTER_READ, _the("topic")),)),
    "redrive": Rule(
        (
            _topic(Action.DEADLETTER_REDRIVE, _the("topic")),
            _topic(
                Action.TOPIC_PUBLISH,
                _nothing,
                "or `deadletter.redrive`, to each topic that a letter returns to",
            ),
        )
    ),
    "purge": Rule((_topic(Action.DEADLETTER_REDRIVE, _the("topic")),)),
}
"""Of `dead_letters(topic)`, which knows the topic of all three."""

ACCESS_RULES: Final[dict[str, Rule]] = {
    "whoami": Rule(),
    "can": _user(Action.USER_DESCRIBE, _the("user"), own=True),
    "create_user": Rule((_on_user(Action.USER_CREATE, _the("name")), _WITH_ROLES)),
    "alter_user": Rule(
        (_on_user(Action.USER_ALTER, _the("name")), _OTHER_ROLES, _LOCKING), own=True
    ),
    "delete_user": _user(Action.USER_DELETE, _the("name")),
    "describe_user": _user(Action.USER_DESCRIBE, _the("name"), own=True),
    "list_users": Rule(
        shows=Shows(Action.USER_DESCRIBE, ResourceKind.USER, lambda info: str(info.name)), own=True
    ),
    "create_role": _role(Action.ROLE_CREATE),
    "delete_role": _role(Action.ROLE_DELETE),
    "list_roles": Rule(
        shows=Shows(Action.ROLE_DESCRIBE, ResourceKind.ROLE, lambda info: str(info.name))
    ),
    "create_grant": _cluster(Action.GRANT_CREATE),
    "delete_grant": _cluster(Action.GRANT_DELETE),
    "list_grants": _cluster(Action.GRANT_DESCRIBE),
    "create_token": _user(Action.TOKEN_CREATE, _the("owner"), own=True),
    "delete_token": _user(Action.TOKEN_DELETE, _the("owner"), own=True),
    "list_tokens": Rule(
        shows=Shows(Action.TOKEN_DESCRIBE, ResourceKind.USER, lambda info: str(info.owner)),
        own=True,
    ),
}


def _of_user(given: Mapping[str, Any]) -> tuple[str, ...]:
    return (given["subject"],) if given["subject_kind"] is QuotaSubject.USER else ()


def _of_others(given: Mapping[str, Any]) -> tuple[str, ...]:
    return () if given["subject_kind"] is QuotaSubject.USER else ("",)


QUOTA_RULES: Final[dict[str, Rule]] = {
    "set_quota": _cluster(Action.QUOTA_ALTER),
    "delete_quota": _cluster(Action.QUOTA_ALTER),
    "describe_quota": Rule(
        (
            Asks(Action.USER_DESCRIBE, ResourceKind.USER, _of_user, "of a user"),
            Asks(Action.QUOTA_DESCRIBE, ResourceKind.CLUSTER, _of_others, "of others"),
        ),
        own=True,
    ),
    "list_quotas": _cluster(Action.QUOTA_DESCRIBE),
}

RULES: Final[dict[str, Rule]] = {
    **RECORD_RULES,
    **TOPIC_RULES,
    **CLUSTER_RULES,
    **GROUP_RULES,
    **TRANSACTION_RULES,
    **ACCESS_RULES,
    **QUOTA_RULES,
    **JOIN_TOKEN_RULES,
    **BACKUP_RULES,
    **BALANCE_RULES,
    **RECOVERY_RULES,
    **UPGRADE_RULES,
}
"""By method, for everything that `PermittedBroker` has."""

SEEING: Final = ("list_", "describe_")
"""How methods begin that change nothing and show no record."""

ALSO_SEEING: Final = frozenset({"whoami", "can", "cluster_status", "settled_by"})

TOUCHING_RECORDS: Final = frozenset(
    {
        *RECORD_RULES,
        *(TRANSACTION_RULES.keys() - {"forget_series", "forget_sequenced", *ALSO_SEEING}),
        "consume",
        "settle",
        "report_checkpoints",
        "restore_records",
        "dead_letters.list",
    }
)
"""Methods that read, publish or settle: recorded where `[audit] record` is `data`."""

ALWAYS_NOTED: Final = frozenset({"restore_records"})
"""Of those, what only who may do nearly everything can do: noted whatever is set. It is not an
action that waits for its record, for a restore makes a call for each mebibyte."""


def recorded(method: str) -> AuditEvent | None:
    """Return as what a call that was let through is recorded; None: not at all.

    What is neither known to be about records nor to change nothing is an administrative action, so
    that a new method cannot be forgotten.
    """
    if method in TOUCHING_RECORDS:
        return AuditEvent.ACCESS
    if method in ALSO_SEEING or method.startswith(SEEING):
        return None
    return AuditEvent.ACTION
