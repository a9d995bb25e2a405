"""The Raft paper on log replication and its safety (sections 5.3, 5.4, figures 2, 3, 7, 8)."""

from __future__ import annotations

import pytest
from tests.unit.raft.cluster import Cluster, a_replica, flush, sent

from angarium.ids import Index, ReplicaId, Term
from angarium.raft import Entry, LogContradiction, Message, MessageKind


def _append(*, term: int, prev: tuple[int, int], entries: list[int], commit: int = 0) -> Message:
    """Return an append whose entries have these terms, after `prev` (index, term)."""
    index, log_term = prev
    return Message(
        kind=MessageKind.APPEND,
        to=ReplicaId(1),
        sender=ReplicaId(2),
        term=Term(term),
        index=Index(index),
        log_term=Term(log_term),
        entries=tuple(Entry(Term(t), Index(i)) for i, t in enumerate(entries, start=index + 1)),
        commit=Index(commit),
    )


def test_a_leader_appends_and_sends_what_is_proposed() -> None:
    """Section 5.3: the leader appends the command to its log and issues AppendEntries."""
    cluster = Cluster()
    cluster.elect(1)
    cluster[1].propose([b"a", b"b"])
    assert cluster.replicas[1].log()[-2:] == [(1, b"a"), (1, b"b")]
    cluster.handle_ready(1)
    appends = sent(cluster.in_flight, MessageKind.APPEND)
    assert [(m.to, m.index, [bytes(e.data) for e in m.entries]) for m in appends] == [
        (2, 2, [b"a", b"b"]),
        (3, 2, [b"a", b"b"]),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_an_entry_is_committed_once_a_majority_has_it(size: int) -> None:
    """Section 5.3: committed once the leader has replicated it on a majority of the servers."""
    cluster = Cluster(size)
    cluster.elect(1)
    needed = size // 2  # besides the leader
    cluster.isolate(*range(2 + max(needed - 1, 0), size + 1))
    cluster.propose(1, b"x")
    if needed:
        assert cluster.replicas[1].data() == []
        cluster.heal()
        cluster.isolate(*range(2 + needed, size + 1))
        cluster.tick(1)
        cluster.settle()
    assert cluster.replicas[1].data() == [b"x"]


def test_followers_apply_what_the_leader_says_is_committed() -> None:
    """Section 5.3: the leader tells the commit index, and followers apply up to it, in order."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.propose(1, b"a", b"b")
    cluster.propose(1, b"c")
    assert all(r.data() == [b"a", b"b", b"c"] for r in cluster.replicas.values())


def test_a_lost_append_is_sent_again_until_it_is_stored() -> None:
    """Section 5.3: the leader retries AppendEntries until all followers store all entries."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.isolate(3)
    cluster.propose(1, b"x")
    cluster.heal()
    cluster.tick(1)
    cluster.settle()
    assert cluster.replicas[3].data() == [b"x"]


@pytest.mark.parametrize(
    ("log", "prev", "fits"),
    [
        ([1, 2], (0, 0), True),
        ([1, 2], (1, 1), True),
        ([1, 2], (2, 2), True),
        ([1, 2], (1, 2), False),
        ([1, 2], (3, 3), False),
        ([], (1, 1), False),
    ],
)
def test_an_append_is_taken_only_where_the_entry_before_it_matches(
    log: list[int], prev: tuple[int, int], fits: bool
) -> None:
    """Section 5.3: the consistency check, the induction step of log matching."""
    member = a_replica(log=log)
    member.node.step(_append(term=3, prev=prev, entries=[3]))
    (answer,) = sent(flush(member), MessageKind.APPEND_RESPONSE)
    assert answer.reject is not fits
    if fits:
        assert [e.term for e in member.entries()] == [*log[: prev[0]], 3]
    else:
        assert [e.term for e in member.entries()] == log


@pytest.mark.parametrize(
    ("log", "prev", "entries", "result"),
    [
        ([1, 1, 1], (1, 1), [2], [1, 2]),
        ([1, 1, 1], (0, 0), [1, 1], [1, 1, 1]),
        ([1, 1, 1], (1, 1), [1, 2, 2], [1, 1, 2, 2]),
        ([1, 1, 1], (3, 1), [], [1, 1, 1]),
    ],
)
def test_conflicting_entries_go_and_agreeing_ones_stay(
    log: list[int], prev: tuple[int, int], entries: list[int], result: list[int]
) -> None:
    """Figure 2, AppendEntries 3 and 4: an old, shorter append must not cut newer entries off."""
    member = a_replica(log=log)
    member.node.step(_append(term=2, prev=prev, entries=entries))
    flush(member)
    assert [e.term for e in member.entries()] == result
    stored = member.storage.entries(Index(1), Index(member.node.last_index + 1), 1 << 30)
    assert [e.term for e in stored] == result


@pytest.mark.parametrize(
    ("prev", "entries", "commit", "expected"),
    [
        ((0, 0), [1], 5, 1),
        ((0, 0), [1, 1], 1, 1),
        ((3, 1), [], 2, 2),
        ((1, 1), [], 5, 1),
    ],
)
def test_a_follower_commits_only_what_the_append_vouches_for(
    prev: tuple[int, int], entries: list[int], commit: int, expected: int
) -> None:
    """Figure 2, AppendEntries 5: the smaller of leaderCommit and the last new entry's index."""
    member = a_replica(log=[1, 1, 1])
    member.node.step(_append(term=1, prev=prev, entries=entries, commit=commit))
    assert member.node.commit == expected


def test_committed_entries_are_never_replaced() -> None:
    """Figure 3, state machine safety: such a leader cannot be; the replica stops, loudly."""
    member = a_replica(log=[1, 1], commit=2)
    with pytest.raises(LogContradiction):
        member.node.step(
            Message(
                kind=MessageKind.HEARTBEAT,
                to=ReplicaId(1),
                sender=ReplicaId(2),
                term=Term(1),
                commit=Index(3),
            )
        )
    assert member.node.commit == 2


def test_a_leader_never_changes_its_own_entries() -> None:
    """Figure 3, leader append-only."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.propose(1, b"a")
    before = cluster.replicas[1].log()
    term = cluster[1].term
    for message in (
        _append(term=term, prev=(1, 1), entries=[term]),
        Message(
            kind=MessageKind.SNAPSHOT,
            to=ReplicaId(1),
            sender=ReplicaId(2),
            term=Term(term),
            snapshot=cluster.start,
        ),
    ):
        cluster[1].step(message)
    cluster.propose(1, b"b")
    assert cluster.replicas[1].log()[: len(before)] == before


# Figure 7: the logs a new leader of term 8 may find, by the terms of their entries.
FIGURE_7 = {
    "leader": [1, 1, 1, 4, 4, 5, 5, 6, 6, 6],
    "a": [1, 1, 1, 4, 4, 5, 5, 6, 6],
    "b": [1, 1, 1, 4],
    "c": [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6],
    "d": [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7],
    "e": [1, 1, 1, 4, 4, 4, 4],
    "f": [1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3],
}


@pytest.mark.parametrize("follower", sorted(set(FIGURE_7) - {"leader"}))
def test_a_leader_makes_every_follower_of_figure_7_like_itself(follower: str) -> None:
    """Section 5.3, figure 7: missing entries are added, extraneous ones removed."""
    leader = a_replica(1, voters=(1, 2, 3), log=FIGURE_7["leader"], term=7)
    other = a_replica(2, voters=(1, 2, 3), log=FIGURE_7[follower], term=7)
    leader.node.campaign()
    flush(leader)
    # 3, which is not shown, votes for the leader; so would a majority in the figure.
    leader.node.step(
        Message(kind=MessageKind.VOTE_RESPONSE, to=ReplicaId(1), sender=ReplicaId(3), term=Term(8))
    )
    rounds = 0
    for _ in range(20):
        for message in flush(leader):
            if message.to == 2:
                other.node.step(message)
        answers = flush(other)
        for message in answers:
            leader.node.step(message)
        rounds += any(m.reject for m in answers)
    assert [e.term for e in other.entries()] == [*FIGURE_7["leader"], 8]
    # End of section 5.3: rejections carry a hint, so it takes one per conflicting term at most.
    assert rounds <= 3


def test_entries_of_earlier_terms_are_not_committed_by_counting() -> None:
    """Section 5.4.2, figure 8: an entry of an old term on a majority can still be overwritten.

    S1 leads term 2 and replicates an entry to S2 only. S5 leads term 3 with another entry at
    the same index. S1 leads term 4 and brings its old entry to a majority (c): that must not
    commit it, because S5 may still win (d). Once an entry of term 4 is on a majority (e), S5
    cannot.
    """
    cluster = Cluster(5, message_bytes_max=0)  # one entry per message
    cluster.elect(1)
    cluster.isolate(1, 2)
    cluster.propose(1, b"two")  # (a): on S1 and S2 only
    cluster.crash(1)
    cluster.heal()
    cluster.isolate(3, 4, 5)
    cluster.held = {MessageKind.APPEND}
    cluster[5].campaign()
    cluster.settle()
    assert cluster[5].is_leader
    cluster.in_flight.clear()  # (b): S5's own entry of term 3 is on S5 only
    cluster.heal()
    cluster.restart(1)
    cluster.isolate(4, 5)  # S1 reaches S2 and S3
    cluster.held = {MessageKind.APPEND_RESPONSE}
    for _ in range(2):  # S3 has voted for S5 in the first term it tries
        cluster[1].campaign()
        cluster.settle()
    assert cluster[1].is_leader
    node, old = cluster[1], cluster.replicas[1].entries()[-2]
    assert (old.term, bytes(old.data)) == (1, b"two")
    # S2 acknowledges everything, S3 rejects; the leader goes back one entry, and S3 takes it.
    for replica in (1, 3):
        messages, cluster.in_flight = cluster.in_flight, []
        for message in messages:
            cluster.deliver_one(message)
        cluster.handle(replica)
    (answer,) = cluster.in_flight
    assert (answer.sender, answer.index) == (3, old.index)
    cluster.deliver_one(answer)
    assert cluster[3].last_index == old.index, "the old entry is on S1, S2 and S3 now"
    assert node.commit < old.index, "(c): not committed by counting replicas"
    cluster.in_flight.clear()
    cluster.held = set()
    cluster.tick(1)
    cluster.settle()
    assert node.commit == node.last_index, "(e): committed together with its own term's entry"
    cluster.heal()
    cluster.restart(5)
    for _ in range(3):
        cluster[5].campaign()
        cluster.settle()
        assert not cluster[5].is_leader
    assert cluster.replicas[1].data() == [b"two"]


def test_a_deposed_leader_does_not_commit() -> None:
    """Section 5.4: a leader cut off with a minority cannot commit, and loses what it appended."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.isolate(1)
    cluster.propose(1, b"lost")
    cluster[2].campaign()
    cluster.settle()
    cluster.propose(2, b"kept")
    assert cluster.replicas[1].data() == []
    cluster.heal()
    cluster.tick(2)
    cluster.settle()
    assert [r.data() for r in cluster.replicas.values()] == [[b"kept"]] * 3
    assert (1, b"lost") not in cluster.replicas[1].log()


def test_a_committed_entry_is_in_every_later_leaders_log() -> None:
    """Figure 3, leader completeness."""
    cluster = Cluster(5)
    committed: list[bytes] = []
    for turn, leader in enumerate((1, 2, 3, 4, 5)):
        cluster.elect(leader)
        away = leader % 5 + 1
        cluster.isolate(away)
        cluster.propose(leader, b"%d" % turn)
        committed.append(b"%d" % turn)
        cluster.heal()
        cluster.tick(leader)
        cluster.settle()
        assert [d for _, d in cluster.replicas[leader].log() if d] == committed


def test_logs_with_a_common_entry_are_equal_up_to_it() -> None:
    """Figure 3, log matching."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.isolate(1)
    cluster.propose(1, b"a", b"b")
    cluster[2].campaign()
    cluster.settle()
    cluster.propose(2, b"c")
    cluster.heal()
    cluster.elect(2)
    cluster.propose(2, b"d")
    cluster.tick(2)
    cluster.settle()
    logs = [r.log() for r in cluster.replicas.values()]
    assert logs[0] == logs[1] == logs[2]


def test_everything_needed_survives_a_crash_of_all() -> None:
    """Section 5.5 and figure 2: term, vote and log are enough to go on."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.propose(1, b"a", b"b")
    for replica in (1, 2, 3):
        cluster.crash(replica)
        cluster.restart(replica)
    assert [cluster[i].term for i in (1, 2, 3)] == [1, 1, 1]
    cluster.elect(3)
    cluster.propose(3, b"c")
    assert all(r.data() == [b"a", b"b", b"c"] for r in cluster.replicas.values())


def test_messages_may_come_late_twice_and_out_of_order() -> None:
    """Section 5.5: Raft RPCs are idempotent; safety does not depend on timing."""
    cluster = Cluster()
    cluster.elect(1)
    cluster[1].propose([b"a"])
    cluster.handle(1)
    cluster[1].propose([b"b"])
    cluster.handle(1)
    cluster.in_flight = [*reversed(cluster.in_flight), *cluster.in_flight]
    cluster.settle()
    cluster.tick(1)
    cluster.settle()
    assert all(r.data() == [b"a", b"b"] for r in cluster.replicas.values())


def test_a_new_leader_begins_with_an_entry_of_its_own() -> None:
    """Section 8: a leader commits a blank no-op entry at the start of its term."""
    cluster = Cluster()
    cluster.elect(1)
    assert cluster.replicas[1].log() == [(1, b"")]
    assert cluster[1].commit == cluster[1].last_index
