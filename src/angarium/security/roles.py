"""The built-in roles. Data: the table of permissions starts with them as if they had been granted.

A grant for every name does not reach the cluster's own (`angarium.*`), so a role that may touch
those says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.api.access import ADMIN, ANY_ACTION, Action, Grant, Match, ResourceKind
from angarium.api.dead_letters import DEAD_LETTERS, REDRIVE
from angarium.api.transactions import ONE_TIME

if TYPE_CHECKING:
    from collections.abc import Mapping

OWN: Final = "angarium"
"""As a prefix: everything of the cluster's own."""


def _on(kind: ResourceKind, *actions: str, own: bool = False) -> tuple[Grant, ...]:
    """Return grants on every name of a kind, with `own` also on the cluster's."""
    everywhere = Grant(actions=actions, kind=kind)
    return (everywhere, Grant(actions=actions, kind=kind, name=OWN)) if own else (everywhere,)


def _exactly(kind: ResourceKind, name: str, *actions: str) -> Grant:
    return Grant(actions=actions, kind=kind, name=name, match=Match.EXACT)


_SEEING: Final = (
    *_on(ResourceKind.CLUSTER, Action.CLUSTER_DESCRIBE, Action.METRICS_READ, Action.QUOTA_DESCRIBE),
    *_on(ResourceKind.TOPIC, Action.TOPIC_DESCRIBE, own=True),
    *_on(ResourceKind.GROUP, Action.GROUP_DESCRIBE, own=True),
)

_PUBLISHING: Final = (
    *_on(ResourceKind.CLUSTER, Action.CLUSTER_DESCRIBE),
    *_on(ResourceKind.TOPIC, Action.TOPIC_DESCRIBE, Action.TOPIC_PUBLISH),
    *_on(ResourceKind.PRODUCER, Action.PRODUCER_WRITE),
    *_on(ResourceKind.TRANSACTION, Action.TRANSACTION_WRITE),
    Grant(actions=(Action.TRANSACTION_FORGET,), kind=ResourceKind.TRANSACTION, name=ONE_TIME),
)

_READING: Final = (
    *_on(ResourceKind.CLUSTER, Action.CLUSTER_DESCRIBE),
    *_on(ResourceKind.TOPIC, Action.TOPIC_DESCRIBE, Action.TOPIC_READ),
    *_on(ResourceKind.GROUP, Action.GROUP_DESCRIBE, Action.GROUP_CONSUME),
)

BUILT_IN: Final[Mapping[str, tuple[Grant, ...]]] = {
    ADMIN: tuple(one for kind in ResourceKind for one in _on(kind, ANY_ACTION, own=True)),
    "operator": (
        *_SEEING,
        *_on(ResourceKind.CLUSTER, Action.CLUSTER_OPERATE),
        *_on(
            ResourceKind.TOPIC,
            Action.TOPIC_CREATE,
            Action.TOPIC_ALTER,
            Action.TOPIC_DELETE,
        ),
        *_on(ResourceKind.TOPIC, Action.DEADLETTER_READ, Action.DEADLETTER_REDRIVE, own=True),
        *_on(
            ResourceKind.GROUP, Action.GROUP_ALTER, Action.GROUP_SEEK, Action.GROUP_DELETE, own=True
        ),
        # What a client needs that looks at letters itself, and lets them be.
        _exactly(ResourceKind.TOPIC, DEAD_LETTERS, Action.TOPIC_READ),
        _exactly(ResourceKind.TRANSACTION, REDRIVE, Action.TRANSACTION_WRITE),
        _exactly(ResourceKind.GROUP, REDRIVE, Action.GROUP_CONSUME),
        *_on(ResourceKind.TRANSACTION, Action.TRANSACTION_FORGET),
        *_on(ResourceKind.PRODUCER, Action.PRODUCER_FORGET),
        *_on(ResourceKind.USER, Action.USER_DESCRIBE),
        *_on(ResourceKind.ROLE, Action.ROLE_DESCRIBE),
    ),
    "publisher": _PUBLISHING,
    "subscriber": _READING,
    "monitor": _SEEING,
    "auditor": (
        *_on(
            ResourceKind.CLUSTER,
            Action.CLUSTER_DESCRIBE,
            Action.AUDIT_READ,
            Action.GRANT_DESCRIBE,
        ),
        *_on(ResourceKind.USER, Action.USER_DESCRIBE, Action.TOKEN_DESCRIBE),
        *_on(ResourceKind.ROLE, Action.ROLE_DESCRIBE),
    ),
    "pipeline": (
        *_PUBLISHING,
        *_READING,
        *_on(ResourceKind.TOPIC, Action.TOPIC_CREATE),
        *_on(ResourceKind.CLUSTER, Action.METRICS_READ),
    ),
}
"""By name. A role of a user's own may not be called like one of these."""

ABOUT: Final[Mapping[str, str]] = {
    ADMIN: "everything, users and grants included",
    "operator": "run the cluster: nodes, topics, groups, dead letters; no records but dead letters",
    "publisher": "publish to every topic that is there, also in transactions",
    "subscriber": "read every topic, alone or in a group",
    "monitor": "see what there is and how it does, and no record",
    "auditor": "read the audit records, see who may do what, and change nothing",
    "pipeline": "what jobs over topics need: read, publish, and make topics",
}
