"""Accounts in memory, for tests of whoever asks an authenticator."""

from __future__ import annotations

import time
from typing import Any

from angarium.ids import Micros
from angarium.security.accounts import Account, KnownToken
from angarium.security.authenticating import Authenticator
from angarium.security.passwords import PasswordHash
from angarium.security.scram import Mechanism, Verifier
from angarium.security.tokens import new_token, token_digest


def quick_hash(password: str) -> str:
    """Return a hash that costs nothing, for tests that are about something else."""
    empty = PasswordHash(cost_log2=4, block=1, parallel=1, salt=b"salt" * 4, digest=b"")
    digest = empty._hashed(password, 32)
    return str(PasswordHash(cost_log2=4, block=1, parallel=1, salt=empty.salt, digest=digest))


def account(name: str, password: str, **changes: Any) -> Account:
    """Return a user with a password."""
    verifiers = tuple(Verifier.of(password, one, iterations=4_096) for one in Mechanism)
    made = Account(name=name, password_hash=quick_hash(password), verifiers=verifiers)
    return made._replace(**changes)


class AccountsInMemory:
    """What the catalog knows in production."""

    def __init__(self, *accounts: Account) -> None:
        self.version = 1
        self.users = {one.name: one for one in accounts}
        self.tokens: dict[bytes, KnownToken] = {}
        self.decoy_key = b""

    def find_user(self, name: str) -> Account | None:
        """Return the account of that name."""
        return self.users.get(name)

    def find_token(self, digest: bytes) -> KnownToken | None:
        """Return the token with that digest."""
        return self.tokens.get(digest)

    def issue(self, owner: str, name: str = "test", *, seconds: float | None = None) -> str:
        """Return a new token, which lasts so many seconds."""
        text = new_token().reveal()
        until = None if seconds is None else Micros(int((time.time() + seconds) * 1_000_000))
        self.tokens[token_digest(text)] = KnownToken(owner, name, until)
        return text


def authenticator(accounts: AccountsInMemory, **changes: Any) -> Authenticator:
    """Return an authenticator that lets nobody in without a proof."""
    changes.setdefault("anonymous", None)
    return Authenticator(accounts, **changes)
