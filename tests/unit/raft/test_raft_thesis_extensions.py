"""Ongaro's thesis beyond the paper: transfer (3.10), reads (6.4), pre-vote (9.6)."""

from __future__ import annotations

import pytest
from tests.unit.raft.cluster import Cluster, a_replica, flush, sent

from angarium.ids import Index, ReplicaId, Term
from angarium.raft import (
    Change,
    ChangeKind,
    Message,
    MessageKind,
    ProposalDropped,
    ReadState,
    Role,
)

# --- leadership transfer, section 3.10 ---------------------------------------------------------


def test_leadership_goes_to_a_follower_with_the_whole_log() -> None:
    """Section 3.10: the leader tells the target to time out now; it wins with a newer term."""
    cluster = Cluster(check_quorum=True, pre_vote=True)
    cluster.elect(1)
    cluster[1].transfer_leader(ReplicaId(2))
    cluster.settle()
    assert [cluster[i].role for i in (1, 2, 3)] == [Role.FOLLOWER, Role.LEADER, Role.FOLLOWER]
    assert cluster[1].term == 2, "without a pre-vote, and in spite of everybody's lease"


def test_a_follower_is_caught_up_before_it_takes_over() -> None:
    """Section 3.10: the leader first brings the target's log up to date."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.isolate(3)
    cluster.propose(1, b"x")
    cluster[1].transfer_leader(ReplicaId(3))
    cluster.settle()
    assert cluster[1].is_leader
    cluster.heal()
    cluster.tick(1)
    cluster.settle()
    assert cluster[3].is_leader
    assert cluster.replicas[3].data() == [b"x"]


def test_a_leader_that_hands_over_takes_no_proposals() -> None:
    """Section 3.10: the prior leader stops accepting new client requests."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.isolate(3)
    cluster[1].transfer_leader(ReplicaId(3))
    with pytest.raises(ProposalDropped):
        cluster[1].propose([b"x"])
    cluster.tick(1, 10)
    cluster[1].propose([b"x"])  # section 3.10: after an election timeout it resumes
    cluster.settle()
    assert cluster.replicas[1].data() == [b"x"]


def _called_late() -> Cluster:
    """Return a group whose target has caught up only at the end of an election timeout."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.isolate(3)
    cluster.propose(1, b"x")
    cluster[1].transfer_leader(ReplicaId(3))
    cluster.settle()
    cluster.tick(1, 8)
    cluster.heal()
    cluster.held.add(MessageKind.TIMEOUT_NOW)
    cluster.tick(1)
    cluster.settle()
    assert [m.to for m in cluster.in_flight] == [3]
    return cluster


def test_a_follower_that_caught_up_late_has_time_to_be_elected() -> None:
    """Else the leader goes on with its log, and nobody may vote for whom it has called."""
    cluster = _called_late()
    cluster.tick(1, 9)
    with pytest.raises(ProposalDropped):
        cluster[1].propose([b"y"])
    cluster.held.clear()
    cluster.settle()
    assert cluster[3].is_leader


def test_a_follower_that_was_called_in_vain_holds_nobody_up() -> None:
    """However often it says that it has everything."""
    cluster = _called_late()
    for _ in range(9):
        cluster.tick(1)
        cluster.deliver_one(
            Message(
                kind=MessageKind.APPEND_RESPONSE,
                to=ReplicaId(1),
                sender=ReplicaId(3),
                term=cluster[1].term,
                index=cluster[1].last_index,
            )
        )
        cluster.settle()
    with pytest.raises(ProposalDropped):
        cluster[1].propose([b"y"])
    cluster.tick(1)
    cluster.propose(1, b"y")
    assert cluster.replicas[1].data() == [b"x", b"y"]


def test_a_transfer_can_be_redirected_or_called_off() -> None:
    cluster = Cluster()
    cluster.elect(1)
    cluster.isolate(2, 3)
    cluster[1].transfer_leader(ReplicaId(3))
    cluster[1].transfer_leader(ReplicaId(2))
    assert cluster[1].status().transferee == 2
    cluster[1].transfer_leader(ReplicaId(1))
    assert cluster[1].status().transferee == 0


@pytest.mark.parametrize("target", [4, 9])
def test_learners_and_strangers_cannot_take_over(target: int) -> None:
    cluster = Cluster(4, learners=[4])
    cluster.elect(1)
    cluster[1].transfer_leader(ReplicaId(target))
    cluster.settle()
    assert cluster[1].is_leader
    assert cluster[1].status().transferee == 0


def test_a_follower_passes_the_wish_on() -> None:
    cluster = Cluster()
    cluster.elect(1)
    cluster[3].transfer_leader(ReplicaId(3))
    cluster.settle()
    assert cluster[3].is_leader


def test_removing_the_target_ends_the_transfer() -> None:
    cluster = Cluster()
    cluster.elect(1)
    cluster.isolate(3)
    cluster[1].propose_conf_change(Change(ChangeKind.REMOVE, ReplicaId(3)))
    cluster[1].transfer_leader(ReplicaId(3))
    cluster.settle()
    assert cluster[1].status().transferee == 0


# --- reads, section 6.4 ------------------------------------------------------------------------


def _reads(cluster: Cluster, replica: int) -> list[ReadState]:
    return cluster.replicas[replica].read_states


def test_a_read_is_answered_with_the_commit_index_at_its_arrival() -> None:
    """Section 6.4: the leader saves its commit index, and a round of heartbeats confirms it."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.propose(1, b"x")
    index = cluster[1].commit
    assert cluster[1].read_index(b"r1")
    assert not _reads(cluster, 1)
    cluster.settle()
    assert _reads(cluster, 1) == [ReadState(index, b"r1")]


def test_a_leader_that_cannot_reach_a_majority_answers_no_read() -> None:
    """Section 6.4: it may have been deposed without knowing."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.isolate(1)
    cluster[2].campaign()
    cluster.settle()
    cluster.propose(2, b"newer")
    cluster[1].read_index(b"stale")
    cluster.settle()
    assert cluster[1].is_leader
    assert not _reads(cluster, 1)


def test_a_new_leader_answers_no_read_before_an_entry_of_its_term_is_committed() -> None:
    """Section 6.4: until then it does not know what is committed."""
    cluster = Cluster()
    cluster.elect(2)
    cluster.held = {MessageKind.APPEND_RESPONSE}
    cluster[1].campaign()
    cluster.settle()
    cluster[1].read_index(b"early")
    cluster.settle()
    assert not _reads(cluster, 1)
    cluster.held = set()
    cluster.settle()
    assert _reads(cluster, 1) == [ReadState(cluster[1].commit, b"early")]


def test_a_lone_voter_too_answers_only_after_committing_in_its_term() -> None:
    """Section 6.4: after a restart, its commit index may lag behind what it acknowledged."""
    member = a_replica(voters=[1], log=[1, 1, 1], commit=1)
    member.node.campaign()
    while not member.node.is_leader:
        ready = member.node.ready()
        member.write(ready.hard_state, ready.entries)
        member.node.advance()
    member.node.read_index(b"r")
    flush(member)
    assert member.read_states == [ReadState(Index(4), b"r")]


def test_a_follower_asks_its_leader() -> None:
    """Section 6.4: followers can serve reads with the leader's read index."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.propose(1, b"x")
    assert cluster[3].read_index(b"from 3")
    cluster.settle()
    assert _reads(cluster, 3) == [ReadState(cluster[1].commit, b"from 3")]
    assert not _reads(cluster, 1)


def test_several_reads_share_one_round_of_heartbeats() -> None:
    """Section 6.4: the cost of confirmation is amortised over the reads that accumulated."""
    cluster = Cluster()
    cluster.elect(1)
    contexts = [b"a", b"a", b"b"]  # equal contexts are different reads
    for context in contexts:
        cluster[1].read_index(context)
    cluster.handle(1)
    last_round = [m for m in cluster.in_flight if m.kind is MessageKind.HEARTBEAT][-2:]
    cluster.in_flight = last_round[:1]
    cluster.settle()
    assert [r.context for r in _reads(cluster, 1)] == contexts


def test_echoes_from_before_a_read_do_not_confirm_it() -> None:
    cluster = Cluster()
    cluster.elect(1)
    cluster.tick(1)
    cluster.handle(1)
    cluster.deliver()
    cluster.handle(2)
    cluster.handle(3)  # two echoes are under way
    cluster[1].read_index(b"r")
    cluster.isolate(1)
    echoes, cluster.in_flight = cluster.in_flight, []
    for echo in echoes:
        cluster[1].step(echo)
    cluster.settle()
    assert not _reads(cluster, 1)


def test_without_a_leader_there_is_nobody_to_ask() -> None:
    assert a_replica().node.read_index(b"r") is False


def test_too_many_reads_are_refused() -> None:
    cluster = Cluster(pending_reads_max=2)
    cluster.elect(1)
    cluster.isolate(1)
    assert [cluster[1].read_index(b"%d" % i) for i in range(3)] == [True, True, False]


def test_a_lease_answers_at_once_until_it_is_voided() -> None:
    """Section 6.4.1: with clocks trusted, no round is needed; after a pause, one is."""
    cluster = Cluster(check_quorum=True, lease_reads=True)
    cluster.elect(1)
    cluster[1].read_index(b"leased")
    cluster.handle(1)
    assert [r.context for r in _reads(cluster, 1)] == [b"leased"]
    cluster[1].void_lease()
    cluster[1].read_index(b"after a pause")
    cluster.handle(1)
    assert len(_reads(cluster, 1)) == 1
    cluster.settle()
    assert [r.context for r in _reads(cluster, 1)] == [b"leased", b"after a pause"]
    cluster.isolate(1)
    cluster[1].read_index(b"leased again")
    cluster.handle(1)
    assert len(_reads(cluster, 1)) == 3


def test_reads_go_on_when_a_group_shrinks_to_one_voter() -> None:
    cluster = Cluster(2)
    cluster.elect(1)
    cluster[1].propose_conf_change(Change(ChangeKind.REMOVE, ReplicaId(2)))
    cluster.handle(1)
    cluster.deliver()
    cluster.handle(2)
    cluster.isolate(2)
    cluster[1].read_index(b"r")
    for message in cluster.in_flight:
        cluster[1].step(message)  # 2's last word commits its own removal
    cluster.in_flight.clear()
    cluster.settle()
    assert [r.context for r in _reads(cluster, 1)] == [b"r"]


# --- pre-vote and check-quorum, sections 6.2 and 9.6 -------------------------------------------


def test_a_replica_back_from_a_partition_disturbs_nobody() -> None:
    """Section 9.6: a candidate first asks whether it could win, without raising its term."""
    cluster = Cluster(pre_vote=True)
    cluster.elect(1)
    cluster.isolate(3)
    cluster.tick(3, 100)
    cluster.settle()
    assert (cluster[3].role, cluster[3].term) == (Role.PRE_CANDIDATE, 1)
    cluster.propose(1, b"x")
    cluster.heal()
    cluster[3].campaign()
    cluster.settle()
    assert cluster[1].is_leader
    assert cluster[1].term == 1
    cluster.tick(1)
    cluster.settle()
    assert cluster.replicas[3].data() == [b"x"]


def test_without_pre_vote_it_deposes_the_leader() -> None:
    """Section 9.6: what the extra phase is for."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.isolate(3)
    cluster.tick(3, 30)
    cluster.settle()
    cluster.heal()
    cluster[3].campaign()
    cluster.settle()
    assert cluster[1].term > 1


def test_a_pre_vote_changes_nothing_at_the_voter() -> None:
    """Section 9.6: it grants what it would grant, and remembers nothing."""
    member = a_replica(log=[1], term=1, pre_vote=True)
    for candidate in (2, 3):
        member.node.step(
            Message(
                kind=MessageKind.PRE_VOTE,
                to=ReplicaId(1),
                sender=ReplicaId(candidate),
                term=Term(2),
                log_term=Term(1),
                index=Index(1),
            )
        )
    answers = sent(flush(member), MessageKind.PRE_VOTE_RESPONSE)
    assert [(m.to, m.reject, m.term) for m in answers] == [(2, False, 2), (3, False, 2)]
    assert member.storage.initial_state()[0].vote == 0
    assert member.node.term == 1


def test_a_pre_vote_with_an_old_log_is_refused_in_the_voters_term() -> None:
    member = a_replica(log=[2], term=2, pre_vote=True)
    member.node.step(
        Message(
            kind=MessageKind.PRE_VOTE,
            to=ReplicaId(1),
            sender=ReplicaId(2),
            term=Term(3),
            log_term=Term(1),
            index=Index(5),
        )
    )
    (answer,) = sent(flush(member), MessageKind.PRE_VOTE_RESPONSE)
    assert (answer.reject, answer.term) == (True, 2)


def test_a_leader_without_a_majority_steps_down() -> None:
    """Section 6.2: if an election timeout elapses without a round to a majority."""
    cluster = Cluster(5, check_quorum=True)
    cluster.elect(1)
    cluster.isolate(3, 4, 5)
    for _ in range(20):
        cluster.tick(1)
        cluster.settle()
    assert (cluster[1].role, cluster[1].leader) == (Role.FOLLOWER, 0)


def test_a_leader_with_a_majority_stays() -> None:
    """Section 6.2, the other half."""
    cluster = Cluster(5, check_quorum=True)
    cluster.elect(1)
    cluster.isolate(4, 5)
    for _ in range(50):
        cluster.tick(1)
        cluster.settle()
    assert cluster[1].is_leader


def test_who_has_just_heard_from_a_leader_ignores_candidates() -> None:
    """Section 4.2.3: neither term nor vote change within the minimum election timeout."""
    cluster = Cluster(check_quorum=True)
    cluster.elect(1)
    cluster[3].campaign()
    cluster.settle()
    assert cluster[1].is_leader
    assert [cluster[i].term for i in (1, 2)] == [1, 1]


def test_a_stuck_candidate_is_freed_by_the_leaders_next_message() -> None:
    """With check-quorum nobody listens to it, so it answers the old leader with its newer term."""
    cluster = Cluster(check_quorum=True)
    cluster.elect(1)
    cluster[3].campaign()
    cluster.settle()
    assert cluster[3].term == 2
    cluster.tick(1)
    cluster.settle()
    for _ in range(60):
        for replica in (1, 2, 3):
            cluster.tick(replica)
        cluster.settle()
    terms = {cluster[i].term for i in (1, 2, 3)}
    assert len(terms) == 1
    assert sum(cluster[i].is_leader for i in (1, 2, 3)) == 1


def test_a_follower_that_forgets_its_leader_votes_at_once() -> None:
    cluster = Cluster(check_quorum=True, pre_vote=True)
    cluster.elect(1)
    cluster.crash(1)
    cluster[2].forget_leader()
    cluster[3].campaign()
    cluster.settle()
    assert cluster[3].is_leader


def test_with_leases_a_leader_is_not_forgotten() -> None:
    cluster = Cluster(check_quorum=True, lease_reads=True)
    cluster.elect(1)
    cluster[2].forget_leader()
    assert cluster[2].leader == 1


def test_a_group_that_nobody_ticks_rests() -> None:
    """Quiescence: nothing but ticks, messages and proposals makes anything happen."""
    cluster = Cluster(check_quorum=True, pre_vote=True)
    cluster.elect(1)
    cluster.propose(1, b"x")
    assert not any(cluster[i].has_ready() for i in (1, 2, 3))
    cluster.propose(1, b"y")  # and it wakes where it was
    assert all(r.data() == [b"x", b"y"] for r in cluster.replicas.values())


def test_whose_voters_are_far_away_waits_longer_for_them() -> None:
    cluster = Cluster(jitter=lambda _: 0)
    node = cluster[1]
    node.allow_for(5)
    for _ in range(14):
        node.tick()
    waited = node.role
    node.tick()
    assert (waited, node.role) == (Role.FOLLOWER, Role.CANDIDATE)
    node.allow_for(0)
    assert node._core.election_timeout == 10


def test_leases_are_not_stretched_by_what_one_replica_has_measured() -> None:
    cluster = Cluster(check_quorum=True, lease_reads=True)
    cluster[1].allow_for(5)
    assert cluster[1]._core.election_ticks == 10
