"""Changes of users, roles, grants, tokens and quotas, as entries of group 0."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

import msgspec

from angarium.ids import Micros
from angarium.machine.catalog.access_values import Granted, VerifierRow


class _Command(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    time: Micros = Micros(0)
    """The leader's clock in µs."""


class UserPut(_Command, frozen=True, kw_only=True, array_like=True):
    """Make a user, or change what is not None."""

    name: str
    is_new: bool = False
    roles: tuple[str, ...] | None = None
    scrypt: str | None = None
    verifiers: tuple[VerifierRow, ...] | None = None
    is_locked: bool | None = None
    roles_needed: tuple[str, ...] = ()
    """The roles among `roles` that are not built in: each must exist. Since feature level 8."""

    def __repr__(self) -> str:
        return f"UserPut({self.name!r}, is_new={self.is_new}, …)"


class UserDelete(_Command, frozen=True, kw_only=True, array_like=True):
    """Remove a user with its grants and tokens."""

    name: str


class RolePut(_Command, frozen=True, kw_only=True, array_like=True):
    """Make a role, or say something else about it."""

    name: str
    is_new: bool = False
    about: str = ""
    is_unheld: bool = False
    """Whether users that still have the name of a deleted role lose it, and its old quota is
    deleted. Since feature level 8."""


class Holders(IntEnum):
    """What happens to the users that hold a role when it is deleted. The numbers never change."""

    IGNORED = 0
    """They keep its name, and so hold a later role of that name. As before feature level 8."""
    PROTECT = 1
    """The role is not deleted while a user holds it."""
    LOSE = 2
    """They lose the role."""


class RoleDelete(_Command, frozen=True, kw_only=True, array_like=True):
    """Remove a role with its grants."""

    name: str
    holders: Holders = Holders.IGNORED


class GrantPut(_Command, frozen=True, kw_only=True, array_like=True):
    """Give a user or a role a grant."""

    is_role: bool
    subject: str
    granted: Granted


class GrantDelete(_Command, frozen=True, kw_only=True, array_like=True):
    """Take a grant back."""

    grant: int


class TokenPut(_Command, frozen=True, kw_only=True, array_like=True):
    """Issue a token, or another secret under the same name."""

    owner: str
    name: str
    digest: bytes
    until: Micros | None = None
    grants: tuple[Granted, ...] | None = None

    def __repr__(self) -> str:
        return f"TokenPut({self.owner!r}, {self.name!r}, until={self.until}, …)"


class TokenDelete(_Command, frozen=True, kw_only=True, array_like=True):
    """Revoke a token."""

    owner: str
    name: str


class QuotaPut(_Command, frozen=True, kw_only=True, array_like=True):
    """Set limits of a quota; what is `cleared` is said nothing about any more."""

    kind: str
    subject: str
    limits: tuple[tuple[str, int], ...] = ()
    cleared: tuple[str, ...] = ()


class QuotaDelete(_Command, frozen=True, kw_only=True, array_like=True):
    """Forget a quota."""

    kind: str
    subject: str


AccessCommand: TypeAlias = (
    UserPut
    | UserDelete
    | RolePut
    | RoleDelete
    | GrantPut
    | GrantDelete
    | TokenPut
    | TokenDelete
    | QuotaPut
    | QuotaDelete
)
