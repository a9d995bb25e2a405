"""Key groups: the order of each key, and keys that stay with their members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.delivery.model import SECOND, Leader

from angarium.delivery import key_order
from angarium.kinds import GroupKind
from angarium.testing.memory_records import Slot

if TYPE_CHECKING:
    import pytest


def keyed(*keys: int) -> Leader:
    """Return a key group over records with these keys."""
    leader = Leader(GroupKind.KEY)
    leader.records.add(*[Slot(key=key) for key in keys])
    return leader


def test_one_record_of_a_key_is_out_at_a_time() -> None:
    leader = keyed(7, 7, 8, 7, 0, 0)
    leader.attach("a", 10)
    leader.settle_down()
    assert sorted(leader.held["a"]) == [0, 2, 4, 5]
    leader.ack("a", 0)
    leader.step()
    assert sorted(leader.held["a"]) == [2, 4, 5], "not before it is committed"
    leader.commit_next()
    leader.step()
    assert sorted(leader.held["a"]) == [1, 2, 4, 5]


def test_a_failed_record_holds_back_its_own_key_alone() -> None:
    leader = keyed(7, 8, 7, 8)
    leader.attach("a", 10)
    leader.settle_down()
    leader.nack("a", 0)
    leader.ack("a", 1)
    leader.settle_down()
    assert sorted(leader.held["a"]) == [3]
    leader.wait(SECOND)
    assert leader.held["a"] == {0: 2, 3: 1}


def test_a_dead_letter_lets_its_key_go_on() -> None:
    leader = keyed(7, 7)
    leader.attach("a", 10)
    for _ in range(5):
        leader.settle_down()
        leader.nack("a", 0, delay=0)
    leader.settle_down()
    assert sorted(leader.held["a"]) == [1]
    assert [one.attempts for one in leader.letters.values()] == [5]


def test_a_key_stays_with_its_member_and_few_move_when_one_comes() -> None:
    keys = list(range(1, 201))
    leader = keyed(*keys)
    for name in "abc":
        leader.attach(name, 1_000)
    leader.settle_down()
    before = {offset: name for name in "abc" for offset in leader.held[name]}
    for name in "abc":
        leader.ack(name, *leader.held[name])
    leader.settle_down()
    leader.attach("d", 1_000)
    leader.records.add(*[Slot(key=key) for key in keys])
    leader.settle_down()
    after = {offset - 200: name for name in "abcd" for offset in leader.held[name]}
    moved = [one for one in before if after[one] != before[one]]
    assert {after[one] for one in moved} == {"d"}
    assert 25 <= len(moved) <= 80


def test_keys_move_as_members_come_and_go_and_many_keys_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(key_order, "OWNERS_MAX", 16)
    keys = list(range(1, 101))
    leader = keyed(*keys)
    for name in "abcd":
        leader.attach(name, 5)
    leader.settle_down()
    leader.detach("b", clean=True)
    leader.settle_down()
    leader.attach("e", 1_000)
    leader.detach("a", clean=False)
    for name in ("c", "d"):
        leader.detach(name, clean=True)
    leader.wait(10 * SECOND)
    assert sorted(leader.held["e"]) == list(range(100)), "whoever is left has all keys"


def test_a_new_leader_takes_over_very_many_records_that_wait() -> None:
    keys = [7 if number % 3 == 0 else number % 50 for number in range(3_000)]
    leader = keyed(*keys)
    leader.attach("a", 3_000)
    leader.settle_down()
    while len(leader.group.attempts) < 40:
        leader.nack("a", *leader.held["a"], delay=5 * SECOND)
        leader.settle_down()
    failed = set(leader.group.attempts)
    leader.fail_over()
    leader.attach("a", 3_000)
    leader.settle_down()
    assert not failed & set(leader.held["a"]), "not before their time"
    leader.wait(10 * SECOND)
    assert {leader.held["a"][one] for one in failed & set(leader.held["a"])} == {2}
    assert failed & set(leader.held["a"])


def test_after_a_change_of_leader_a_key_still_waits_for_its_failed_record() -> None:
    leader = keyed(7, 7, 7)
    leader.attach("a", 10)
    leader.settle_down()
    leader.nack("a", 0)
    leader.settle_down()
    leader.fail_over()
    leader.attach("b", 10)
    leader.settle_down()
    assert leader.held["b"] == {}
    leader.wait(SECOND)
    assert leader.held["b"] == {0: 2}


def test_claims_keep_the_order_of_keys() -> None:
    leader = keyed(7, 8, 7)
    leader.attach("a", 10)
    leader.settle_down()
    leader.fail_over(expected=["a"])
    leader.attach("a", 10)
    leader.attach("b", 10)
    leader.settle_down()
    assert sorted(leader.held["a"]) == [0, 1]
    assert leader.held["b"] == {}


def test_the_look_ahead_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_order, "LOOKAHEAD_RECORDS_MAX", 50)
    leader = keyed(*[7] * 200, 8)
    leader.attach("a", 10)
    leader.settle_down()
    assert sorted(leader.held["a"]) == [0], "key 8 lies beyond what is looked at"
    for offset in range(200):
        leader.ack("a", offset)
        leader.settle_down()
    assert leader.group.floor == 200 or 200 in leader.held["a"]
