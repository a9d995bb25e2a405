"""Users, roles, grants and tokens, as the contract has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from angarium.api.access import (
    Caller,
    Decision,
    GrantInfo,
    IssuedJoinToken,
    IssuedToken,
    RoleInfo,
    UserInfo,
)
from angarium.wire.operations import Operation, access

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api.access import Grant, JoinTokenInfo, ResourceKind, SubjectKind, TokenInfo
    from angarium.client.reach import Reach
    from angarium.ids import Micros


class AccessAdministration(ABC):
    """What a client can do about who may do what; implements `api.access.AccessBroker`, and
    `JoinTokenBroker`.

    What would be refused the second time is not repeated when its outcome is unknown.
    """

    @property
    @abstractmethod
    def _reach(self) -> Reach: ...

    async def whoami(self) -> Caller:
        """Return who asks, as the cluster sees it."""
        frame = await self._reach.calls.ask(Operation.WHOAMI)
        return frame.unpack(Caller)

    async def can(self, user: str, action: str, *, kind: ResourceKind, name: str = "") -> Decision:
        """Tell whether a user may do something, and which grant says so."""
        header = access.CanHeader(user, action, kind, name)
        return (await self._reach.calls.ask(Operation.CAN, header)).unpack(Decision)

    async def create_user(
        self, name: str, *, password: str | None = None, roles: Sequence[str] = ()
    ) -> UserInfo:
        """Make a user; without a password it comes in by tokens or certificates alone."""
        header = access.CreateUserHeader(name, password, tuple(roles))
        frame = await self._reach.calls.ask(Operation.CREATE_USER, header, may_repeat=False)
        return frame.unpack(UserInfo)

    async def alter_user(
        self,
        name: str,
        *,
        password: str | None = None,
        roles: Sequence[str] | None = None,
        is_locked: bool | None = None,
    ) -> UserInfo:
        """Give a user other roles or another password, or lock it out; None: as before."""
        kept = None if roles is None else tuple(roles)
        header = access.AlterUserHeader(name, password, kept, is_locked)
        return (await self._reach.calls.ask(Operation.ALTER_USER, header)).unpack(UserInfo)

    async def delete_user(self, name: str) -> None:
        """Remove a user with its grants and tokens."""
        header = access.NameHeader(name)
        await self._reach.calls.ask(Operation.DELETE_USER, header, may_repeat=False)

    async def describe_user(self, name: str) -> UserInfo:
        """Return one user; `NotFound`."""
        frame = await self._reach.calls.ask(Operation.DESCRIBE_USER, access.NameHeader(name))
        return frame.unpack(UserInfo)

    async def list_users(self) -> tuple[UserInfo, ...]:
        """Return all users that may be seen, by name."""
        frame = await self._reach.calls.ask(Operation.LIST_USERS)
        return frame.unpack(access.UsersAnswer).users

    async def create_role(self, name: str, *, about: str = "") -> RoleInfo:
        """Make a role that may do nothing yet."""
        header = access.CreateRoleHeader(name, about)
        frame = await self._reach.calls.ask(Operation.CREATE_ROLE, header, may_repeat=False)
        return frame.unpack(RoleInfo)

    async def delete_role(self, name: str, *, force: bool = False) -> None:
        """Remove a role with its grants; `RoleHeld` while users hold it, or take it from them."""
        header = access.DeleteRoleHeader(name, force)
        await self._reach.calls.ask(Operation.DELETE_ROLE, header, may_repeat=False)

    async def list_roles(self) -> tuple[RoleInfo, ...]:
        """Return all roles that may be seen, with their grants, the built-in ones first."""
        frame = await self._reach.calls.ask(Operation.LIST_ROLES)
        return frame.unpack(access.RolesAnswer).roles

    async def create_grant(
        self, subject_kind: SubjectKind, subject: str, grant: Grant
    ) -> GrantInfo:
        """Give a user or a role a grant; the same one again is the one that is there."""
        header = access.CreateGrantHeader(subject_kind, subject, grant)
        return (await self._reach.calls.ask(Operation.CREATE_GRANT, header)).unpack(GrantInfo)

    async def delete_grant(self, grant: int) -> None:
        """Take a grant back."""
        header = access.DeleteGrantHeader(grant)
        await self._reach.calls.ask(Operation.DELETE_GRANT, header, may_repeat=False)

    async def list_grants(self) -> tuple[GrantInfo, ...]:
        """Return every grant, but for those of built-in roles."""
        frame = await self._reach.calls.ask(Operation.LIST_GRANTS)
        return frame.unpack(access.GrantsAnswer).grants

    async def create_token(
        self,
        owner: str,
        name: str,
        *,
        until: Micros | None = None,
        grants: Sequence[Grant] | None = None,
    ) -> IssuedToken:
        """Issue a token; under a name that the owner has used it takes the place of the old one."""
        narrowed = None if grants is None else tuple(grants)
        header = access.CreateTokenHeader(owner, name, until, narrowed)
        return (await self._reach.calls.ask(Operation.CREATE_TOKEN, header)).unpack(IssuedToken)

    async def delete_token(self, owner: str, name: str) -> None:
        """Revoke a token: what was opened with it ends."""
        header = access.DeleteTokenHeader(owner, name)
        await self._reach.calls.ask(Operation.DELETE_TOKEN, header, may_repeat=False)

    async def list_tokens(self, owner: str | None = None) -> tuple[TokenInfo, ...]:
        """Return the tokens of one user, or all that may be seen."""
        frame = await self._reach.calls.ask(Operation.LIST_TOKENS, access.ListTokensHeader(owner))
        return frame.unpack(access.TokensAnswer).tokens

    async def create_join_token(self, *, until: Micros | None = None) -> IssuedJoinToken:
        """Issue a token that lets one node in, once; without `until` it is good for an hour."""
        header = access.CreateJoinTokenHeader(until)
        frame = await self._reach.calls.ask(Operation.CREATE_JOIN_TOKEN, header)
        return frame.unpack(IssuedJoinToken)

    async def delete_join_token(self, token: int) -> None:
        """Withdraw a join token; a node that it has let in stays."""
        header = access.DeleteJoinTokenHeader(token)
        await self._reach.calls.ask(Operation.DELETE_JOIN_TOKEN, header, may_repeat=False)

    async def list_join_tokens(self) -> tuple[JoinTokenInfo, ...]:
        """Return the join tokens that are not forgotten, the oldest first."""
        frame = await self._reach.calls.ask(Operation.LIST_JOIN_TOKENS)
        return frame.unpack(access.JoinTokensAnswer).tokens
