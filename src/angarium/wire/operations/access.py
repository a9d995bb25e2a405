"""Users, roles, grants and tokens as frames. The answers come in the payload."""

from __future__ import annotations

import msgspec

from angarium.api.access import (
    Grant,
    GrantInfo,
    JoinTokenInfo,
    ResourceKind,
    RoleInfo,
    SubjectKind,
    TokenInfo,
    UserInfo,
)
from angarium.ids import Micros


class CanHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.access.Decision`."""

    user: str
    action: str
    kind: ResourceKind
    name: str = ""


class CreateUserHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.access.UserInfo`."""

    name: str
    password: str | None = None
    roles: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"CreateUserHeader({self.name!r}, …)"


class AlterUserHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.access.UserInfo`."""

    name: str
    password: str | None = None
    roles: tuple[str, ...] | None = None
    is_locked: bool | None = None

    def __repr__(self) -> str:
        return f"AlterUserHeader({self.name!r}, …)"


class NameHeader(msgspec.Struct, frozen=True, array_like=True):
    """A user: to delete (answered with nothing) or describe (`api.access.UserInfo`)."""

    name: str


class DeleteRoleHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with nothing."""

    name: str
    force: bool = False
    """Whether it is taken from the users that hold it."""


class UsersAnswer(msgspec.Struct, frozen=True, array_like=True):
    """All users that may be seen."""

    users: tuple[UserInfo, ...]


class CreateRoleHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.access.RoleInfo`."""

    name: str
    about: str = ""


class RolesAnswer(msgspec.Struct, frozen=True, array_like=True):
    """All roles that may be seen."""

    roles: tuple[RoleInfo, ...]


class CreateGrantHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.access.GrantInfo`."""

    subject_kind: SubjectKind
    subject: str
    grant: Grant


class DeleteGrantHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with nothing."""

    grant: int


class GrantsAnswer(msgspec.Struct, frozen=True, array_like=True):
    """Every grant, but for those of built-in roles."""

    grants: tuple[GrantInfo, ...]


class CreateTokenHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.access.IssuedToken`."""

    owner: str
    name: str
    until: Micros | None = None
    grants: tuple[Grant, ...] | None = None


class DeleteTokenHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with nothing."""

    owner: str
    name: str


class ListTokensHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `TokensAnswer`."""

    owner: str | None = None


class TokensAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The tokens that may be seen."""

    tokens: tuple[TokenInfo, ...]


class CreateJoinTokenHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.access.IssuedJoinToken`."""

    until: Micros | None = None


class DeleteJoinTokenHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with nothing."""

    token: int


class JoinTokensAnswer(msgspec.Struct, frozen=True, array_like=True):
    """Those that are not forgotten."""

    tokens: tuple[JoinTokenInfo, ...]
