"""Users, roles, grants and tokens over REST: each request is one call of the contract.

The annotations of a call are its declaration (`routing.call`), so they are not put off here.
Passwords come in bodies alone, and what has one does not show it.
"""

from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from angarium.api.access import (
    AccessBroker,
    Caller,
    Decision,
    Effect,
    Grant,
    GrantInfo,
    IssuedToken,
    Match,
    ResourceKind,
    RoleInfo,
    SubjectKind,
    TokenInfo,
    UserInfo,
)
from angarium.doors.http.forms import answer
from angarium.doors.http.record_json import Count
from angarium.doors.http.routing import call
from angarium.ids import Micros

Wanted = Annotated[str, Meta(description='What it would do, such as "topic.publish".')]
Kind = Annotated[ResourceKind, Meta(description="What that would be done to.")]
Name = Annotated[str, Meta(description="The resource's name; of the cluster none.")]
Forced = Annotated[bool, Meta(description="Whether it is taken from the users that hold it.")]
GrantNumber = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]

_access: Final = partial(call, tag="access")


@answer
class Users(msgspec.Struct, frozen=True):
    """All users that may be seen, by name."""

    users: tuple[UserInfo, ...]


@answer
class Roles(msgspec.Struct, frozen=True):
    """All roles that may be seen, the built-in ones first."""

    roles: tuple[RoleInfo, ...]


@answer
class Grants(msgspec.Struct, frozen=True):
    """Every grant, but for those of built-in roles."""

    grants: tuple[GrantInfo, ...]


@answer
class Tokens(msgspec.Struct, frozen=True):
    """The tokens that may be seen, by owner and name."""

    tokens: tuple[TokenInfo, ...]


class NewUser(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user to make."""

    name: str
    password: str | None = None
    """Null: it comes in by tokens or certificates alone."""
    roles: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"NewUser({self.name!r}, …)"


class UserChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What shall be different about a user; what is absent stays."""

    password: str | None = None
    roles: tuple[str, ...] | None = None
    """All its roles anew."""
    is_locked: bool | None = None

    def __repr__(self) -> str:
        return "UserChange(…)"


class NewRole(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A role to make."""

    name: str
    about: str = ""


class GrantIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lets somebody do something to something, or forbids it."""

    actions: tuple[str, ...]
    """Such as "topic.publish", or "*" alone for all that the kind of resource has."""
    kind: ResourceKind
    name: str = ""
    """Its name or a prefix of it; empty for the cluster, and for every name."""
    match: Match = Match.PREFIX
    effect: Effect = Effect.ALLOW

    def meant(self) -> Grant:
        """Return what the contract calls it."""
        return Grant(**msgspec.structs.asdict(self))


class NewGrant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A grant to give."""

    subject_kind: SubjectKind
    subject: str
    grant: GrantIn


class NewToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token to issue."""

    name: str
    until_us: Count | None = None
    """When it expires, in microseconds since 1970; null: never."""
    grants: tuple[GrantIn, ...] | None = None
    """What it may do at the most, of what its owner may; null: all of that."""


class AccessRoutes:
    """The requests about who may do what."""

    def __init__(self, broker: AccessBroker) -> None:
        self._broker = broker

    @_access("GET /v1/whoami", "Who asks, as this node sees it.")
    async def whoami(self) -> Caller:
        return await self._broker.whoami()

    # --- users ----------------------------------------------------------------------------------

    @_access("GET /v1/users", "List all users that may be seen.")
    async def list_users(self) -> Users:
        return Users(await self._broker.list_users())

    @_access("POST /v1/users", "Make a user.", status=201)
    async def create_user(self, body: NewUser) -> UserInfo:
        return await self._broker.create_user(body.name, password=body.password, roles=body.roles)

    @_access("GET /v1/users/{user}", "Describe a user.")
    async def describe_user(self, user: str) -> UserInfo:
        return await self._broker.describe_user(user)

    @_access("PATCH /v1/users/{user}", "Give a user another password or other roles, or lock it.")
    async def alter_user(self, user: str, body: UserChange) -> UserInfo:
        return await self._broker.alter_user(
            user, password=body.password, roles=body.roles, is_locked=body.is_locked
        )

    @_access("DELETE /v1/users/{user}", "Remove a user with its grants and tokens.")
    async def delete_user(self, user: str) -> None:
        await self._broker.delete_user(user)

    @_access("GET /v1/users/{user}/can", "Whether a user may do something, and why.")
    async def can(self, user: str, action: Wanted, kind: Kind, name: Name = "") -> Decision:
        return await self._broker.can(user, action, kind=kind, name=name)

    # --- roles and grants -----------------------------------------------------------------------

    @_access("GET /v1/roles", "List all roles that may be seen, with their grants.")
    async def list_roles(self) -> Roles:
        return Roles(await self._broker.list_roles())

    @_access("POST /v1/roles", "Make a role that may do nothing yet.", status=201)
    async def create_role(self, body: NewRole) -> RoleInfo:
        return await self._broker.create_role(body.name, about=body.about)

    @_access(
        "DELETE /v1/roles/{role}",
        "Remove a role with its grants. Refused while users hold it, unless forced.",
        errors=(409,),
    )
    async def delete_role(self, role: str, force: Forced = False) -> None:
        await self._broker.delete_role(role, force=force)

    @_access("GET /v1/grants", "List every grant, but for those of built-in roles.")
    async def list_grants(self) -> Grants:
        return Grants(await self._broker.list_grants())

    @_access("POST /v1/grants", "Give a user or a role a grant.", status=201)
    async def create_grant(self, body: NewGrant) -> GrantInfo:
        return await self._broker.create_grant(body.subject_kind, body.subject, body.grant.meant())

    @_access("DELETE /v1/grants/{grant}", "Take a grant back.")
    async def delete_grant(self, grant: GrantNumber) -> None:
        await self._broker.delete_grant(grant)

    # --- tokens ---------------------------------------------------------------------------------

    @_access("GET /v1/tokens", "List all tokens that may be seen.")
    async def list_tokens(self) -> Tokens:
        return Tokens(await self._broker.list_tokens())

    @_access("GET /v1/users/{user}/tokens", "List a user's tokens.")
    async def list_tokens_of_user(self, user: str) -> Tokens:
        return Tokens(await self._broker.list_tokens(user))

    @_access("POST /v1/users/{user}/tokens", "Issue a token; its secret is told once.", status=201)
    async def create_token(self, user: str, body: NewToken) -> IssuedToken:
        grants = None if body.grants is None else [one.meant() for one in body.grants]
        until = None if body.until_us is None else Micros(body.until_us)
        return await self._broker.create_token(user, body.name, until=until, grants=grants)

    @_access("DELETE /v1/users/{user}/tokens/{token}", "Revoke a token: what it opened ends.")
    async def delete_token(self, user: str, token: str) -> None:
        await self._broker.delete_token(user, token)
