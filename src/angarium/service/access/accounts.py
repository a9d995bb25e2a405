"""The users and tokens of the catalog, as authentication sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.errors import NotLeader
from angarium.security.accounts import Account, KnownToken
from angarium.security.scram import Mechanism, Verifier

if TYPE_CHECKING:
    from angarium.machine.catalog.access_values import UserRow, VerifierRow
    from angarium.node.catalog_view import CatalogView


ACCOUNTS_MAX: Final = 4_096
"""Accounts remembered. At the bound the oldest is made anew when it is asked for again."""


class CatalogAccounts:
    """Implements `security.accounts.Accounts`, from this node's own memory."""

    def __init__(self, catalog: CatalogView) -> None:
        self._catalog = catalog
        self._accounts: dict[str, tuple[UserRow, Account]] = {}
        """What was made of a user's row lately. A change of the user is another row."""

    @property
    def version(self) -> int:
        """Changes whenever an answer might."""
        try:
            return int(self._catalog.access_version)
        except NotLeader:
            return -1  # no catalog yet: nobody has an account

    @property
    def decoy_key(self) -> bytes:
        """Return the cluster's key for salts of names without an account."""
        try:
            return self._catalog.decoy_key
        except NotLeader:
            return b""

    def find_user(self, name: str) -> Account | None:
        """Return the account of that name."""
        row = self._catalog.user(name)
        if row is None:
            return None
        # Asked for every call of who brings a proof; making an account takes longer than the rest.
        known = self._accounts.get(name)
        if known is not None and known[0] is row:
            return known[1]
        if known is None and len(self._accounts) >= ACCOUNTS_MAX:
            del self._accounts[next(iter(self._accounts))]
        account = _account(row)
        self._accounts[name] = row, account
        return account

    def find_token(self, digest: bytes) -> KnownToken | None:
        """Return the token that has this digest."""
        row = self._catalog.token(digest)
        if row is None:
            return None
        return KnownToken(row.owner, row.name, row.until, created_at=row.created_at)


def _account(row: UserRow) -> Account:
    return Account(
        name=row.name,
        password_hash=row.scrypt,
        verifiers=tuple(found for one in row.verifiers if (found := _verifier(one))),
        is_locked=row.is_locked,
        created_at=row.created_at,
    )


def _verifier(row: VerifierRow) -> Verifier | None:
    """Return what a row means; None for a mechanism that this release does not know."""
    if row.mechanism not in set(Mechanism):
        return None
    return Verifier(
        mechanism=Mechanism(row.mechanism),
        iterations=row.iterations,
        salt=row.salt,
        stored_key=row.stored_key,
        server_key=row.server_key,
    )
