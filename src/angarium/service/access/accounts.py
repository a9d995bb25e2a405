"""The users and tokens of the catalog, as authentication sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import NotLeader
from angarium.security.accounts import Account, KnownToken
from angarium.security.scram import Mechanism, Verifier

if TYPE_CHECKING:
    from angarium.machine.catalog.access_values import VerifierRow
    from angarium.node.catalog_view import CatalogView


class CatalogAccounts:
    """Implements `security.accounts.Accounts`, from this node's own memory."""

    def __init__(self, catalog: CatalogView) -> None:
        self._catalog = catalog

    @property
    def version(self) -> int:
        """Changes whenever an answer might."""
        try:
            return int(self._catalog.access_version)
        except NotLeader:
            return -1  # no catalog yet: nobody has an account

    def find_user(self, name: str) -> Account | None:
        """Return the account of that name."""
        row = self._catalog.user(name)
        if row is None:
            return None
        return Account(
            name=row.name,
            password_hash=row.scrypt,
            verifiers=tuple(found for one in row.verifiers if (found := _verifier(one))),
            is_locked=row.is_locked,
            created_at=row.created_at,
        )

    def find_token(self, digest: bytes) -> KnownToken | None:
        """Return the token that has this digest."""
        row = self._catalog.token(digest)
        if row is None:
            return None
        return KnownToken(row.owner, row.name, row.until, created_at=row.created_at)


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
