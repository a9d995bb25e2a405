"""Stream groups: one owner, one order."""

from __future__ import annotations

import pytest
from tests.unit.delivery.model import SECOND, Leader

from angarium.delivery import Accepted
from angarium.kinds import GroupKind, Poison
from angarium.machine.changes import Ack, GroupSettings, Set
from angarium.machine.outcomes import Refused


@pytest.fixture
def leader() -> Leader:
    """A stream group with twenty records and an owner that may hold ten."""
    leader = Leader(GroupKind.STREAM, records=20)
    leader.attach("a", 10)
    leader.settle_down()
    return leader


def offsets(leader: Leader) -> list[int]:
    """Return what was delivered, in order."""
    return [offset for _, offset, _ in leader.seen]


def test_one_member_gets_everything_in_order(leader: Leader) -> None:
    leader.attach("b", 10)
    leader.ack("a", 9, cumulative=True)
    leader.settle_down()
    assert offsets(leader) == list(range(20))
    assert leader.delivery.owner == "a"
    assert leader.group.floor == 10


def test_a_failed_record_takes_everything_behind_it_back(leader: Leader) -> None:
    leader.nack("a", 3)
    leader.settle_down()
    assert sorted(leader.held["a"]) == [0, 1, 2]
    refused = leader.delivery.acknowledge("a", (4, 5), now=leader.now)
    assert isinstance(refused, Refused)
    leader.seen.clear()
    leader.wait(SECOND)
    assert leader.seen[:2] == [("a", 3, 2), ("a", 4, 1)]


def test_what_was_acknowledged_behind_a_failed_record_does_not_come_again(leader: Leader) -> None:
    leader.ack("a", 5)
    leader.nack("a", 3)
    leader.settle_down()
    leader.seen.clear()
    leader.wait(SECOND)
    assert offsets(leader)[:3] == [3, 4, 6]


def test_a_released_record_is_the_next_one(leader: Leader) -> None:
    leader.seen.clear()
    leader.release("a", 4)
    leader.settle_down()
    assert leader.seen[0] == ("a", 4, 1)
    assert offsets(leader) == list(range(4, 10))


def test_of_a_dead_members_records_only_the_first_has_failed(leader: Leader) -> None:
    leader.detach("a", clean=False)
    leader.attach("b", 10)
    leader.wait(2 * SECOND)
    assert {one: known.count for one, known in leader.group.attempts.items()} == {0: 1}
    assert leader.held["b"] == {0: 2, **dict.fromkeys(range(1, 10), 1)}


def test_the_preferred_member_takes_over_when_the_old_owner_has_drained(leader: Leader) -> None:
    leader.attach("b", 10)
    leader.delivery.prefer("b")
    leader.ack("a", 4, cumulative=True)
    leader.settle_down()
    assert leader.delivery.owner == "a"
    assert sorted(leader.held["a"]) == [5, 6, 7, 8, 9], "it is lent nothing more"
    leader.ack("a", 9, cumulative=True)
    leader.settle_down()
    assert leader.delivery.owner == "b"
    assert sorted(leader.held["b"]) == list(range(10, 20))


def test_a_stream_that_was_handed_over_goes_back_to_what_the_log_did_not_take(
    leader: Leader,
) -> None:
    leader.attach("b", 10)
    leader.delivery.prefer("b")
    leader.ack("a", 9, cumulative=True)
    (acked,) = leader.step().proposals
    leader.log.clear()
    assert leader.delivery.owner == "b"
    leader.delivery.confirmed(acked.number, Refused("DISK_FULL"), now=leader.now)
    leader.seen.clear()
    leader.settle_down()
    assert leader.seen == [("b", offset, 1) for offset in range(10)]
    assert isinstance(leader.delivery.acknowledge("a", (0, 1), now=leader.now), Refused)


def test_an_owner_keeps_what_the_log_did_not_take(leader: Leader) -> None:
    leader.ack("a", 9, cumulative=True)
    acked = leader.step().proposals[0]
    leader.log.clear()
    leader.delivery.confirmed(acked.number, Refused("DISK_FULL"), now=leader.now)
    leader.settle_down()
    assert leader.delivery.on_loan == 20
    assert isinstance(leader.ack("a", *range(10)), Accepted)
    leader.settle_down()
    assert leader.group.floor == 10


def test_what_the_log_did_not_take_comes_again_after_what_failed_before_it(leader: Leader) -> None:
    leader.ack("a", 6, 7, 8)
    leader.step()
    leader.nack("a", 5)
    leader.refuse_next()
    leader.settle_down()
    assert sorted(leader.held["a"]) == [0, 1, 2, 3, 4], "nothing behind it stays on loan"
    leader.seen.clear()
    leader.wait(SECOND)
    assert offsets(leader) == [5, 6, 7, 8, 9]
    assert leader.delivery.on_loan == 10


def test_an_owner_that_stalls_makes_way(leader: Leader) -> None:
    leader.attach("b", 10)
    leader.wait(32 * SECOND)
    assert leader.delivery.owner == "b"
    assert leader.held["b"][0] == 2
    assert isinstance(leader.delivery.acknowledge("a", (0, 1), now=leader.now), Refused)


def test_after_a_change_of_leader_only_the_owner_of_old_is_served_at_first(leader: Leader) -> None:
    leader.fail_over(expected=["a", "b"])
    leader.attach("b", 10)
    leader.settle_down()
    assert leader.delivery.owner == ""
    leader.attach("a", 10)
    leader.settle_down()
    assert leader.delivery.owner == "a"
    assert sorted(leader.held["a"]) == list(range(10))
    assert isinstance(leader.ack("a", *range(10)), Accepted)


def test_a_poison_record_goes_to_the_dead_letters(leader: Leader) -> None:
    leader.commit(Set("g", GroupSettings(max_attempts=1)))
    leader.nack("a", 0)
    leader.settle_down()
    assert [one.offset for one in leader.letters.values()] == [0]
    leader.bury()
    assert leader.group.floor == 1


def test_a_rejected_record_goes_to_the_dead_letters_whatever_the_group_wants(
    leader: Leader,
) -> None:
    leader.commit(Set("g", GroupSettings(max_attempts=9, poison=Poison.RETRY)))
    leader.nack("a", 0, is_final=True)
    leader.settle_down()
    assert [one.offset for one in leader.letters.values()] == [0]
    leader.bury()
    leader.settle_down()
    assert leader.group.floor == 1
    assert min(leader.held["a"]) == 1, "what lies behind it comes next"


def test_a_poison_record_stops_the_stream_if_the_group_wants_that(leader: Leader) -> None:
    leader.commit(Set("g", GroupSettings(max_attempts=1, poison=Poison.STOP)))
    leader.nack("a", 0)
    leader.settle_down()
    leader.fail_over()
    leader.held.clear()
    leader.attach("a", 10)
    leader.wait(1_000 * SECOND)
    assert leader.delivery.is_stopped
    assert leader.held["a"] == {}
    leader.commit(Ack("g", leader.delivery._ledger.generation, (0, 1)))
    leader.settle_down()
    assert min(leader.held["a"]) == 1, "it goes on"


def test_a_poison_record_is_tried_for_ever_if_the_group_wants_that(leader: Leader) -> None:
    leader.commit(Set("g", GroupSettings(max_attempts=1, poison=Poison.RETRY)))
    for _ in range(4):
        leader.nack("a", 0, delay=0)
        leader.settle_down()
    assert leader.held["a"][0] == 5
