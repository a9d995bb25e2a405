"""Accounts are made of the catalog's rows once, and anew when a row is another one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from angarium.ids import Index, Micros, Term
from angarium.machine.catalog import DECOY_KEY_LEVEL, CatalogMachine, Form, encode
from angarium.machine.catalog.access_values import UserRow
from angarium.security.authenticating import Authenticator
from angarium.security.scram import Mechanism
from angarium.service.access import accounts as catalog_accounts
from angarium.service.access.accounts import CatalogAccounts

if TYPE_CHECKING:
    import pytest

    from angarium.node.catalog_view import CatalogView


class Users(dict[str, UserRow]):
    """A catalog of users."""

    def user(self, name: str) -> UserRow | None:
        return self.get(name)


def opened(*rows: UserRow) -> tuple[Users, CatalogAccounts]:
    users = Users({one.name: one for one in rows})
    return users, CatalogAccounts(cast("CatalogView", users))


def test_an_account_is_made_once() -> None:
    _, accounts = opened(UserRow("ann", scrypt="hash", created_at=Micros(7)))
    first = accounts.find_user("ann")
    assert first is not None
    assert (first.name, first.password_hash, first.created_at) == ("ann", "hash", 7)
    assert accounts.find_user("ann") is first


def test_whatever_changes_in_a_user_counts_at_once() -> None:
    users, accounts = opened(UserRow("ann", scrypt="old"))
    accounts.find_user("ann")
    for changed in (
        UserRow("ann", scrypt="new"),
        UserRow("ann", scrypt="new", is_locked=True),
        UserRow("ann", created_at=Micros(9)),
    ):
        users["ann"] = changed
        found = accounts.find_user("ann")
        assert found is not None
        assert (found.password_hash, found.is_locked, found.created_at) == (
            changed.scrypt,
            changed.is_locked,
            changed.created_at,
        )
    del users["ann"]
    assert accounts.find_user("ann") is None


def test_no_more_accounts_are_remembered_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalog_accounts, "ACCOUNTS_MAX", 3)
    _, accounts = opened(*[UserRow(f"user-{at}") for at in range(10)])
    for _ in range(2):
        for at in range(10):
            found = accounts.find_user(f"user-{at}")
            assert found is not None
            assert found.name == f"user-{at}"
    assert len(accounts._accounts) == 3


def test_every_node_gives_the_same_salt_for_a_name_without_an_account() -> None:
    """And so does a node that was started again: else two answers tell decoys from accounts."""

    def salts(key: bytes) -> list[bytes]:
        machine = CatalogMachine()
        formed = Form(cluster="c", level=DECOY_KEY_LEVEL, decoy_key=key)
        machine.apply(Index(1), Term(1), encode(formed))
        found = []
        for _ in range(2):  # two nodes, or one that was started twice
            node = CatalogMachine()
            node.restore(machine.snapshot())
            view = SimpleNamespace(user=lambda _: None, decoy_key=node.decoy_key, access_version=0)
            accounts = CatalogAccounts(cast("CatalogView", view))
            authenticator = Authenticator(accounts, anonymous=None)
            found += [authenticator.verifier(name, one).salt for name in NAMES for one in Mechanism]
        return found

    ours = salts(b"k" * 32)
    assert ours[:4] == ours[4:]
    assert len(set(ours)) == 4
    assert not set(ours) & set(salts(b"o" * 32))
    # Without a key, below its level, every process has its own.
    assert len(set(salts(b""))) == 8


NAMES = ("ghost", "Ghost")
