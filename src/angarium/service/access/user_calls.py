"""Users, roles, grants and tokens behind the contract: checked here, kept in the catalog.

A password is turned into a hash and verifiers by the node that is asked; what goes into the log,
and to other nodes, cannot be used to log in.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.api.access import (
    ANONYMOUS,
    ANY_ACTION,
    Action,
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
from angarium.errors import InvalidArgument, LimitExceeded, NotFound, PreconditionFailed
from angarium.ids import GrantId
from angarium.machine.catalog import (
    GrantDelete,
    Granted,
    GrantMade,
    GrantPut,
    Holders,
    RoleDelete,
    RolePut,
    TokenDelete,
    TokenPut,
    UserDelete,
    UserPut,
    VerifierRow,
)
from angarium.node.release import ACCESS_LEVEL, HELD_ROLES_LEVEL
from angarium.security import PasswordHash
from angarium.security.permissions import grant_of
from angarium.security.prepared import prepared
from angarium.security.roles import ABOUT, BUILT_IN
from angarium.security.scram import Mechanism, Verifier
from angarium.security.tokens import new_token, token_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from angarium.ids import Micros
    from angarium.machine.catalog import CatalogCommand, CatalogOutcome
    from angarium.machine.catalog.access_values import GrantRow, TokenRow, UserRow
    from angarium.service.own_node import OwnNode

PASSWORD_CHARACTERS_MIN: Final = 8
"""A shorter password is refused when it is set."""

PASSWORD_CHARACTERS_MAX: Final = 1_024
"""A longer one is refused."""

HASHES_MAX: Final = 2
"""Passwords that are hashed at a time: each takes a core for a moment."""

WAITING_MAX: Final = 32
"""Passwords that wait for that. One more is refused."""


RESERVED: Final = frozenset({ANONYMOUS.name, "node"})
"""Names of principals that are no users: grants to users must never meet them."""


class Hashed(NamedTuple):
    """What is kept of a password."""

    scrypt: str
    verifiers: tuple[VerifierRow, ...]


class UserCalls:
    """Implements `api.access.AccessBroker` on a node, but for what depends on who asks."""

    def __init__(self, node: OwnNode, changed: Callable[[], None]) -> None:
        """Prepare; `changed` is called when something has changed here."""
        self._node = node
        self._changed = changed
        self._turn = asyncio.Semaphore(HASHES_MAX)
        self._hashing = 0

    # --- users ----------------------------------------------------------------------------------

    async def create_user(
        self, name: str, *, password: str | None = None, roles: Sequence[str] = ()
    ) -> UserInfo:
        """Make a user."""
        self.check_level()
        if name in RESERVED:
            raise InvalidArgument(f"{name!r} is what the cluster itself calls somebody")
        _check_new_name(name)
        self._check_roles(roles)
        hashed = None if password is None else await self._hashed(password)
        roles = tuple(dict.fromkeys(roles))
        needed = self._needed(roles)
        await self._submit(_user_put(name, hashed, is_new=True, roles=roles, needed=needed))
        return await self.describe_user(name)

    async def alter_user(
        self,
        name: str,
        *,
        password: str | None = None,
        roles: Sequence[str] | None = None,
        is_locked: bool | None = None,
    ) -> UserInfo:
        """Give a user other roles or another password, or lock it out."""
        self.check_level()
        await self.describe_user(name)  # before the work of a hash
        needed: tuple[str, ...] = ()
        if roles is not None:
            self._check_roles(roles)
            roles = tuple(dict.fromkeys(roles))
            needed = self._needed(roles)
        hashed = None if password is None else await self._hashed(password)
        await self._submit(_user_put(name, hashed, roles=roles, is_locked=is_locked, needed=needed))
        return await self.describe_user(name)

    async def delete_user(self, name: str) -> None:
        """Remove a user with its grants and tokens."""
        await self._submit(UserDelete(name=name))

    async def describe_user(self, name: str) -> UserInfo:
        """Return one user; `NotFound`."""
        row = self._node.catalog.user(name)
        if row is None:
            await self._node.catalog.catch_up()
            row = self._node.catalog.user(name)
        if row is None:
            raise NotFound(f"there is no user {name!r}")
        return self._user_info(row)

    async def list_users(self) -> tuple[UserInfo, ...]:
        """Return all users, by name."""
        rows = sorted(self._node.catalog.users(), key=lambda row: row.name)
        return tuple(map(self._user_info, rows))

    def _user_info(self, row: UserRow) -> UserInfo:
        return UserInfo(
            name=row.name,
            roles=row.roles,
            is_locked=row.is_locked,
            has_password=bool(row.scrypt),
            created_at=row.created_at,
            tokens=sum(one.owner == row.name for one in self._node.catalog.tokens()),
        )

    # --- roles and grants -----------------------------------------------------------------------

    async def create_role(self, name: str, *, about: str = "") -> RoleInfo:
        """Make a role that may do nothing yet."""
        _check_not_built_in(name)
        is_unheld = self._knows_holders
        await self._submit(RolePut(name=name, is_new=True, about=about, is_unheld=is_unheld))
        return RoleInfo(name=name, about=about)

    async def delete_role(self, name: str, *, force: bool = False) -> None:
        """Remove a role with its grants; `RoleHeld` while users hold it, or take it from them."""
        _check_not_built_in(name)
        holders = Holders.LOSE if force else Holders.PROTECT
        if not self._knows_holders:
            holders = Holders.IGNORED
        await self._submit(RoleDelete(name=name, holders=holders))

    async def list_roles(self) -> tuple[RoleInfo, ...]:
        """Return all roles with their grants, the built-in ones first."""
        built_in = [
            RoleInfo(
                name=name,
                about=ABOUT[name],
                is_built_in=True,
                grants=tuple(_built_in_grant(name, one) for one in grants),
            )
            for name, grants in BUILT_IN.items()
        ]
        grants = await self.list_grants()
        own = [
            RoleInfo(
                name=row.name,
                about=row.about,
                grants=tuple(
                    one
                    for one in grants
                    if one.subject == row.name and one.subject_kind is SubjectKind.ROLE
                ),
            )
            for row in sorted(self._node.catalog.roles(), key=lambda row: row.name)
        ]
        return (*built_in, *own)

    async def create_grant(
        self, subject_kind: SubjectKind, subject: str, grant: Grant
    ) -> GrantInfo:
        """Give a user or a role a grant."""
        is_role = subject_kind is SubjectKind.ROLE
        if is_role:
            _check_not_built_in(subject)
        made = await self._submit(
            GrantPut(is_role=is_role, subject=subject, granted=granted_of(grant))
        )
        assert isinstance(made, GrantMade)
        return GrantInfo(
            id=GrantId(made.grant), subject_kind=subject_kind, subject=subject, grant=grant
        )

    async def delete_grant(self, grant: int) -> None:
        """Take a grant back."""
        await self._submit(GrantDelete(grant=grant))

    async def list_grants(self) -> tuple[GrantInfo, ...]:
        """Return every grant, but for those of built-in roles."""
        return tuple(found for row in self._node.catalog.grants() if (found := _grant_info(row)))

    # --- tokens ---------------------------------------------------------------------------------

    async def create_token(
        self,
        owner: str,
        name: str,
        *,
        until: Micros | None = None,
        grants: Sequence[Grant] | None = None,
    ) -> IssuedToken:
        """Issue a token."""
        if until is not None and until <= self._node.now():
            raise InvalidArgument("the token would have expired already")
        secret = new_token().reveal()
        await self._submit(
            TokenPut(
                owner=owner,
                name=name,
                digest=token_digest(secret),
                until=until,
                grants=None if grants is None else tuple(map(granted_of, grants)),
            )
        )
        (info,) = [one for one in await self.list_tokens(owner) if one.name == name]
        return IssuedToken(info=info, secret=secret)

    async def delete_token(self, owner: str, name: str) -> None:
        """Revoke a token."""
        self.check_level()
        await self.describe_user(owner)
        await self._submit(TokenDelete(owner=owner, name=name))

    async def list_tokens(self, owner: str | None = None) -> tuple[TokenInfo, ...]:
        """Return the tokens of one user, or all."""
        rows = [row for row in self._node.catalog.tokens() if owner in {None, row.owner}]
        return tuple(map(_token_info, sorted(rows, key=lambda row: (row.owner, row.name))))

    # --- inside ---------------------------------------------------------------------------------

    async def _submit(self, command: CatalogCommand) -> CatalogOutcome:
        self.check_level()
        outcome = await self._node.catalog.submit(command)
        self._changed()
        return outcome

    def check_level(self) -> None:
        """Raise `PreconditionFailed` where the cluster works at a level without users."""
        level = self._node.catalog.level
        if level < ACCESS_LEVEL:
            raise PreconditionFailed(
                f"the cluster works at feature level {level}, and users need {ACCESS_LEVEL}: "
                "upgrade every node, then `angarium cluster raise-level`"
            )

    @property
    def _knows_holders(self) -> bool:
        return self._node.catalog.level >= HELD_ROLES_LEVEL

    def _needed(self, roles: Iterable[str]) -> tuple[str, ...]:
        """Return the roles that the catalog has to have when it gives them to a user: without it a
        role that is being deleted could be held by name, and with it a later one of that name."""
        if not self._knows_holders:
            return ()
        return tuple(role for role in roles if role not in BUILT_IN)

    def _check_roles(self, roles: Iterable[str]) -> None:
        known = {*BUILT_IN, *(row.name for row in self._node.catalog.roles())}
        for role in roles:
            if role not in known:
                raise NotFound(f"there is no role {role!r}")

    async def _hashed(self, password: str) -> Hashed:
        checked_password(password)
        if self._hashing >= HASHES_MAX + WAITING_MAX:
            raise LimitExceeded("password_hashes_max", "too many passwords are being set")
        self._hashing += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(hashed, password)
        except ValueError as error:
            raise InvalidArgument(f"the password cannot be used: {error}") from None
        finally:
            self._hashing -= 1


def checked_password(password: str) -> str:
    """Return a password that may be set; raises `InvalidArgument`."""
    if not PASSWORD_CHARACTERS_MIN <= len(password) <= PASSWORD_CHARACTERS_MAX:
        raise InvalidArgument(
            f"a password has {PASSWORD_CHARACTERS_MIN} to {PASSWORD_CHARACTERS_MAX} characters"
        )
    return password


def hashed(password: str) -> Hashed:
    """Return what is kept of a password; takes about half a second."""
    verifiers = tuple(
        VerifierRow(
            mechanism=one.mechanism.value,
            salt=one.salt,
            iterations=one.iterations,
            stored_key=one.stored_key,
            server_key=one.server_key,
        )
        for one in (Verifier.of(password, mechanism) for mechanism in Mechanism)
    )
    return Hashed(str(PasswordHash.of(password)), verifiers)


def granted_of(grant: Grant) -> Granted:
    """Return the catalog's form of a grant; raises `InvalidArgument` for one that says nothing."""
    known = {ANY_ACTION, *Action}
    for action in grant.actions:
        if action not in known:
            raise InvalidArgument(f"{action!r} is no action; docs/reference/permissions.md has all")
    if not grant.actions:
        raise InvalidArgument("a grant names at least one action")
    if grant.match is Match.EXACT and not grant.name and grant.kind is not ResourceKind.CLUSTER:
        raise InvalidArgument("an exact grant names something")
    return Granted(
        actions=tuple(dict.fromkeys(map(str, grant.actions))),
        kind=grant.kind.value,
        name=grant.name,
        is_prefix=grant.match is Match.PREFIX,
        is_deny=grant.effect is Effect.DENY,
    )


def _check_new_name(name: str) -> None:
    """Raise `InvalidArgument` for a name that SCRAM would compare as another one.

    A login prepares the name first (SASLprep), so the user of such a name could not log in with
    its password on the wire, and two names that look alike could stand for two users. Those that
    were made before stay as they are.
    """
    try:
        plain = prepared(name)
    except ValueError as error:
        raise InvalidArgument(f"the name {name!a} {error}") from None
    if plain != name:
        raise InvalidArgument(f"logins compare the name {name!a} as {plain!a}: make that user")


def _user_put(
    name: str,
    kept: Hashed | None,
    *,
    is_new: bool = False,
    roles: Sequence[str] | None,
    is_locked: bool | None = None,
    needed: tuple[str, ...] = (),
) -> UserPut:
    return UserPut(
        name=name,
        is_new=is_new,
        roles=None if roles is None else tuple(roles),
        scrypt=None if kept is None else kept.scrypt,
        verifiers=None if kept is None else kept.verifiers,
        is_locked=is_locked,
        roles_needed=needed,
    )


def _check_not_built_in(role: str) -> None:
    if role in BUILT_IN:
        raise InvalidArgument(f"the role {role!r} is built in and stays as it is; make another one")


def _built_in_grant(role: str, grant: Grant) -> GrantInfo:
    return GrantInfo(id=GrantId(0), subject_kind=SubjectKind.ROLE, subject=role, grant=grant)


def _grant_info(row: GrantRow) -> GrantInfo | None:
    grant = grant_of(row.granted)
    if grant is None:
        return None
    kind = SubjectKind.ROLE if row.is_role else SubjectKind.USER
    return GrantInfo(id=GrantId(row.id), subject_kind=kind, subject=row.subject, grant=grant)


def _token_info(row: TokenRow) -> TokenInfo:
    grants = None
    if row.grants is not None:
        grants = tuple(found for one in row.grants if (found := grant_of(one)))
    return TokenInfo(
        owner=row.owner, name=row.name, created_at=row.created_at, until=row.until, grants=grants
    )
