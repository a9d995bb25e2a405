"""Queue groups: any member, per-record settlements, retries, dead letters, time."""

from __future__ import annotations

import pytest
from tests.unit.delivery.model import SECOND, Leader, ranges_of

from angarium.delivery import GRACE_MICROS, Accepted, Held, proposals
from angarium.delivery.loans import TICK_MICROS
from angarium.ids import Index, Micros
from angarium.kinds import Behind, GroupKind
from angarium.machine.changes import Ack, GroupSettings, Set
from angarium.machine.outcomes import Refused
from angarium.testing.memory_records import Slot

TIMEOUT = 30 * SECOND


@pytest.fixture
def leader() -> Leader:
    """A queue group with a hundred records and nobody attached."""
    return Leader(GroupKind.QUEUE, records=100)


def test_members_share_what_there_is_evenly(leader: Leader) -> None:
    for name in "abcd":
        leader.attach(name, 1_000)
    leader.settle_down()
    assert [len(leader.held[name]) for name in "abcd"] == [25, 25, 25, 25]


def test_nobody_gets_more_than_its_credit(leader: Leader) -> None:
    leader.attach("a", 3)
    leader.settle_down()
    assert sorted(leader.held["a"]) == [0, 1, 2]
    leader.ack("a", 1)
    leader.settle_down()
    assert sorted(leader.held["a"]) == [0, 2, 3]
    leader.delivery.set_credit("a", 1)
    leader.ack("a", 0)
    leader.settle_down()
    assert sorted(leader.held["a"]) == [2, 3]


def test_scattered_acknowledgements_leave_the_floor_at_the_first_hole(leader: Leader) -> None:
    leader.attach("a", 100)
    leader.settle_down()
    leader.ack("a", *[one for one in range(100) if one != 7])
    leader.settle_down()
    assert leader.group.floor == 7
    leader.ack("a", 7)
    leader.settle_down()
    assert leader.group.floor == 100


def test_an_acknowledgement_is_answered_when_it_is_committed(leader: Leader) -> None:
    leader.attach("a", 5)
    leader.settle_down()
    done = leader.ack("a", 0, 1)
    assert isinstance(done, Accepted)
    assert done.records == 2
    leader.step()
    assert done.ticket not in leader.answers
    leader.commit_next()
    leader.step()
    assert leader.answers[done.ticket].code == ""


def test_nobody_hears_yes_for_what_a_first_part_of_it_was_refused(
    leader: Leader, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What one step acknowledges may be too much for one change. The caller waits for the last.
    monkeypatch.setattr(proposals, "ACKED_BLOCKS_MAX", 1)
    leader.attach("a", 100)
    leader.settle_down()
    done = leader.ack("a", 3, 99)
    assert isinstance(done, Accepted)
    leader.step()
    first, last = leader.log.popleft()
    leader.delivery.confirmed(first.number, Refused("DISK_FULL", "no room"), now=leader.now)
    leader.delivery.confirmed(last.number, leader.commit(last.change), now=leader.now)
    leader.step()
    assert leader.answers[done.ticket].code == "DISK_FULL"


def test_acknowledging_twice_is_harmless_and_counts_once(leader: Leader) -> None:
    leader.attach("a", 5)
    leader.settle_down()
    first = leader.ack("a", 0)
    again = leader.ack("a", 0)
    assert isinstance(first, Accepted)
    assert isinstance(again, Accepted)
    assert (first.records, again.records) == (1, 0)
    assert again.ticket, "the second one waits for the commit as well"
    leader.settle_down()
    assert leader.ack("a", 0) == Accepted(0)


def test_a_foreign_acknowledgement_is_refused_whole_and_changes_nothing(leader: Leader) -> None:
    leader.attach("a", 2)
    leader.settle_down()
    leader.attach("b", 2)
    leader.settle_down()
    refused = leader.delivery.acknowledge("b", (1, 4), now=leader.now)
    assert isinstance(refused, Refused)
    assert refused.code == "GROUP_FENCED"
    assert leader.step().proposals == []
    assert leader.delivery.members == {"a": 2, "b": 2}


@pytest.mark.parametrize(
    "ranges", [(1,), (3, 3), (4, 2), (0, 2, 1, 3), (-1, 2), (0, 10**15)], ids=str
)
def test_nonsense_is_refused(leader: Leader, ranges: tuple[int, ...]) -> None:
    leader.attach("a", 10)
    leader.settle_down()
    assert isinstance(leader.delivery.acknowledge("a", ranges, now=leader.now), Refused)
    assert isinstance(leader.delivery.fail("a", ranges, now=leader.now), Refused)
    assert leader.delivery.on_loan == 10


def test_a_failed_record_comes_again_after_its_backoff_with_the_next_attempt(
    leader: Leader,
) -> None:
    leader.attach("a", 2)
    leader.settle_down()
    leader.nack("a", 0)
    leader.settle_down()
    assert leader.group.attempts[0].count == 1
    leader.delivery.set_credit("a", 200)
    leader.wait(SECOND)
    assert leader.held["a"][0] == 2


def test_an_attempt_is_committed_before_the_record_is_lent_again(leader: Leader) -> None:
    leader.attach("a", 200)
    leader.settle_down()
    leader.nack("a", 0, delay=0)
    leader.step()
    leader.now = Micros(leader.now + 10)
    assert leader.step().deliveries == [], "its attempt is not committed yet"
    leader.commit_next()
    assert [one.attempt for one in leader.step().deliveries] == [2]


def test_attempts_survive_a_change_of_leader(leader: Leader) -> None:
    leader.attach("a", 1)
    leader.settle_down()
    leader.nack("a", 0, delay=0)
    leader.settle_down()
    leader.held.clear()
    leader.fail_over()
    leader.attach("b", 1)
    leader.settle_down()
    assert leader.held["b"] == {0: 2}


def test_after_the_last_attempt_a_record_becomes_a_dead_letter_once(leader: Leader) -> None:
    leader.commit(Set("g", GroupSettings(max_attempts=2, backoff_min_micros=10)))
    leader.attach("a", 200)
    leader.settle_down()
    for _ in range(2):
        leader.nack("a", 0, delay=0)
        leader.settle_down()
    assert [(one.offset, one.attempts) for one in leader.letters.values()] == [(0, 2)]
    assert leader.group.floor == 0, "not before the letter is stored"
    assert sorted(leader.held["a"]) == list(range(1, 100)), "its neighbours do not wait"
    leader.fail_over()
    leader.held.clear()
    leader.settle_down()
    assert list(leader.letters) == [0], "the new leader has the same letter stored"
    leader.bury()
    assert leader.group.floor == 1


def test_a_rejected_record_becomes_a_dead_letter_once_even_if_the_leader_fails(
    leader: Leader,
) -> None:
    leader.attach("a", 200)
    leader.settle_down()
    leader.nack("a", 0, is_final=True)
    leader.settle_down()
    assert [(one.offset, one.attempts) for one in leader.letters.values()] == [(0, 1)]
    assert leader.group.floor == 0, "not before the letter is stored"
    leader.fail_over()
    leader.held.clear()
    leader.settle_down()
    assert list(leader.letters) == [0], "the new leader has the same letter stored"
    leader.bury()
    assert leader.group.floor == 1


def test_a_lease_that_ends_counts_as_an_attempt(leader: Leader) -> None:
    leader.attach("a", 2)
    leader.settle_down()
    leader.delivery.set_credit("a", 0)
    leader.wait(TIMEOUT - SECOND)
    assert leader.delivery.on_loan == 2
    leader.wait(SECOND + TICK_MICROS)
    assert leader.delivery.on_loan == 0
    assert leader.held["a"] == {}
    assert {one: known.count for one, known in leader.group.attempts.items()} == {0: 1, 1: 1}


def test_extending_makes_a_lease_begin_anew(leader: Leader) -> None:
    leader.attach("a", 2)
    leader.settle_down()
    leader.wait(TIMEOUT - SECOND)
    leader.delivery.extend("a", (0, 1), now=leader.now)
    leader.wait(5 * SECOND)
    assert 0 in leader.held["a"]
    assert set(leader.group.attempts) == {1}
    leader.delivery.extend("a", (0, 1), now=leader.now, lease=SECOND)
    leader.wait(2 * SECOND)
    assert set(leader.group.attempts) == {0, 1}


def test_released_records_come_again_at_once_with_the_same_attempt(leader: Leader) -> None:
    leader.attach("a", 2)
    leader.settle_down()
    leader.attach("b", 5)
    leader.delivery.set_credit("a", 0)
    leader.release("a", 0, 1)
    leader.settle_down()
    assert leader.held["b"].items() >= {0: 1, 1: 1}.items()
    assert not leader.group.attempts


@pytest.mark.parametrize(("clean", "attempt"), [(True, 1), (False, 2)])
def test_a_member_that_leaves_gives_back_and_one_that_dies_has_failed(
    leader: Leader, clean: bool, attempt: int
) -> None:
    leader.attach("a", 3)
    leader.settle_down()
    leader.detach("a", clean=clean)
    leader.attach("b", 3)
    leader.settle_down()
    leader.release("b", *leader.held["b"])
    leader.delivery.set_credit("b", 1_000)
    leader.wait(2 * SECOND)
    assert {leader.held["b"][one] for one in range(3)} == {attempt}


def test_one_that_comes_again_keeps_what_it_holds_and_has_failed_with_the_rest(
    leader: Leader,
) -> None:
    leader.attach("a", 3)
    leader.settle_down()
    kept = leader.delivery.attach("a", credit=3, held=[Held(1, 2)], now=leader.now)
    assert kept == (1, 2)
    leader.settle_down()
    assert set(leader.group.attempts) == {0, 2}


def test_after_a_change_of_leader_holders_keep_what_they_claim(leader: Leader) -> None:
    leader.attach("a", 4)
    leader.attach("b", 4)
    leader.settle_down()
    held = sorted(leader.held["a"])
    leader.fail_over(expected=["a", "b"])
    leader.attach("b", 4)
    leader.settle_down()
    assert leader.delivery.on_loan == 4, "what others may hold is not lent yet"
    assert leader.attach("a", 4) == ranges_of(held)
    leader.settle_down()
    assert isinstance(leader.ack("a", *held), Accepted)


def test_the_grace_ends_by_itself(leader: Leader) -> None:
    leader.attach("a", 4)
    leader.settle_down()
    leader.held.clear()
    leader.fail_over(expected=["a"])
    leader.attach("b", 4)
    leader.wait(GRACE_MICROS - 1)
    assert leader.held["b"] == {}
    leader.wait(1)
    assert sorted(leader.held["b"]) == [0, 1, 2, 3]


def test_the_grace_of_a_paused_group_ends_too_and_wakes_nobody_any_more(leader: Leader) -> None:
    leader.attach("a", 4)
    leader.settle_down()
    leader.held.clear()
    leader.fail_over(expected=["a"])
    leader.pause(paused=True)
    leader.attach("b", 4)
    leader.now = Micros(leader.now + GRACE_MICROS)
    due = leader.delivery.advance(leader.now).wake_at
    assert due is None or due > leader.now, "or whoever drives it would be busy without end"


def test_a_claim_on_what_somebody_else_has_or_that_is_settled_is_not_granted(
    leader: Leader,
) -> None:
    leader.attach("a", 4)
    leader.settle_down()
    leader.ack("a", 0)
    leader.nack("a", 1)
    leader.settle_down()
    granted = leader.delivery.attach("liar", credit=9, held=[Held(0, 4)], now=leader.now)
    assert granted == ()


def test_a_paused_group_is_lent_nothing_and_can_still_settle(leader: Leader) -> None:
    leader.attach("a", 2)
    leader.settle_down()
    leader.pause(paused=True)
    assert isinstance(leader.ack("a", 0, 1), Accepted)
    leader.settle_down()
    assert leader.held["a"] == {}
    assert leader.group.floor == 2
    leader.pause(paused=False)
    leader.settle_down()
    assert sorted(leader.held["a"]) == [2, 3]


def test_a_seek_fences_what_is_on_loan(leader: Leader) -> None:
    leader.attach("a", 2)
    leader.settle_down()
    under_way = leader.ack("a", 1)
    assert isinstance(under_way, Accepted)
    leader.step()
    leader.seek(50)
    assert isinstance(leader.ack("a", 0), Accepted), "below the floor all is settled"
    leader.commit_next()
    leader.settle_down()
    assert leader.answers[under_way.ticket].code == "GROUP_FENCED"
    assert sorted(leader.held["a"]) == [50, 51]


def test_expired_records_and_gaps_are_settled_without_a_delivery() -> None:
    leader = Leader(GroupKind.QUEUE)
    leader.records.add(
        Slot(expires_at=leader.now), Slot(is_there=False), Slot(expires_at=leader.now + SECOND)
    )
    leader.attach("a", 10)
    leader.settle_down()
    assert sorted(leader.held["a"]) == [2]
    assert leader.group.floor == 2
    leader.nack("a", 2, delay=2 * SECOND)
    leader.wait(3 * SECOND)
    assert leader.held["a"] == {}
    assert leader.group.floor == 3, "it expired while it waited for another attempt"


def test_a_delayed_record_waits_alone_and_is_found_by_the_next_leader() -> None:
    leader = Leader(GroupKind.QUEUE)
    leader.records.add(Slot(deliver_at=leader.now + 10 * SECOND), Slot(), Slot())
    leader.attach("a", 10)
    leader.settle_down()
    leader.ack("a", 1, 2)
    leader.settle_down()
    assert leader.group.floor == 0
    leader.fail_over()
    leader.attach("a", 10)
    leader.wait(10 * SECOND - 1)
    assert leader.held["a"] == {}
    leader.wait(1)
    assert leader.held["a"] == {0: 1}


def test_a_group_that_fell_behind_is_told_once_or_jumps(leader: Leader) -> None:
    leader.attach("a", 2)
    leader.records.trim(50)
    leader.settle_down()
    leader.settle_down()
    assert leader.behind == ["a"]
    assert leader.held["a"] == {}
    leader.commit(Set("g", GroupSettings(behind=Behind.JUMP)))
    leader.settle_down()
    assert leader.group.floor == 50
    assert sorted(leader.held["a"]) == [50, 51]


def test_a_group_that_fell_behind_is_not_woken_for_what_it_may_not_lend(leader: Leader) -> None:
    leader.attach("a", 1_000)
    leader.settle_down()
    leader.nack("a", 1, delay=SECOND)
    leader.settle_down()
    leader.records.trim(1)
    leader.now = Micros(leader.now + 2 * SECOND)
    leader.settle_down()
    assert leader.behind == ["a"]
    # The retry is due and stays due: waking for it would never end.
    assert leader.wake_at is None or leader.wake_at > leader.now


def test_an_acknowledgement_that_finds_no_room_leaves_the_record_on_loan(leader: Leader) -> None:
    leader.attach("a", 2)
    leader.settle_down()
    leader.limits = type(leader.limits)(containers_max=0)
    done = leader.delivery.acknowledge("a", (1, 2), now=leader.now)
    assert isinstance(done, Accepted)
    leader.settle_down()
    assert leader.answers[done.ticket].code == "RESOURCE_EXHAUSTED"
    leader.limits = type(leader.limits)()
    assert isinstance(leader.ack("a", 1), Accepted)


def test_a_record_that_is_settled_while_it_waits_is_forgotten(leader: Leader) -> None:
    leader.attach("a", 4)
    leader.settle_down()
    leader.delivery.set_credit("a", 0)
    leader.nack("a", 0, 1)
    leader.release("a", 2)
    leader.settle_down()
    # As a transaction does, or a trim for a group that jumps.
    leader.commit(Ack("g", Index(leader.group.generation), (0, 3)))
    leader.delivery.set_credit("a", 4)
    leader.wait(2 * SECOND)
    assert {0, 1, 2}.isdisjoint(leader.held["a"])
    assert leader.group.floor == 3


def test_what_the_log_does_not_take_is_proposed_again_after_a_while_and_not_at_once(
    leader: Leader,
) -> None:
    leader.commit(Set("g", GroupSettings(behind=Behind.JUMP)))
    leader.attach("a", 2)
    leader.records.trim(50)
    (jump,) = leader.step().proposals
    leader.log.clear()
    leader.delivery.confirmed(jump.number, Refused("DISK_FULL"), now=leader.now)
    assert leader.step().proposals == []
    assert leader.wake_at is not None
    assert leader.wake_at > leader.now
    leader.wait(SECOND)
    assert leader.group.floor == 50
