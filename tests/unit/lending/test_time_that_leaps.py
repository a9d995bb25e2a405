"""When a leader's time leaps, nothing that it computed before is waited for."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.lending.test_groups_that_cannot_be_read import Leader, Member

from angarium.api import Settlement, Start, StartAt, Verb
from angarium.errors import GroupFenced, NotLeader
from angarium.kinds import GroupKind
from angarium.lending.ports import Membership, Opening, Wanted
from angarium.machine.changes import RETRY_DELAY_LEVEL
from angarium.testing.sim.clock import SECOND
from angarium.testing.sim.lending import TOPIC, SimLending
from angarium.testing.sim.member import CONFIG
from angarium.testing.sim.script import GROUP

HOUR = 3_600 * SECOND


def set_clock(leader: Leader, error: int) -> None:
    """Let the clock of the leader's node be wrong by so much."""
    leader.world.wall_clocks[leader.node.id].set(error, rate=0.0, at=0)


def say(leader: Leader, name: str, verb: Verb, ranges: tuple[int, ...]) -> None:
    said = Settlement(TOPIC, GROUP, verb, ranges)
    leader.node.do(leader.seats[name].ask, 1, (said,))


def test_a_lease_from_a_clock_that_was_ahead_ends() -> None:
    leader = Leader()
    set_clock(leader, HOUR)
    first = leader.attach("a")
    leader.wait(lambda: first.loans)
    set_clock(leader, 0)
    leader.node.do(leader.lending.host.tidy)
    assert isinstance(first.error, NotLeader)
    assert "leapt" in str(first.error)
    second = leader.attach("b")
    leader.wait(lambda: second.loans)
    assert second.loans[0].ranges == first.loans[0].ranges


def test_an_alarm_from_a_clock_that_was_ahead_does_not_silence_the_others() -> None:
    leader = Leader()
    set_clock(leader, HOUR)
    first = leader.attach("a")
    leader.wait(lambda: first.loans)
    set_clock(leader, 0)
    second = leader.attach("b")
    leader.wait(lambda: second.loans)
    # The lease of `b` ends a second later by its own alarm, not an hour later with that of `a`.
    leader.wait(lambda: leader.lending.host.led[GROUP].groups["g"].group.attempts)


def test_a_clock_that_leaps_ahead_ends_no_lease() -> None:
    leader = Leader()
    first = leader.attach("a")
    leader.wait(lambda: first.loans)
    set_clock(leader, HOUR)
    leader.node.do(leader.lending.host.tidy)
    machine = leader.lending.replicas[GROUP].partition.machine
    assert machine.groups.by_name["g"].attempts == {}
    assert isinstance(first.error, NotLeader)


def test_a_retry_that_was_under_way_counts_for_those_who_come_again() -> None:
    leader = Leader()
    first = leader.attach("a")
    leader.wait(lambda: first.loans)
    say(leader, "a", Verb.NACK, first.loans[0].ranges)
    led = leader.lending.host.led[GROUP]
    group = led.groups["g"]
    scheduler = leader.world.scheduler
    scheduler.run_until(scheduler.now + SECOND, stop=lambda: group.is_settling)
    assert group.is_settling
    assert not group.group.attempts
    set_clock(leader, HOUR)
    leader.node.do(leader.lending.host.look_at_time)
    assert "g" not in led.groups
    again = leader.attach("a")
    leader.wait(lambda: [one for one in again.loans if one.ranges == first.loans[0].ranges])
    attempts = [one.attempt for one in again.loans if one.ranges == first.loans[0].ranges]
    assert attempts == [2]


def test_a_leader_counts_the_delay_of_a_retry_from_when_it_begins_to_lead() -> None:
    leader = Leader()
    set_clock(leader, HOUR)
    first = leader.attach("a")
    leader.wait(lambda: first.loans)
    say(leader, "a", Verb.NACK, first.loans[0].ranges)
    group = leader.lending.host.led[GROUP].groups["g"].group
    leader.wait(lambda: group.attempts)
    set_clock(leader, 0)
    successor = SimLending(leader.node)
    leader.node.do(successor.host.partition_changed, GROUP)
    (offset,) = group.attempts
    seen_at = successor.now()
    leader.world.wait(SECOND // 2, lambda: False)
    at = successor.host.led[GROUP].retry_times(group).at(offset, successor.now())
    assert at == seen_at + (group.attempts[offset].delay or 0)


def test_a_session_from_a_clock_that_was_ahead_makes_way() -> None:
    leader = Leader()
    old = _join(leader, "a", session=leader.lending.now() + HOUR)
    leader.wait(lambda: old.heard)
    new = _join(leader, "a", session=leader.lending.now())
    leader.wait(lambda: old.error and new.heard)
    assert isinstance(old.error, GroupFenced)
    assert "attached" in new.heard


@pytest.mark.parametrize("level", [RETRY_DELAY_LEVEL - 1, RETRY_DELAY_LEVEL])
def test_a_delay_is_written_from_its_level_on(level: int) -> None:
    leader = Leader()
    _at_level(leader.lending, level)
    member = leader.attach("a")
    leader.wait(lambda: member.loans)
    say(leader, "a", Verb.NACK, member.loans[0].ranges)
    groups = leader.lending.replicas[GROUP].partition.machine.groups.by_name
    leader.wait(lambda: groups["g"].attempts)
    (known,) = groups["g"].attempts.values()
    assert (known.delay is None) == (level < RETRY_DELAY_LEVEL)
    assert known.delay_max(groups["g"].settings) <= CONFIG.backoff_max_ms * 1_000


def _join(leader: Leader, name: str, *, session: int) -> Member:
    member = Member()
    opening = Opening(GroupKind.QUEUE, CONFIG, Start(StartAt.EARLIEST))
    membership = Membership("g", name, leader.node.id, session, (TOPIC,))
    wanted = Wanted(TOPIC, GROUP, opening, 1, ())
    leader.node.do(lambda: leader.lending.host.attach(membership, wanted, member))
    return member


def _at_level(lending: SimLending, level: int) -> None:
    class Older(type(lending)):  # type: ignore[misc]
        @property
        def level(self) -> int:
            return level

    changed: Any = lending
    changed.__class__ = Older
