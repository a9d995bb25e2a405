"""Who asks, what can be asked for, and who may: principals, actions, grants.

Every call is made for a `Principal`: `service.access` makes a broker for each, which asks the table
of permissions (`security.permissions`) before anything is done. The rows behind the table lie in
the catalog, so every node decides alike.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from angarium.ids import GrantId, JoinTokenId, Micros, NodeId

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Proof(StrEnum):
    """How a principal has shown who it is."""

    NONE = "none"
    """Not at all: authentication is off, or a listener speaks for all who come in there."""
    PASSWORD = "password"  # noqa: S105 - a way, not a secret
    TOKEN = "token"  # noqa: S105
    CERTIFICATE = "certificate"
    JWT = "jwt"
    """A token that somebody else has signed; its claims name the roles."""
    NODE = "node"
    """A node of this cluster, which has asked the table itself before it passed a call on."""


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks."""

    name: str
    roles: tuple[str, ...] = ()
    """Roles besides those that the user has in the catalog: those that the claims name."""
    proof: Proof = Proof.NONE
    until: Micros | None = None
    """When the proof expires; what is open then is ended. None: never."""
    token: str | None = None
    """The name of the token that came as proof: its grants narrow those of the owner."""
    since: Micros | None = None
    """When the token was issued, or without one the user made: what comes later under the same
    name is somebody else. None: whoever has the name."""
    key: str | None = None
    """Which key of its issuer has signed the JWT: once that is published no more, neither this
    nor what was opened with it counts. None: it was no JWT."""


class Action(StrEnum):
    """What can be asked for; a grant names some, or with `*` all that its kind of resource has."""

    TOPIC_CREATE = "topic.create"
    TOPIC_DESCRIBE = "topic.describe"
    TOPIC_ALTER = "topic.alter"
    TOPIC_DELETE = "topic.delete"
    TOPIC_PUBLISH = "topic.publish"
    TOPIC_READ = "topic.read"
    GROUP_CONSUME = "group.consume"
    GROUP_DESCRIBE = "group.describe"
    GROUP_ALTER = "group.alter"
    GROUP_SEEK = "group.seek"
    GROUP_DELETE = "group.delete"
    DEADLETTER_READ = "deadletter.read"
    DEADLETTER_REDRIVE = "deadletter.redrive"
    TRANSACTION_WRITE = "transaction.write"
    TRANSACTION_FORGET = "transaction.forget"
    PRODUCER_WRITE = "producer.write"
    PRODUCER_FORGET = "producer.forget"
    CLUSTER_DESCRIBE = "cluster.describe"
    CLUSTER_OPERATE = "cluster.operate"
    CLUSTER_INVITE = "cluster.invite"
    CLUSTER_BACKUP = "cluster.backup"
    CLUSTER_RESTORE = "cluster.restore"
    CLUSTER_RECOVER = "cluster.recover"
    METRICS_READ = "metrics.read"
    AUDIT_READ = "audit.read"
    USER_CREATE = "user.create"
    USER_DESCRIBE = "user.describe"
    USER_ALTER = "user.alter"
    USER_DELETE = "user.delete"
    ROLE_CREATE = "role.create"
    ROLE_DESCRIBE = "role.describe"
    ROLE_DELETE = "role.delete"
    GRANT_CREATE = "grant.create"
    GRANT_DESCRIBE = "grant.describe"
    GRANT_DELETE = "grant.delete"
    TOKEN_CREATE = "token.create"  # noqa: S105
    TOKEN_DESCRIBE = "token.describe"  # noqa: S105
    TOKEN_DELETE = "token.delete"  # noqa: S105
    QUOTA_ALTER = "quota.alter"
    QUOTA_DESCRIBE = "quota.describe"


ABOUT_ACTIONS: Final[Mapping[Action, str]] = {
    Action.TOPIC_CREATE: "make a topic, also by publishing to one that is not there",
    Action.TOPIC_DESCRIBE: "see that it is there, its settings and where its partitions live",
    Action.TOPIC_ALTER: "change its settings, give it more partitions",
    Action.TOPIC_DELETE: "delete it with everything in it",
    Action.TOPIC_PUBLISH: "publish to it, reserve offsets",
    Action.TOPIC_READ: "fetch and subscribe; also as a member of a group",
    Action.GROUP_CONSUME: "take part, settle, report how far one has come",
    Action.GROUP_DESCRIBE: "see its members, positions and lag",
    Action.GROUP_ALTER: "change its settings, pause it and let it go on",
    Action.GROUP_SEEK: "move its position",
    Action.GROUP_DELETE: "forget it, or its position in a topic",
    Action.DEADLETTER_READ: "list the letters of a dead-letter topic",
    Action.DEADLETTER_REDRIVE: "send letters back, or let them be",
    Action.TRANSACTION_WRITE: "open a series, stage, commit and abort",
    Action.TRANSACTION_FORGET: "forget a series",
    Action.PRODUCER_WRITE: "publish as a producer with a name, or one that counts itself",
    Action.PRODUCER_FORGET: "forget the numbers of one that counts itself",
    Action.CLUSTER_DESCRIBE: "see nodes, their state and versions",
    Action.CLUSTER_OPERATE: "drain and remove nodes, move leaders, raise the feature level",
    Action.CLUSTER_INVITE: "let a new node in; without certificates as good as everything",
    Action.CLUSTER_BACKUP: "see positions of groups, users and hashes of secrets, for a backup",
    Action.CLUSTER_RESTORE: "bring records, positions and users back: as good as everything",
    Action.CLUSTER_RECOVER: "go on with what is left of a partition, which may lose records",
    Action.METRICS_READ: "read metrics",
    Action.AUDIT_READ: "read the audit records: the topic `angarium.audit`",
    Action.USER_CREATE: "make a user",
    Action.USER_DESCRIBE: "see a user, and ask what it may do",
    Action.USER_ALTER: "set its password, lock it; who may do this may become that user",
    Action.USER_DELETE: "delete it with its grants and tokens",
    Action.ROLE_CREATE: "make a role",
    Action.ROLE_DESCRIBE: "see a role and its grants",
    Action.ROLE_DELETE: "delete a role with its grants",
    Action.GRANT_CREATE: "give grants and roles: as good as everything",
    Action.GRANT_DESCRIBE: "see every grant",
    Action.GRANT_DELETE: "take grants back",
    Action.TOKEN_CREATE: "issue tokens for a user; who may do this may become that user",
    Action.TOKEN_DESCRIBE: "see a user's tokens, not their secrets",
    Action.TOKEN_DELETE: "revoke a user's tokens",
    Action.QUOTA_ALTER: "set and delete quotas: how much somebody may use, and topics may hold",
    Action.QUOTA_DESCRIBE: "see every quota",
}
"""What each action lets somebody do."""


class ResourceKind(StrEnum):
    """What an action is done to."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTION = "transaction"
    """A series of transactions, by name."""
    PRODUCER = "producer"
    CLUSTER = "cluster"
    """The whole; it has no name."""
    USER = "user"
    ROLE = "role"


class Effect(StrEnum):
    """What a grant does."""

    ALLOW = "allow"
    DENY = "deny"
    """Wins over whatever allows the same."""


class Match(StrEnum):
    """How a grant names a resource."""

    EXACT = "exact"
    PREFIX = "prefix"
    """The name itself and what comes behind it at a boundary; an empty one is every name."""


ANY_ACTION: Final = "*"
"""Stands in a grant for every action on its kind of resource."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """Lets somebody do something to something, or forbids it."""

    actions: tuple[str, ...]
    """`Action`s, or `*` alone. An action that this release does not know matches nothing."""
    kind: ResourceKind
    name: str = ""
    match: Match = Match.PREFIX
    effect: Effect = Effect.ALLOW

    def __str__(self) -> str:
        name = "" if self.kind is ResourceKind.CLUSTER else f" {self.match} {self.name!r}"
        return f"{self.effect} {','.join(self.actions)} on {self.kind}{name}"


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether something is allowed, and which grant decided that."""

    is_allowed: bool
    why: str
    """A sentence."""
    grant: Grant | None = None
    """None: no grant allows it, or the principal itself is not let in."""
    role: str = ""
    """Through which role the grant came; empty: it was given to the user."""


# --- looking after them ------------------------------------------------------------------------


class SubjectKind(StrEnum):
    """To whom grants are given."""

    USER = "user"
    ROLE = "role"


class GrantInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A grant, and whose it is."""

    id: GrantId
    """Issued by the catalog, never reused; 0 for those of built-in roles, which stay."""
    subject_kind: SubjectKind
    subject: str
    grant: Grant


class UserInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A user; nothing secret."""

    name: str
    roles: tuple[str, ...] = ()
    is_locked: bool = False
    """Cannot come in, and what it has open is ended."""
    has_password: bool = False
    created_at: Micros = Micros(0)
    tokens: int = 0


class RoleInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A role."""

    name: str
    about: str = ""
    is_built_in: bool = False
    grants: tuple[GrantInfo, ...] = ()


class TokenInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A token; not its secret, which nobody knows but who was told it."""

    owner: str
    name: str
    created_at: Micros = Micros(0)
    until: Micros | None = None
    grants: tuple[Grant, ...] | None = None
    """What it may do at the most, of what its owner may; None: all of that."""


SECRET_FIELD: Final = "secret"  # noqa: S105  (its name, no secret)
"""What every answer of the contract calls a secret that it tells."""


class IssuedToken(msgspec.Struct, frozen=True, kw_only=True):
    """A new token with its secret, told once."""

    info: TokenInfo
    secret: str

    def __repr__(self) -> str:
        return f"IssuedToken({self.info!r}, secret=…)"


class JoinTokenInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A join token; not its secret."""

    id: JoinTokenId
    """Issued by the catalog, never reused."""
    created_at: Micros = Micros(0)
    until: Micros
    """When its time is up; some time later it is forgotten."""
    used_by: NodeId | None = None
    """The node that it has let in; None: it is still good for one."""


class IssuedJoinToken(msgspec.Struct, frozen=True, kw_only=True):
    """A new join token with its secret, told once."""

    info: JoinTokenInfo
    secret: str

    def __repr__(self) -> str:
        return f"IssuedJoinToken({self.info!r}, secret=…)"


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who a caller is, as the node that it talks to sees it."""

    principal: Principal
    roles: tuple[str, ...] = ()
    """All that count now: of the user and of the claims."""
    authentication: str = "off"


class AccessBroker(Protocol):
    """The part of the contract that is about users, roles, grants and tokens."""

    async def whoami(self) -> Caller:
        """Return who asks. Everybody may."""

    async def can(self, user: str, action: str, *, kind: ResourceKind, name: str = "") -> Decision:
        """Tell whether a user may do something, and why; about oneself everybody may ask."""

    async def create_user(
        self, name: str, *, password: str | None = None, roles: Sequence[str] = ()
    ) -> UserInfo:
        """Make a user; without a password it comes in by tokens or certificates alone."""

    async def alter_user(
        self,
        name: str,
        *,
        password: str | None = None,
        roles: Sequence[str] | None = None,
        is_locked: bool | None = None,
    ) -> UserInfo:
        """Give a user other roles or another password, or lock it out; None: as before.

        What was opened with the old password ends.
        """

    async def delete_user(self, name: str) -> None:
        """Remove a user with its grants and tokens."""

    async def describe_user(self, name: str) -> UserInfo:
        """Return one user; `NotFound`."""

    async def list_users(self) -> tuple[UserInfo, ...]:
        """Return all users, by name."""

    async def create_role(self, name: str, *, about: str = "") -> RoleInfo:
        """Make a role that may do nothing yet."""

    async def delete_role(self, name: str, *, force: bool = False) -> None:
        """Remove a role with its grants; `RoleHeld` while users hold it.

        With `force` it is taken from them at once. JWTs that claim it go on claiming its name.
        """

    async def list_roles(self) -> tuple[RoleInfo, ...]:
        """Return all roles with their grants, the built-in ones first."""

    async def create_grant(
        self, subject_kind: SubjectKind, subject: str, grant: Grant
    ) -> GrantInfo:
        """Give a user or a role a grant; the same one again is the one that is there."""

    async def delete_grant(self, grant: int) -> None:
        """Take a grant back."""

    async def list_grants(self) -> tuple[GrantInfo, ...]:
        """Return every grant, but for those of built-in roles."""

    async def create_token(
        self,
        owner: str,
        name: str,
        *,
        until: Micros | None = None,
        grants: Sequence[Grant] | None = None,
    ) -> IssuedToken:
        """Issue a token; under a name that the owner has used it takes the place of the old one."""

    async def delete_token(self, owner: str, name: str) -> None:
        """Revoke a token: what was opened with it ends."""

    async def list_tokens(self, owner: str | None = None) -> tuple[TokenInfo, ...]:
        """Return the tokens of one user, or all."""


class JoinTokenBroker(Protocol):
    """The part of the contract that lets new nodes in, where they need to be let in."""

    async def create_join_token(self, *, until: Micros | None = None) -> IssuedJoinToken:
        """Issue a token that lets one node in, once; without `until` it is good for an hour."""

    async def delete_join_token(self, token: int) -> None:
        """Withdraw one; a node that it has let in stays."""

    async def list_join_tokens(self) -> tuple[JoinTokenInfo, ...]:
        """Return those that were issued and are not forgotten, the oldest first."""


ADMIN: Final = "admin"
"""The role that may do everything."""

ANONYMOUS: Final = Principal(name="anonymous", roles=(ADMIN,))
"""Everybody, while authentication is off."""

OWN_NAMES: Final = "angarium."
"""What the names of the cluster's own topics, groups and series begin with: a grant for every name
does not reach them, only one that names them does."""
