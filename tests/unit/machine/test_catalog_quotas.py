"""Quotas in the catalog: rules, bounds, and the same state after a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.machine.leader import assert_refused
from tests.unit.machine.test_catalog_machine import Catalog

from angarium.machine import Done
from angarium.machine.catalog import (
    CatalogMachine,
    QuotaDelete,
    QuotaPut,
    QuotaRow,
    RoleDelete,
    RolePut,
    UserDelete,
    UserPut,
    decode,
    encode,
    quotas,
)

if TYPE_CHECKING:
    import pytest


def with_alice() -> Catalog:
    catalog = Catalog()
    catalog.do(UserPut(name="alice", is_new=True))
    return catalog


def rows(catalog: Catalog) -> list[QuotaRow]:
    return list(catalog.machine.access.quotas.rows.values())


def of_alice(**limits: int) -> QuotaPut:
    return QuotaPut(kind="user", subject="alice", limits=tuple(limits.items()))


def test_a_quota_is_changed_limit_by_limit_and_every_change_is_a_version() -> None:
    catalog = with_alice()
    access = catalog.machine.access
    before = access.version
    assert catalog.do(of_alice(requests=5, bytes_in=100)) == Done()
    assert access.version > before
    assert rows(catalog) == [QuotaRow("user", "alice", (("bytes_in", 100), ("requests", 5)))]
    version = access.version
    assert catalog.do(of_alice(requests=5)) == Done(changed=False)
    assert access.version == version
    assert catalog.do(of_alice(requests=-1)) == Done()
    cleared = QuotaPut(kind="user", subject="alice", cleared=("bytes_in", "connections"))
    assert catalog.do(cleared) == Done()
    assert rows(catalog) == [QuotaRow("user", "alice", (("requests", -1),))]
    last = QuotaPut(kind="user", subject="alice", cleared=("requests",))
    assert catalog.do(last) == Done()
    assert rows(catalog) == []
    assert catalog.do(last) == Done(changed=False)


def test_a_user_has_to_be_there_and_takes_its_quota_along() -> None:
    catalog = with_alice()
    nobody = QuotaPut(kind="user", subject="bob", limits=(("requests", 1),))
    assert_refused(catalog.do(nobody), "NOT_FOUND")
    catalog.do(of_alice(requests=1))
    catalog.do(RolePut(name="reader", is_new=True))
    catalog.do(QuotaPut(kind="role", subject="reader", limits=(("requests", 2),)))
    catalog.do(QuotaPut(kind="default", subject="", limits=(("requests", 3),)))
    catalog.do(QuotaPut(kind="topic", subject="team-a", limits=(("stored_bytes", 4),)))
    assert catalog.do(UserDelete(name="alice")) == Done()
    assert catalog.do(RoleDelete(name="reader")) == Done()
    assert [row.kind for row in rows(catalog)] == ["default", "topic"]
    assert catalog.do(QuotaDelete(kind="default", subject="")) == Done()
    assert_refused(catalog.do(QuotaDelete(kind="default", subject="")), "NOT_FOUND")


def test_limits_are_above_zero_and_words_are_short() -> None:
    catalog = with_alice()
    for amount in (0, -2, quotas.AMOUNT_MAX + 1):
        assert_refused(catalog.do(of_alice(requests=amount)), "INVALID_ARGUMENT")
    assert_refused(catalog.do(of_alice(**{"x" * 33: 1})), "INVALID_ARGUMENT")
    assert_refused(
        catalog.do(QuotaPut(kind="", subject="", limits=(("requests", 1),))), "INVALID_ARGUMENT"
    )
    long = QuotaPut(kind="topic", subject="x" * 257, limits=(("stored_bytes", 1),))
    assert_refused(catalog.do(long), "TOO_LARGE")
    many = of_alice(**{f"kind-{number}": 1 for number in range(17)})
    assert_refused(catalog.do(many), "TOO_LARGE")
    assert rows(catalog) == []


def test_there_are_so_many_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "QUOTAS_MAX", 2)
    catalog = with_alice()
    for name in ("a", "b"):
        put = QuotaPut(kind="topic", subject=name, limits=(("stored_bytes", 1),))
        assert catalog.do(put) == Done()
    assert_refused(catalog.do(of_alice(requests=1)), "RESOURCE_EXHAUSTED")
    again = QuotaPut(kind="topic", subject="a", limits=(("stored_bytes", 2),))
    assert catalog.do(again) == Done()


def test_a_snapshot_has_them_and_one_without_any_has_no_part_for_them() -> None:
    catalog = with_alice()
    without = catalog.machine.snapshot()
    catalog.do(of_alice(requests=1, connections=-1))
    catalog.do(QuotaPut(kind="topic", subject="", limits=(("stored_bytes", 1 << 50),)))
    restored = CatalogMachine()
    restored.restore(catalog.machine.snapshot())
    assert restored.access.quotas.rows == catalog.machine.access.quotas.rows
    assert restored.access.version == catalog.machine.access.version
    restored.restore(without)
    assert restored.access.quotas.rows == {}
    assert bytes([32]) not in {bytes([part]) for part in parts_of(without)}


def parts_of(snapshot: bytes) -> list[int]:
    found, at = [], 0
    while at < len(snapshot):
        found.append(snapshot[at])
        at += 5 + int.from_bytes(snapshot[at + 1 : at + 5], "little")
    return found


def test_commands_come_back_as_they_were_written() -> None:
    for command in (
        QuotaPut(kind="role", subject="r", limits=(("requests", 7),), cleared=("bytes_in",)),
        QuotaDelete(kind="topic", subject="team-a"),
    ):
        assert decode(encode(command)) == command
