"""What a replica does about a damaged log."""

from __future__ import annotations

import pytest

from angarium.ids import Index, RaftGroupId, ReplicaId, Term
from angarium.log.wal import Damage
from angarium.raft.messages import Entry
from angarium.replica.peers import EntriesReply, EntriesRequest
from angarium.replica.repair import (
    ASKED_MAX,
    IdentityLost,
    Repair,
    entries_to_refetch,
    in_stretches,
)

ME, A, B = ReplicaId(1), ReplicaId(2), ReplicaId(3)


def damage(first: int | None, last: int | None, *, hard_state_intact: bool = True) -> Damage:
    return Damage(
        first_damaged_index=None if first is None else Index(first),
        last_damaged_index=None if last is None else Index(last),
        hard_state_intact=hard_state_intact,
    )


def reply(low: int, *indexes: int, compacted: bool = False) -> EntriesReply:
    request = EntriesRequest(RaftGroupId(1), ME, A, Index(low), Index(9))
    entries = [Entry(Term(1), Index(one), b"%d" % one) for one in indexes]
    return EntriesReply.of(request, entries, compacted=compacted)


def test_a_whole_log_needs_nothing() -> None:
    assert entries_to_refetch(None, known_commit=Index(10)) is None


def test_committed_entries_can_be_fetched_again() -> None:
    assert entries_to_refetch(damage(5, 7), known_commit=Index(7)) == (5, 7)


@pytest.mark.parametrize(
    "lost",
    [damage(5, 8), damage(5, None), damage(None, None), damage(5, 6, hard_state_intact=False)],
    ids=["beyond the commit", "no known end", "no known place", "perhaps a vote"],
)
def test_what_may_have_been_promised_costs_the_identity(lost: Damage) -> None:
    with pytest.raises(IdentityLost):
        entries_to_refetch(lost, known_commit=Index(7))


def test_a_repair_asks_each_peer_in_turn_and_never_itself() -> None:
    repair = Repair(
        group=RaftGroupId(1),
        replica=ME,
        holes=[(Index(5), Index(7))],
        term_max=Term(9),
        peers=(ME, A, B),
    )
    asked = [request.to for _ in range(3) if (request := repair.request()) is not None]
    assert asked == [A, B, A]


def test_a_repair_without_peers_waits_until_somebody_is_heard() -> None:
    repair = Repair(
        group=RaftGroupId(1),
        replica=ME,
        holes=[(Index(5), Index(7))],
        term_max=Term(9),
        peers=(),
    )
    assert repair.request() is None
    repair.heard_from(B)
    request = repair.request()
    assert request is not None
    assert request.to == B


def test_a_repair_takes_entries_in_order_and_none_twice() -> None:
    repair = Repair(
        group=RaftGroupId(1),
        replica=ME,
        holes=[(Index(5), Index(7))],
        term_max=Term(9),
        peers=(A,),
    )
    completed = []
    for answer in (reply(5, 5, 6), reply(5, 5, 6), reply(7, 7, 8)):
        repair.receive(answer)
        completed.append(repair.is_complete)
    assert completed == [False, False, True]
    assert [entry.index for entry in repair.entries] == [5, 6, 7]


def repair_of(*peers: ReplicaId) -> Repair:
    return Repair(
        group=RaftGroupId(1),
        replica=ME,
        holes=[(Index(5), Index(7))],
        term_max=Term(9),
        peers=peers,
    )


def test_entries_that_are_gone_everywhere_cost_the_identity() -> None:
    repair = repair_of(A)
    assert not repair.is_hopeless
    repair.receive(reply(5, compacted=True))
    assert repair.is_hopeless


def test_a_peer_that_may_still_have_the_entries_is_asked_before_the_identity_is_given_up() -> None:
    repair = repair_of(A, B)
    repair.receive(reply(5, compacted=True))
    assert not repair.is_hopeless
    repair.receive(reply(5, 5, 6))
    repair.receive(reply(7, compacted=True))
    assert not repair.is_hopeless
    # One that never answers is not waited for without end.
    for _ in range(2 * ASKED_MAX + 1):
        assert not repair.is_hopeless
        repair.request()
    assert repair.is_hopeless


def test_what_is_whole_between_two_holes_is_not_asked_for() -> None:
    repair = Repair(
        group=RaftGroupId(1),
        replica=ME,
        holes=[(Index(5), Index(6)), (Index(9), Index(9))],
        term_max=Term(9),
        peers=(A,),
    )
    asked = repair.request()
    assert asked is not None
    assert (asked.low, asked.high) == (5, 6)
    assert repair.receive(reply(5, 5, 6, 7, 8))
    asked = repair.request()
    assert asked is not None
    assert (asked.low, asked.high) == (9, 9)
    assert not repair.receive(reply(5, 5, 6))
    assert repair.receive(reply(9, 9))
    assert repair.is_complete
    stretches = in_stretches(repair.entries, above=Index(5))
    assert [[one.index for one in stretch] for stretch in stretches] == [[6], [9]]
