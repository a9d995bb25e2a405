"""A retry computed under a clock that was ahead waits for its delay, not for the wrong time."""

from __future__ import annotations

import pytest
from tests.unit.delivery.model import SECOND, Leader

from angarium.delivery import Waiting
from angarium.delivery.retry_times import STALE_MAX, RetryTimes
from angarium.ids import Index, Micros, Offset
from angarium.kinds import LENT_KINDS, GroupKind
from angarium.machine.changes import Ack, GroupSettings, Open, Retry
from angarium.testing.memory_records import Slot

HOUR = 3_600 * SECOND
BACKOFF_MAX = 5 * SECOND
SETTINGS = GroupSettings(backoff_min_micros=SECOND, backoff_max_micros=BACKOFF_MAX)


def leader_of(kind: GroupKind) -> Leader:
    """Return the leader of ten records, all of one key in a key group, whose clock is ahead."""
    leader = Leader(kind, SETTINGS, records=10)
    leader.now = Micros(leader.now + HOUR)
    leader.delivery = leader.fresh()
    leader.attach("a", 10)
    leader.settle_down()
    return leader


def set_right(leader: Leader) -> None:
    """Set the clock right, and let the next leader begin."""
    leader.now = Micros(leader.now - HOUR)
    leader.held.clear()
    leader.fail_over()
    leader.attach("a", 10)


@pytest.mark.parametrize("kind", LENT_KINDS)
def test_a_retry_from_a_clock_that_was_ahead_waits_for_its_delay(kind: GroupKind) -> None:
    leader = leader_of(kind)
    leader.nack("a", 0, delay=2 * SECOND)
    leader.settle_down()
    set_right(leader)
    leader.seen.clear()
    leader.wait(SECOND)
    assert ("a", 0, 2) not in leader.seen, "it waits"
    leader.wait(SECOND)
    assert ("a", 0, 2) in leader.seen
    assert {offset for _, offset, _ in leader.seen} == set(range(10))


@pytest.mark.parametrize("kind", LENT_KINDS)
def test_the_delay_counts_from_when_the_same_leader_saw_it(kind: GroupKind) -> None:
    leader = leader_of(kind)
    leader.nack("a", 0, delay=2 * SECOND)
    leader.settle_down()
    leader.wait(SECOND)
    times = leader.delivery._ledger.retry_times
    times.leapt(-HOUR)
    leader.now = Micros(leader.now - HOUR)
    assert times.at(0, leader.now) == leader.now + SECOND, "a second of the two has passed"


@pytest.mark.parametrize("kind", LENT_KINDS)
def test_an_entry_without_a_delay_is_bounded_by_the_groups_backoff(kind: GroupKind) -> None:
    leader = leader_of(kind)
    leader.commit(Retry("g", leader.delivery._ledger.generation, Offset(0), 1, _late(leader)))
    set_right(leader)
    leader.seen.clear()
    leader.wait(BACKOFF_MAX)
    assert ("a", 0, 2) in leader.seen
    assert {offset for _, offset, _ in leader.seen} == set(range(10))


def test_an_entry_without_a_delay_still_waits_as_long_as_its_member_asked_for() -> None:
    leader = Leader(GroupKind.QUEUE, SETTINGS, records=1)
    asked = Micros(leader.now + HOUR)
    leader.commit(Retry("g", leader.delivery._ledger.generation, Offset(0), 1, asked))
    leader.fail_over()
    leader.attach("a")
    leader.wait(HOUR - SECOND)
    assert leader.seen == []
    leader.wait(SECOND)
    assert leader.seen == [("a", 0, 2)]


def test_a_delay_that_is_longer_than_the_backoff_is_kept() -> None:
    leader = Leader(GroupKind.QUEUE, SETTINGS, records=1)
    leader.attach("a")
    leader.settle_down()
    leader.nack("a", 0, delay=HOUR)
    leader.settle_down()
    leader.seen.clear()
    leader.held.clear()
    leader.fail_over()
    leader.attach("a")
    leader.wait(HOUR - SECOND)
    assert leader.seen == []
    leader.wait(SECOND)
    assert leader.seen == [("a", 0, 2)]


def test_the_log_has_the_delay_beside_the_time() -> None:
    leader = Leader(GroupKind.QUEUE, SETTINGS, records=1)
    leader.attach("a")
    leader.settle_down()
    leader.nack("a", 0, delay=3 * SECOND)
    leader.settle_down()
    known = leader.group.attempts[0]
    assert (known.not_before, known.delay) == (leader.now + 3 * SECOND, 3 * SECOND)


def test_attempts_that_are_over_are_forgotten() -> None:
    leader = Leader(GroupKind.QUEUE, SETTINGS)
    leader.commit(Open("g", GroupKind.QUEUE, Offset(0)))
    times = RetryTimes(leader.group)
    generation = leader.delivery._ledger.generation
    for offset in range(3 * STALE_MAX):
        leader.records.add(Slot())
        leader.commit(Retry("g", generation, Offset(offset), 1, _late(leader)))
        times.at(offset, leader.now)
        leader.commit(Ack("g", generation, (offset, offset + 1)))
    assert len(times._seen) <= STALE_MAX + 2


# --- what it says ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LENT_KINDS)
def test_a_group_says_which_record_it_waits_for_and_until_when(kind: GroupKind) -> None:
    leader = Leader(kind, SETTINGS, records=3)
    assert leader.delivery.waiting(leader.now) is None
    leader.attach("a")
    leader.settle_down()
    leader.nack("a", 1, delay=2 * SECOND)
    leader.settle_down()
    until = Micros(leader.now + 2 * SECOND)
    assert leader.delivery.waiting(leader.now) == Waiting("another attempt at record 1", until)
    leader.wait(2 * SECOND)
    assert leader.delivery.waiting(leader.now) is None


def test_a_group_says_that_it_waits_for_members_of_the_former_leader() -> None:
    leader = Leader(GroupKind.QUEUE, SETTINGS, records=3)
    leader.fail_over(expected=["b", "c"])
    leader.attach("a")
    leader.settle_down()
    waiting = leader.delivery.waiting(leader.now)
    assert waiting is not None
    assert waiting.what == "members of the former leader: b, c"
    assert waiting.until > leader.now


def _late(leader: Leader) -> Micros:
    return Micros(leader.now + SECOND)


@pytest.mark.parametrize("kind", LENT_KINDS)
def test_a_record_may_be_settled_between_its_retry_and_the_answer(kind: GroupKind) -> None:
    """As seed 911067: an entry behind the retry was applied before its fate was told."""
    leader = Leader(kind, records=10)
    leader.attach("a", 10)
    leader.settle_down()
    leader.nack("a", 0, delay=2 * SECOND)
    leader.step()
    proposals = leader.log.popleft()
    outcomes = [leader.commit(one.change) for one in proposals]
    assert 0 in leader.group.attempts
    leader.commit(Ack("g", Index(leader.group.generation), (0, 1)))
    assert 0 not in leader.group.attempts
    for one, outcome in zip(proposals, outcomes, strict=True):
        leader.delivery.confirmed(one.number, outcome, now=leader.now)
    leader.settle_down()
