"""What each method of the contract asks of the table of permissions. The one declaration.

`PermittedBroker` is made from it, and so are docs/reference/permissions.md and the tests of every
method with every role. A method that is not here does not exist on a permitted broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from angarium.api.access import Action, ResourceKind
from angarium.api.dead_letters import DEAD_LETTERS

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


def _named(given: Mapping[str, Any]) -> tuple[str, ...]:
    name = given.get("name")
    return () if name is None else (name,)


def _nothing(_: Mapping[str, Any]) -> tuple[str, ...]:
    return ()


def _letters_to(config: GroupConfig | None) -> tuple[str, ...]:
    """Where a group would put its dead letters, if that is not where all do."""
    if config is None or config.dead_letter_topic == DEAD_LETTERS:
        return ()
    return (config.dead_letter_topic,)


def _topic(action: Action, names: Names, when: str = "") -> Asks:
    return Asks(action, ResourceKind.TOPIC, names, when)


def _group(action: Action, names: Names, when: str = "") -> Asks:
    return Asks(action, ResourceKind.GROUP, names, when)


def _series(action: Action, names: Names) -> Asks:
    return Asks(action, ResourceKind.TRANSACTION, names)


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
    "open_producer": Rule((_producer(Action.PRODUCER_WRITE, _named, "with a name"),)),
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
    "transfer_leader": _cluster(Action.CLUSTER_OPERATE),
    "raise_level": _cluster(Action.CLUSTER_OPERATE),
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
    "settle": Rule((_group(Action.GROUP_CONSUME, _the("group")),)),
    "report_checkpoints": Rule(
        (_group(Action.GROUP_CONSUME, _the("group")), _topic(Action.TOPIC_READ, _reported))
    ),
    "list_groups": Rule(
        shows=Shows(Action.GROUP_DESCRIBE, ResourceKind.GROUP, lambda info: str(info.name))
    ),
    "describe_group": Rule((_group(Action.GROUP_DESCRIBE, _the("group")),)),
    "alter_group": Rule(
        (
            _group(Action.GROUP_ALTER, _the("group")),
            _topic(
                Action.TOPIC_PUBLISH,
                lambda given: _letters_to(given["config"]),
                "to a dead-letter topic of its own choice",
            ),
        )
    ),
    "seek_group": Rule((_group(Action.GROUP_SEEK, _the("group")),)),
    "pause_group": Rule((_group(Action.GROUP_ALTER, _the("group")),)),
    "delete_group": Rule((_group(Action.GROUP_DELETE, _the("group")),)),
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
    "commit": Rule(
        (_series(Action.TRANSACTION_WRITE, lambda given: (given["transaction"].name,)),)
    ),
    "abort": Rule((_series(Action.TRANSACTION_WRITE, lambda given: (given["transaction"].name,)),)),
    "forget_series": Rule((_series(Action.TRANSACTION_FORGET, _the("name")),)),
    "open_sequenced": Rule((_producer(Action.PRODUCER_WRITE, _the("producer")),)),
    "forget_sequenced": Rule((_producer(Action.PRODUCER_FORGET, _the("producer")),)),
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

RULES: Final[dict[str, Rule]] = {
    **RECORD_RULES,
    **TOPIC_RULES,
    **CLUSTER_RULES,
    **GROUP_RULES,
    **TRANSACTION_RULES,
    **ACCESS_RULES,
}
"""By method, for everything that `PermittedBroker` has."""
