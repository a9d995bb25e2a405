"""What authentication has to know about accounts, and whom it asks: the catalog, in production."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from angarium.ids import Micros
    from angarium.security.scram import Verifier


class Account(NamedTuple):
    """A user, as far as a login needs it."""

    name: str
    password_hash: str = ""
    """A line of `PasswordHash`; empty for who has no password."""
    verifiers: tuple[Verifier, ...] = ()
    """One per mechanism, made together with the hash."""
    is_locked: bool = False
    created_at: Micros | None = None

    def __repr__(self) -> str:
        return f"Account({self.name!r})"


class KnownToken(NamedTuple):
    """A token that was issued and not revoked."""

    owner: str
    name: str
    until: Micros | None = None
    created_at: Micros | None = None
    """A token that gets another secret is another token."""


class Accounts(Protocol):
    """Those who may come in. Answers at once, from memory."""

    @property
    def version(self) -> int:
        """Changes whenever an answer might."""
        ...

    @property
    def decoy_key(self) -> bytes:
        """What salts are made of for names that have no account; empty if nothing is known that
        other nodes know, too."""
        ...

    def find_user(self, name: str) -> Account | None:
        """Return the account of that name."""
        ...

    def find_token(self, digest: bytes) -> KnownToken | None:
        """Return the token that has this digest (`tokens.token_digest`)."""
        ...
