"""The checks on consumer groups, on histories small enough to judge by hand."""

from __future__ import annotations

import pytest

from angarium.ids import NodeId, RaftGroupId
from angarium.kinds import GroupKind
from angarium.modes import DeliveryMode
from angarium.testing.checkers import violations
from angarium.testing.group_history import (
    FinalGroup,
    GroupEvent,
    Judged,
    Kept,
    Lent,
    Settle,
    Taken,
    Tenure,
    Undone,
)
from angarium.testing.history import FinalLog, History, LogRecord, Publish, Result

P = RaftGroupId(1)
NODE = NodeId(1)


def history(
    *events: GroupEvent, kind: GroupKind = GroupKind.QUEUE, floor: int = 0, keys: str = "abcd"
) -> History:
    """Return a run with four records and one leader, after which the group stands at `floor`."""
    values = tuple(b"1.0.%d" % one for one in range(4))
    one = History()
    one.publishes.append(
        Publish(P, 1, 0, 0, values, DeliveryMode.CONSISTENT, 1, 2, Result.OK, 0, NODE, 1)
    )
    records = tuple(LogRecord(at, value, 1, 0, at) for at, value in enumerate(values))
    one.final.append(FinalLog(NODE, P, 0, 4, records))
    one.groups.keys = {value: (keys[at].encode(), 0) for at, value in enumerate(values)}
    one.groups.tenures.append(
        Tenure(P, "g", kind, NODE, 1, 5, 0, 0, (), frozenset(), [Kept("a", ()), *events])
    )
    one.groups.final.append(FinalGroup(P, "g", kind, 5, floor, (), 3, 0, 4))
    return one


def said(one: History) -> str:
    """Return what the checkers complain about."""
    return "; ".join(map(str, violations(one)))


def test_a_floor_may_pass_what_its_holder_acknowledged() -> None:
    lent, acked = Lent(3, "a", (0, 1), 1), Judged("a", "ack", (0, 1), True)
    assert said(history(lent, acked, floor=2)) == ""


def test_a_floor_that_passes_more_is_found() -> None:
    lent, acked = Lent(3, "a", (0, 1), 1), Judged("a", "ack", (1,), True)
    assert "has passed 0" in said(history(lent, acked, floor=2))


def test_a_cumulative_acknowledgement_means_what_its_member_holds_below() -> None:
    lent, acked = Lent(3, "a", (0, 1), 1), Judged("a", "ack", (1,), True, below=2)
    assert said(history(lent, acked, floor=2)) == ""


@pytest.mark.parametrize(("stored_at", "is_missing"), [(6, False), (7, True)])
def test_a_letter_that_was_trimmed_away_counts_as_stored(stored_at: int, is_missing: bool) -> None:
    """The log of letters begins at 7: one that lay before is gone, one from there on is missing."""
    letters = RaftGroupId(2)
    one = history(floor=1)
    one.final.append(FinalLog(NODE, letters, 7, 7, ()))
    one.groups.buried[P, "g", 0] = (letters, stored_at)
    assert ("has passed 0" in said(one)) == is_missing


def test_two_holders_are_found() -> None:
    assert "a has it" in said(history(Lent(3, "a", (0,), 1), Lent(4, "b", (0,), 1)))


def test_a_record_that_was_taken_back_may_be_lent_again() -> None:
    events = (Lent(3, "a", (0,), 1), Taken("a", (0,)), Lent(4, "b", (0,), 2))
    assert said(history(*events)) == ""


def test_a_foreign_acknowledgement_that_was_taken_is_found() -> None:
    events = (Lent(3, "a", (0,), 1), Judged("b", "ack", (0,), True))
    assert "b settled 0, which a has" in said(history(*events))
    events = (Lent(3, "a", (0,), 1), Judged("b", "ack", (0,), False))
    assert said(history(*events)) == ""


def test_a_rejected_record_that_is_lent_again_is_found() -> None:
    lent, rejected = Lent(3, "a", (0,), 1), Judged("a", "reject", (0,), True, ticket=7)
    again = Lent(4, "a", (0,), 2)
    assert "0 was lent at 4, after it was rejected" in said(history(lent, rejected, again))
    # The log had no room for it, or it was not believed: then it may come again.
    assert said(history(lent, rejected, Undone(7), Taken("a", (0,)), again)) == ""
    refused = Judged("a", "reject", (0,), False)
    assert said(history(lent, refused, Taken("a", (0,)), again)) == ""


def test_a_rejection_that_the_next_leader_forgets_is_found() -> None:
    one = history(Lent(3, "a", (0,), 1))
    one.groups.settles.append(
        Settle(P, "g", "a", "reject", (0,), 4, False, 5, Result.OK, generation=5)
    )
    later = Tenure(P, "g", GroupKind.QUEUE, NODE, 2, 5, 9, 0, (), frozenset(), [])
    later.events += [Kept("a", ()), Lent(11, "a", (0,), 2)]
    one.groups.tenures.append(later)
    assert "though it had been rejected" in said(one)


def test_a_stream_that_leaves_a_record_out_is_found() -> None:
    events = (Lent(3, "a", (0,), 1), Judged("a", "nack", (0,), True), Lent(4, "a", (1,), 1))
    assert "1 was lent to a before 0" in said(history(*events, kind=GroupKind.STREAM))
    assert said(history(*events)) == ""


@pytest.mark.parametrize(("keys", "complaint"), [("aabb", "1 was lent"), ("abab", "")])
def test_two_records_of_a_key_at_a_time_are_found(keys: str, complaint: str) -> None:
    found = said(
        history(Lent(3, "a", (0,), 1), Lent(4, "b", (1,), 1), kind=GroupKind.KEY, keys=keys)
    )
    assert complaint in found if complaint else not found


def test_an_attempt_that_the_next_leader_forgets_is_found() -> None:
    one = history(Lent(3, "a", (0,), 1))
    one.groups.settles.append(
        Settle(P, "g", "a", "nack", (0,), 4, False, 5, Result.OK, generation=5, attempt=1)
    )
    again = Tenure(P, "g", GroupKind.QUEUE, NODE, 2, 5, 9, 0, (), frozenset())
    again.events.append(Lent(10, "b", (0,), 1))
    one.groups.tenures.append(again)
    assert "attempt 1 after attempt 1 had failed" in said(one)


def test_an_acknowledgement_that_was_told_and_is_not_there_is_found() -> None:
    one = history(Lent(3, "a", (2,), 1), Judged("a", "ack", (2,), True))
    one.groups.settles.append(
        Settle(P, "g", "a", "ack", (2,), 4, False, 5, Result.OK, generation=5)
    )
    assert "told that 2 is acknowledged, and it is not" in said(one)


@pytest.mark.parametrize(("term", "complaint"), [(3, "2 was lent at 9 in term 3"), (1, "")])
def test_what_was_acknowledged_is_lent_again_by_a_deposed_leader_alone(
    term: int, complaint: str
) -> None:
    one = history(floor=3)
    one.groups.tenures.clear()
    second = Tenure(P, "g", GroupKind.QUEUE, NODE, 2, 5, 1, 0, (), frozenset())
    second.events += [Lent(3, "a", (0, 1, 2), 1), Judged("a", "ack", (0, 1, 2), True)]
    again = Tenure(P, "g", GroupKind.QUEUE, NODE, term, 5, 8, 0, (), frozenset())
    again.events.append(Lent(9, "b", (2,), 1))
    one.groups.tenures += [second, again]
    one.groups.settles.append(
        Settle(P, "g", "a", "ack", (0, 1, 2), 4, False, 5, Result.OK, generation=5)
    )
    found = said(one)
    assert complaint in found if complaint else not found


def test_a_member_of_a_group_that_was_moved_has_again_what_could_not_be_committed() -> None:
    lent, acked = Lent(3, "a", (0,), 1), Judged("a", "ack", (0,), True, ticket=7)
    one = history(lent, acked, Undone(7), Lent(4, "a", (1,), 1), kind=GroupKind.STREAM)
    del one.groups.tenures[0].events[0]  # it came before the group was moved
    assert said(one) == ""


def test_a_record_buried_twice_or_with_a_wrong_count_is_found() -> None:
    one = history(*(Lent(3, "a", (0,), attempt) for attempt in (1,)))
    log = one.final[0]
    letters = (LogRecord(4, b"x", 9, 0, 0), LogRecord(5, b"y", 9, 0, 1))
    one.final[0] = FinalLog(NODE, P, 0, 6, (*log.records, *letters))
    one.groups.letters = {b"x": (P, "g", 0, 5, 3), b"y": (P, "g", 0, 5, 2)}
    found = said(one)
    assert "0 was buried twice" in found
    assert "was buried after 2 attempts" in found
    assert "[2, 3] never happened" in found
