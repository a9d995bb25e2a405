"""What cannot be if every disk kept what it promised: it is refused, and nobody counts it.

A data folder that was replaced by an older copy makes a voter forget what it acknowledged, and a
leader may be elected that lacks committed entries. Raft cannot undo that. What it must not do is
to build on it.
"""

from __future__ import annotations

import pytest
from tests.unit.raft.cluster import Cluster, a_replica, flush, sent

from angarium.ids import Index, ReplicaId, Term
from angarium.raft import Contradicted, LogContradiction
from angarium.raft.messages import Entry, Message, MessageKind, Snapshot

LEADER, FOLLOWER = ReplicaId(2), ReplicaId(1)


def append(*terms: int, after: int, term_before: int, term: int = 5) -> Message:
    entries = tuple(Entry(Term(one), Index(after + 1 + i)) for i, one in enumerate(terms))
    return Message(
        kind=MessageKind.APPEND,
        to=FOLLOWER,
        sender=LEADER,
        term=Term(term),
        index=Index(after),
        log_term=Term(term_before),
        entries=entries,
    )


@pytest.mark.parametrize(
    "message",
    [
        append(5, after=1, term_before=1),
        append(1, 5, after=1, term_before=1),
        append(after=3, term_before=2),
        append(after=2, term_before=2),
    ],
)
def test_a_leader_with_other_entries_where_ours_are_committed_is_refused(message: Message) -> None:
    member = a_replica(log=[1, 1, 1, 1], commit=3)
    with pytest.raises(LogContradiction):
        member.node.step(message)


def test_a_snapshot_of_another_history_is_refused() -> None:
    member = a_replica(log=[1, 1, 1, 1], commit=3)
    snapshot = Snapshot(Index(2), Term(4), member.node.conf_state)
    message = Message(
        kind=MessageKind.SNAPSHOT, to=FOLLOWER, sender=LEADER, term=Term(5), snapshot=snapshot
    )
    with pytest.raises(LogContradiction):
        member.node.step(message)


def test_old_news_are_acknowledged_as_far_as_they_were_compared() -> None:
    member = a_replica(log=[1, 1, 1, 1], commit=3)
    member.node.step(append(1, after=0, term_before=0))
    (answer,) = sent(flush(member), MessageKind.APPEND_RESPONSE)
    assert (answer.index, answer.reject) == (1, False)


def test_nobody_has_more_of_a_leaders_log_than_the_leader() -> None:
    cluster = Cluster()
    leader = cluster.elect(1)
    before = leader.match(LEADER)
    message = Message(
        kind=MessageKind.APPEND_RESPONSE,
        to=FOLLOWER,
        sender=LEADER,
        term=leader.term,
        index=Index(leader.last_index + 5),
    )
    with pytest.raises(Contradicted, match="this leader's log ends at"):
        leader.step(message)
    assert leader.match(LEADER) == before


def test_a_member_that_is_doubted_confirms_anew_before_it_counts() -> None:
    cluster = Cluster()
    leader = cluster.elect(1)
    cluster.propose(1, b"one")
    cluster.settle()
    cluster.isolate(3)
    leader.doubt(LEADER)
    assert leader.match(LEADER) == 0
    cluster.propose(1, b"two")
    cluster.settle()
    assert leader.match(LEADER) == leader.last_index == leader.commit
