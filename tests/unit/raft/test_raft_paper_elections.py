"""The Raft paper (Ongaro and Ousterhout, extended version) on terms and elections."""

from __future__ import annotations

import pytest
from tests.unit.raft.cluster import Cluster, a_replica, flush, sent

from angarium.ids import Index, ReplicaId, Term
from angarium.raft import HardState, Message, MessageKind, ProposalDropped, Role


@pytest.mark.parametrize("role", [Role.FOLLOWER, Role.CANDIDATE, Role.LEADER])
def test_a_newer_term_makes_everybody_a_follower(role: Role) -> None:
    """Section 5.1: who finds its term out of date reverts to follower and takes the new one."""
    cluster = Cluster()
    if role is Role.LEADER:
        cluster.elect(1)
    elif role is Role.CANDIDATE:
        cluster[1].campaign()
    message = Message(
        kind=MessageKind.HEARTBEAT, to=ReplicaId(1), sender=ReplicaId(2), term=Term(9)
    )
    cluster[1].step(message)
    assert (cluster[1].role, cluster[1].term, cluster[1].leader) == (Role.FOLLOWER, 9, 2)


@pytest.mark.parametrize(
    "kind", [MessageKind.APPEND, MessageKind.HEARTBEAT, MessageKind.VOTE, MessageKind.SNAPSHOT]
)
def test_a_message_of_an_older_term_changes_nothing(kind: MessageKind) -> None:
    """Section 5.1: a request with a stale term is rejected."""
    member = a_replica(log=[1, 2, 2], term=3)
    member.node.step(
        Message(kind=kind, to=ReplicaId(1), sender=ReplicaId(2), term=Term(2), index=Index(3))
    )
    assert (member.node.term, member.node.leader, member.node.last_index) == (3, 0, 3)
    assert not member.node.has_ready()


def test_a_replica_starts_as_a_follower() -> None:
    """Section 5.2: servers begin as followers."""
    assert a_replica().node.role is Role.FOLLOWER


def test_a_leader_sends_heartbeats_to_keep_its_authority() -> None:
    """Section 5.2: leaders send periodic heartbeats to all followers."""
    cluster = Cluster(heartbeat_ticks=2)
    cluster.elect(1)
    cluster.tick(1, 1)
    assert not cluster[1].has_ready()
    cluster.tick(1, 1)
    cluster.handle_ready(1)
    beats = sent(cluster.in_flight, MessageKind.HEARTBEAT)
    assert [m.to for m in beats] == [2, 3]


def test_a_follower_that_hears_from_its_leader_does_not_campaign() -> None:
    """Section 5.2: a server stays a follower as long as it receives valid RPCs."""
    cluster = Cluster()
    cluster.elect(1)
    for _ in range(50):
        for replica in (1, 2, 3):
            cluster.tick(replica)
        cluster.settle()
    assert [cluster[i].role for i in (1, 2, 3)] == [Role.LEADER, Role.FOLLOWER, Role.FOLLOWER]
    assert cluster[1].term == 1


@pytest.mark.parametrize("role", [Role.FOLLOWER, Role.CANDIDATE])
def test_an_election_timeout_starts_an_election(role: Role) -> None:
    """Section 5.2: without communication it increments its term, votes for itself and asks."""
    member = a_replica(log=[1, 1], term=1)
    if role is Role.CANDIDATE:
        member.node.campaign()
        flush(member)
    before = member.node.term
    for _ in range(10):
        member.node.tick()
    requests = sent(flush(member), MessageKind.VOTE)
    assert member.node.role is Role.CANDIDATE
    assert member.node.term == before + 1
    assert [(m.to, m.term, m.index, m.log_term) for m in requests] == [
        (2, before + 1, 2, 1),
        (3, before + 1, 2, 1),
    ]
    assert member.storage.initial_state()[0].vote == 1


@pytest.mark.parametrize(
    ("voters", "granted", "rejected", "role"),
    [
        (1, 0, 0, Role.LEADER),
        (3, 1, 0, Role.LEADER),
        (3, 0, 1, Role.CANDIDATE),
        (3, 0, 2, Role.FOLLOWER),
        (5, 2, 0, Role.LEADER),
        (5, 2, 2, Role.LEADER),
        (5, 1, 2, Role.CANDIDATE),
        (5, 1, 3, Role.FOLLOWER),
        (4, 1, 0, Role.CANDIDATE),
    ],
)
def test_a_candidate_wins_with_a_majority_of_the_whole_cluster(
    voters: int, granted: int, rejected: int, role: Role
) -> None:
    """Section 5.2: a candidate wins if it receives votes from a majority in the same term."""
    member = a_replica(voters=range(1, voters + 1))
    member.node.campaign()
    flush(member)
    for voter in range(2, 2 + granted + rejected):
        member.node.step(
            Message(
                kind=MessageKind.VOTE_RESPONSE,
                to=ReplicaId(1),
                sender=ReplicaId(voter),
                term=member.node.term,
                reject=voter >= 2 + granted,
            )
        )
    assert member.node.role is role


def test_a_second_vote_of_the_same_voter_does_not_count() -> None:
    """Section 5.2: each server votes for at most one candidate, and once."""
    member = a_replica(voters=range(1, 6))
    member.node.campaign()
    flush(member)
    for _ in range(4):
        member.node.step(
            Message(
                kind=MessageKind.VOTE_RESPONSE,
                to=ReplicaId(1),
                sender=ReplicaId(2),
                term=Term(1),
            )
        )
    assert member.node.role is Role.CANDIDATE


def test_a_voter_grants_one_vote_per_term() -> None:
    """Section 5.2 and 5.4 (election safety): first come, first served, once per term."""
    member = a_replica()
    for candidate in (2, 3, 2):
        member.node.step(
            Message(
                kind=MessageKind.VOTE,
                to=ReplicaId(1),
                sender=ReplicaId(candidate),
                term=Term(1),
            )
        )
    answers = sent(flush(member), MessageKind.VOTE_RESPONSE)
    assert [(m.to, m.reject) for m in answers] == [(2, False), (3, True), (2, False)]


def test_a_vote_survives_a_restart() -> None:
    """Figure 2: votedFor is on stable storage before the answer leaves, so nobody votes twice."""
    member = a_replica()
    request = Message(kind=MessageKind.VOTE, to=ReplicaId(1), sender=ReplicaId(2), term=Term(1))
    member.node.step(request)
    ready = member.node.ready()
    assert ready.must_sync
    assert ready.hard_state == HardState(Term(1), ReplicaId(2), Index(0))
    member.write(ready.hard_state, ready.entries)
    member.start()
    member.node.step(
        Message(kind=MessageKind.VOTE, to=ReplicaId(1), sender=ReplicaId(3), term=Term(1))
    )
    assert [m.reject for m in sent(flush(member), MessageKind.VOTE_RESPONSE)] == [True]


def test_no_vote_leaves_before_it_is_written() -> None:
    """Figure 2: updated on stable storage before responding to RPCs (asynchronous writes)."""
    member = a_replica(async_storage_writes=True)
    member.node.step(
        Message(kind=MessageKind.VOTE, to=ReplicaId(1), sender=ReplicaId(2), term=Term(1))
    )
    (task,) = member.node.ready().messages
    assert task.kind is MessageKind.STORAGE_APPEND
    assert (task.term, task.vote) == (1, 2)
    assert [m.kind for m in task.responses] == [MessageKind.VOTE_RESPONSE]


def test_a_candidate_that_hears_of_a_leader_in_its_term_follows() -> None:
    """Section 5.2: a candidate recognises a leader whose term is at least its own."""
    member = a_replica()
    member.node.campaign()
    flush(member)
    member.node.step(
        Message(kind=MessageKind.APPEND, to=ReplicaId(1), sender=ReplicaId(3), term=Term(1))
    )
    assert (member.node.role, member.node.leader) == (Role.FOLLOWER, 3)


def test_a_split_vote_is_followed_by_another_election() -> None:
    """Section 5.2: if nobody wins, candidates time out and start again, with random timeouts."""
    cluster = Cluster(4)
    cluster.cut = {(1, 4), (2, 3)}  # 3 hears of 1 first, 4 of 2
    cluster[1].campaign()
    cluster[2].campaign()
    cluster.settle()
    cluster.heal()
    assert not any(cluster[i].is_leader for i in (1, 2, 3, 4))
    for _ in range(40):
        for replica in (1, 2, 3, 4):
            cluster.tick(replica)
        cluster.settle()
    leaders = [i for i in (1, 2, 3, 4) if cluster[i].is_leader]
    assert len(leaders) == 1


def test_election_timeouts_are_drawn_from_the_jitter_each_term() -> None:
    """Section 5.2: election timeouts are chosen randomly from a fixed interval."""
    drawn = iter([3, 7, 0, 5])
    member = a_replica()
    member.jitter = lambda _: next(drawn)
    member.start()
    timeouts = []
    for _ in range(3):
        ticks, before = 0, member.node.term
        while member.node.term == before:
            member.node.tick()
            ticks += 1
        timeouts.append(ticks)
        flush(member)
    assert timeouts == [13, 17, 10]


@pytest.mark.parametrize(
    ("log", "last_term", "last_index", "granted"),
    [
        ([1], 1, 1, True),
        ([1], 2, 1, True),
        ([1, 1], 2, 1, True),
        ([1], 1, 2, True),
        ([1, 1], 1, 1, False),
        ([2], 1, 1, False),
        ([2], 1, 5, False),
    ],
)
def test_a_vote_goes_only_to_a_log_at_least_as_up_to_date(
    log: list[int], last_term: int, last_index: int, granted: bool
) -> None:
    """Section 5.4.1: the later last term wins; with equal terms, the longer log."""
    member = a_replica(log=log)
    member.node.step(
        Message(
            kind=MessageKind.VOTE,
            to=ReplicaId(1),
            sender=ReplicaId(2),
            term=Term(9),
            log_term=Term(last_term),
            index=Index(last_index),
        )
    )
    assert [m.reject for m in sent(flush(member), MessageKind.VOTE_RESPONSE)] == [not granted]


def test_a_candidate_without_all_committed_entries_cannot_win() -> None:
    """Section 5.4.1: an up-to-date majority refuses a candidate that misses a committed entry."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.isolate(3)
    cluster.propose(1, b"committed without 3")
    cluster.heal()
    cluster[3].campaign()
    cluster.settle()
    assert not cluster[3].is_leader
    assert cluster[3].term == 2


def test_nobody_is_elected_twice_in_a_term_by_different_voters() -> None:
    """Figure 3, election safety: at most one leader per term, whoever campaigns when."""
    cluster = Cluster(5)
    leaders: dict[int, int] = {}
    for candidate in (1, 2, 3, 4, 5, 2, 1):
        cluster[candidate].campaign()
        cluster.settle()
        for replica in range(1, 6):
            node = cluster[replica]
            if node.is_leader:
                assert leaders.setdefault(node.term, replica) == replica
    assert len(leaders) >= 5


def test_a_proposal_without_a_leader_is_refused() -> None:
    """Section 8 (client interaction): only the leader takes commands; refusal is definite."""
    member = a_replica()
    with pytest.raises(ProposalDropped):
        member.node.propose([b"too early"])
    member.node.campaign()
    with pytest.raises(ProposalDropped):
        member.node.propose([b"still too early"])
    assert not any(e.data for e in member.entries())
