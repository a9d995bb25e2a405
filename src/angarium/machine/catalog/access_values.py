"""What the catalog knows of users, roles, grants, tokens, quotas. No secret is among it."""

from __future__ import annotations

import msgspec

from angarium.ids import Micros


class VerifierRow(msgspec.Struct, frozen=True, array_like=True):
    """What SCRAM checks a password with; who has it cannot log in by it."""

    mechanism: str
    """As `SCRAM-SHA-256`."""
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"VerifierRow({self.mechanism}, …)"


class UserRow(msgspec.Struct, frozen=True, array_like=True):
    """One user."""

    name: str
    roles: tuple[str, ...] = ()
    scrypt: str = ""
    """The password's hash; empty: the user has none."""
    verifiers: tuple[VerifierRow, ...] = ()
    is_locked: bool = False
    created_at: Micros = Micros(0)

    def __repr__(self) -> str:
        return f"UserRow({self.name!r}, roles={self.roles!r}, is_locked={self.is_locked}, …)"


class RoleRow(msgspec.Struct, frozen=True, array_like=True):
    """One role; its grants name it."""

    name: str
    about: str = ""


class Granted(msgspec.Struct, frozen=True, array_like=True):
    """What a grant says, in words that the contract gives a meaning to."""

    actions: tuple[str, ...]
    kind: str
    name: str = ""
    is_prefix: bool = True
    is_deny: bool = False


class GrantRow(msgspec.Struct, frozen=True, array_like=True):
    """One grant, and whose it is."""

    id: int
    is_role: bool
    subject: str
    granted: Granted


class TokenRow(msgspec.Struct, frozen=True, array_like=True):
    """One token."""

    owner: str
    name: str
    digest: bytes
    created_at: Micros = Micros(0)
    until: Micros | None = None
    grants: tuple[Granted, ...] | None = None
    """None: whatever its owner may."""

    def __repr__(self) -> str:
        return f"TokenRow({self.owner!r}, {self.name!r}, until={self.until}, …)"


class QuotaRow(msgspec.Struct, frozen=True, array_like=True):
    """One quota, in words that the contract gives a meaning to."""

    kind: str
    """What kind of subject it is about."""
    subject: str
    limits: tuple[tuple[str, int], ...] = ()
    """What is limited to how much, sorted; -1: not at all."""


class GrantMade(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """The grant has this number; `repeated` when it was there before."""

    grant: int
    repeated: bool = False
