"""Ongaro's thesis on changing the members of a group (chapter 4; paper, section 6)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.raft.cluster import Cluster, a_replica

from angarium.ids import Index, ReplicaId, Term
from angarium.raft import (
    Change,
    ChangeKind,
    ConfChange,
    ConfChangeFault,
    ConfState,
    Entry,
    EntryKind,
    InvalidConfChange,
    Message,
    MessageKind,
    ProposalDropped,
    Role,
    Transition,
    decode_conf_change,
    encode_conf_change,
)
from angarium.raft.membership import (
    Membership,
    changed,
    entered_joint,
    left_joint,
    restored,
    simply_changed,
)

ADD, LEARN, REMOVE = ChangeKind.ADD_VOTER, ChangeKind.ADD_LEARNER, ChangeKind.REMOVE

ids = st.integers(1, 5).map(ReplicaId)
changes = st.lists(
    st.builds(Change, st.sampled_from(list(ChangeKind)), st.integers(0, 5).map(ReplicaId)),
    max_size=5,
).map(tuple)


def _change(kind: ChangeKind, replica: int) -> Change:
    return Change(kind, ReplicaId(replica))


def _membership(*voters: int, learners: tuple[int, ...] = ()) -> Membership:
    return Membership(
        voters=frozenset(map(ReplicaId, voters)), learners=frozenset(map(ReplicaId, learners))
    )


# --- the values --------------------------------------------------------------------------------


@given(st.builds(ConfChange, changes, st.sampled_from(list(Transition)), st.binary(max_size=9)))
def test_a_change_survives_its_encoding(change: ConfChange) -> None:
    kind, data = encode_conf_change(change)
    assert decode_conf_change(Entry(Term(1), Index(1), data, kind)) == change
    # Leaving a joint configuration must never be held back by a bound on bytes.
    assert (data == b"") == (change == ConfChange())


def test_a_single_change_has_its_own_kind_of_entry() -> None:
    kind, data = encode_conf_change(_change(ADD, 4))
    assert kind is EntryKind.CONF_CHANGE
    decoded = decode_conf_change(Entry(Term(1), Index(1), data, kind))
    assert decoded == ConfChange((_change(ADD, 4),))
    assert not decoded.enters_joint


@pytest.mark.parametrize("data", [b"\xc1", b"\x93", b"nonsense", b"\x92\x07\x01"])
def test_bytes_that_are_no_change_are_refused(data: bytes) -> None:
    for kind in (EntryKind.CONF_CHANGE, EntryKind.CONF_CHANGE_V2):
        with pytest.raises(InvalidConfChange) as caught:
            decode_conf_change(Entry(Term(1), Index(1), data, kind))
        assert caught.value.reason is ConfChangeFault.MALFORMED


@settings(max_examples=200)
@given(st.frozensets(ids, min_size=1), changes)
def test_a_simple_change_keeps_majorities_overlapping(
    voters: frozenset[ReplicaId], several: tuple[Change, ...]
) -> None:
    """Section 4.1: adding or removing one server at a time, any two majorities overlap."""
    before = Membership(voters=voters)
    try:
        after = simply_changed(before, several)
    except InvalidConfChange:
        return
    majority_before, majority_after = len(voters) // 2 + 1, len(after.voters) // 2 + 1
    assert majority_before + majority_after > len(voters | after.voters)


@settings(max_examples=200)
@given(st.frozensets(ids, min_size=1), changes, st.booleans())
def test_a_joint_configuration_holds_the_old_and_the_new(
    voters: frozenset[ReplicaId], several: tuple[Change, ...], auto: bool
) -> None:
    """Section 4.3: C_old,new combines both; leaving it yields C_new."""
    before = Membership(voters=voters)
    try:
        joint = entered_joint(before, several, auto_leave=auto)
    except InvalidConfChange:
        return  # nobody would be left to vote
    assert joint.outgoing == voters
    assert joint.auto_leave is auto
    after = left_joint(joint)
    assert after.voters == joint.voters
    assert not after.is_joint
    assert not after.learners & after.voters


@settings(max_examples=200)
@given(st.frozensets(ids, min_size=1), changes)
def test_a_membership_survives_a_snapshot(
    voters: frozenset[ReplicaId], several: tuple[Change, ...]
) -> None:
    try:
        joint = entered_joint(Membership(voters=voters), several, auto_leave=True)
    except InvalidConfChange:
        return
    assert restored(joint.conf_state) == joint
    assert restored(left_joint(joint).conf_state) == left_joint(joint)


@pytest.mark.parametrize(
    ("current", "change", "reason"),
    [
        (_membership(1), ConfChange(), ConfChangeFault.NOT_JOINT),
        (_membership(1), ConfChange((_change(REMOVE, 1),)), ConfChangeFault.NO_VOTER_LEFT),
        (_membership(1), ConfChange((_change(LEARN, 1),)), ConfChangeFault.NO_VOTER_LEFT),
        (
            _membership(),
            ConfChange((_change(ADD, 1), _change(ADD, 2))),
            ConfChangeFault.NOTHING_TO_JOIN,
        ),
    ],
)
def test_an_impossible_change_is_refused(
    current: Membership, change: ConfChange, reason: ConfChangeFault
) -> None:
    with pytest.raises(InvalidConfChange) as caught:
        changed(current, change)
    assert caught.value.reason is reason


def test_a_joint_configuration_takes_no_other_change_before_it_is_left() -> None:
    joint = entered_joint(_membership(1, 2, 3), [_change(ADD, 4)], auto_leave=False)
    for change, reason in (
        (ConfChange((_change(ADD, 5),)), ConfChangeFault.SIMPLE_WHILE_JOINT),
        (ConfChange((), Transition.EXPLICIT), ConfChangeFault.ALREADY_JOINT),
    ):
        with pytest.raises(InvalidConfChange) as caught:
            changed(joint, change)
        assert caught.value.reason is reason


def test_two_voters_at_a_time_need_a_joint_configuration() -> None:
    with pytest.raises(InvalidConfChange) as caught:
        simply_changed(_membership(1, 2), [_change(ADD, 3), _change(ADD, 4)])
    assert caught.value.reason is ConfChangeFault.SEVERAL_VOTERS


@pytest.mark.parametrize(
    "state",
    [
        ConfState(voters=(ReplicaId(1),), learners=(ReplicaId(1),)),
        ConfState(voters=(ReplicaId(1),), learners_next=(ReplicaId(2),)),
        ConfState(voters=(ReplicaId(1),), auto_leave=True),
        ConfState(learners=(ReplicaId(1),)),
    ],
)
def test_a_contradictory_membership_cannot_be_built(state: ConfState) -> None:
    with pytest.raises(InvalidConfChange):
        restored(state)


# --- in a group --------------------------------------------------------------------------------


def _grown_to_four() -> Cluster:
    cluster = Cluster()
    cluster.elect(1)
    cluster.add(4)
    cluster[1].propose_conf_change(_change(ADD, 4))
    cluster.settle()
    return cluster


def test_an_empty_newcomer_is_caught_up_and_votes() -> None:
    """Section 4.1: AddServer; section 4.2.1: the new server must be caught up."""
    cluster = _grown_to_four()
    assert all(r.conf_state.voters == (1, 2, 3, 4) for r in cluster.replicas.values())
    cluster.propose(1, b"x")
    assert cluster[4].commit == cluster[1].commit
    cluster.isolate(3, 4)
    cluster.propose(1, b"y")
    assert b"y" not in cluster.replicas[1].data(), "two of four are no majority"


def test_a_second_change_waits_until_the_first_is_applied() -> None:
    """Section 4.1: a leader must not begin a change while another one is uncommitted."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.isolate(1)
    cluster[1].propose_conf_change(_change(ADD, 4))
    cluster[1].propose_conf_change(_change(ADD, 5))
    kinds = [e.kind for e in cluster.replicas[1].entries()[-2:]]
    assert kinds == [EntryKind.CONF_CHANGE, EntryKind.NORMAL], "the second became an empty entry"


def test_a_new_leader_holds_changes_back_until_its_tail_is_applied() -> None:
    """Section 4.1: there may be an uncommitted change in the tail that it inherited."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.held = {MessageKind.APPEND_RESPONSE}
    cluster.propose(1, b"tail")
    cluster[2].campaign()
    cluster.settle()
    assert cluster[2].is_leader
    cluster[2].propose_conf_change(_change(ADD, 4))
    assert cluster.replicas[2].entries()[-1].kind is EntryKind.NORMAL
    cluster.held = set()
    cluster.settle()
    cluster[2].propose_conf_change(_change(ADD, 4))
    assert cluster.replicas[2].entries()[-1].kind is EntryKind.CONF_CHANGE


def test_a_change_that_could_not_be_applied_never_enters_the_log() -> None:
    cluster = Cluster(1)
    cluster.elect(1)
    cluster[1].propose_conf_change(_change(REMOVE, 1))
    assert cluster.replicas[1].entries()[-1].kind is EntryKind.NORMAL
    with pytest.raises(InvalidConfChange):
        cluster[1].apply_conf_change(_change(REMOVE, 1))
    assert cluster[1].conf_state.voters == (1,)


def test_several_replicas_are_replaced_through_a_joint_configuration() -> None:
    """Section 4.3: arbitrary changes; here the joint configuration is left by itself."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.add(4)
    cluster.add(5)
    cluster[1].propose_conf_change(
        ConfChange((_change(ADD, 4), _change(ADD, 5), _change(REMOVE, 2), _change(REMOVE, 3)))
    )
    cluster.settle()
    assert cluster[1].conf_state == ConfState(voters=(ReplicaId(1), ReplicaId(4), ReplicaId(5)))
    cluster.isolate(2, 3)
    cluster.propose(1, b"x")
    assert [cluster.replicas[i].data() for i in (1, 4, 5)] == [[b"x"]] * 3


def test_a_joint_configuration_needs_both_majorities() -> None:
    """Section 4.3: agreement requires separate majorities from both configurations."""
    cluster = Cluster()
    cluster.elect(1)
    for newcomer in (4, 5):
        cluster.add(newcomer)
    cluster[1].propose_conf_change(
        ConfChange(
            (_change(ADD, 4), _change(ADD, 5), _change(REMOVE, 2), _change(REMOVE, 3)),
            Transition.EXPLICIT,
        )
    )
    cluster.settle()
    assert cluster[1].conf_state.voters_outgoing == (1, 2, 3)
    for silent in ((2, 3), (4, 5)):
        before = cluster[1].commit
        cluster.isolate(*silent)
        cluster.propose(1, b"x")
        assert cluster[1].commit == before
        cluster.heal()
        cluster.tick(1)
        cluster.settle()
        assert cluster[1].commit == before + 1
    cluster[1].propose_conf_change(ConfChange())
    cluster.settle()
    assert cluster[1].conf_state.voters == (1, 4, 5)


def test_a_new_leader_leaves_the_joint_configuration_of_its_predecessor() -> None:
    """Section 4.3: whoever leads completes the transition."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.add(4)
    cluster[1].propose_conf_change(ConfChange((_change(ADD, 4),), Transition.IMPLICIT))
    # Everybody applies the joint configuration; the leader goes before it can leave it.
    for _ in range(30):
        cluster.handle(1)
        if cluster[1].conf_state.voters_outgoing:
            break
        cluster.deliver()
        for replica in (2, 3, 4):
            cluster.handle(replica)
    for _ in range(6):
        cluster.deliver()
        for replica in (2, 3, 4):
            cluster.handle(replica)
        if all(cluster[i].conf_state.voters_outgoing for i in (2, 3)):
            break
        cluster.handle(1)
    cluster.crash(1)
    cluster.elect(2)
    cluster.settle()
    assert cluster[2].conf_state.voters == (1, 2, 3, 4)
    assert not cluster[2].conf_state.voters_outgoing


def test_a_learner_gets_the_log_but_no_say() -> None:
    """Section 4.2.1: new servers join as non-voting members."""
    cluster = Cluster(4, learners=[4])
    cluster.elect(1)
    cluster.isolate(2, 3)
    cluster.propose(1, b"x")
    assert cluster.replicas[1].data() == []
    cluster.heal()
    cluster.tick(1)
    cluster.settle()
    assert cluster.replicas[4].data() == [b"x"]
    cluster.tick(4, 50)
    assert cluster[4].role is Role.FOLLOWER
    cluster[4].campaign()
    assert cluster[4].term == 1


def test_a_learner_votes_when_asked_for_it_may_have_been_promoted() -> None:
    member = a_replica(4, voters=(1, 2, 3))
    member.node.apply_conf_change(_change(LEARN, 4))
    member.node.step(
        Message(kind=MessageKind.VOTE, to=ReplicaId(4), sender=ReplicaId(1), term=Term(1))
    )
    ready = member.node.ready()
    assert [m.reject for m in ready.messages] == [False]


def test_a_learner_is_promoted_and_a_voter_demoted() -> None:
    cluster = Cluster(4, learners=[4])
    cluster.elect(1)
    cluster[1].propose_conf_change(ConfChange((_change(ADD, 4), _change(LEARN, 2))))
    cluster.settle()
    assert cluster[1].conf_state == ConfState(
        voters=(ReplicaId(1), ReplicaId(3), ReplicaId(4)), learners=(ReplicaId(2),)
    )
    assert cluster[1].status().progress[ReplicaId(2)].is_learner


@pytest.mark.parametrize("steps_down", [True, False])
def test_a_removed_leader(steps_down: bool) -> None:
    """Section 4.2.2: it steps down when its removal is committed, or leads on without counting."""
    cluster = Cluster(step_down_on_removal=steps_down)
    cluster.elect(1)
    cluster[1].propose_conf_change(_change(REMOVE, 1))
    cluster.settle()
    assert cluster[1].is_leader is not steps_down
    assert cluster[2].conf_state.voters == (2, 3)
    with pytest.raises(ProposalDropped):
        cluster[1].propose([b"no longer"])
    cluster.elect(2)
    cluster.propose(2, b"x")
    assert cluster.replicas[3].data() == [b"x"]


def test_a_removed_replica_cannot_disturb_the_group() -> None:
    """Section 4.2.3: with check-quorum, followers of a live leader ignore its candidacy."""
    cluster = Cluster(check_quorum=True)
    cluster.elect(1)
    cluster.isolate(3)
    cluster[1].propose_conf_change(_change(REMOVE, 3))
    cluster.settle()
    cluster.heal()
    term = cluster[1].term
    for _ in range(40):
        for replica in (1, 2, 3):
            cluster.tick(replica)
        cluster.settle()
    assert cluster[1].is_leader
    assert cluster[1].term == term
    assert cluster[3].term > term


def _half_heard_change(*, pre_vote: bool) -> Cluster:
    """Return a group that only those who left know to be done with a change of membership.

    Voters 1, 2 and 3 became 3, 4 and 5. The leader, 1, has stepped down; it and 2 have an entry
    that no other has.
    """
    cluster = Cluster(5, learners=[4, 5], pre_vote=pre_vote, check_quorum=True)
    cluster.elect(1)
    cluster[1].propose_conf_change(
        ConfChange((_change(ADD, 4), _change(ADD, 5), _change(REMOVE, 1), _change(REMOVE, 2)))
    )
    while not cluster[1].conf_state.voters_outgoing:
        cluster.handle(1)
        cluster.deliver()
        for replica in (2, 3, 4, 5):
            cluster.handle(replica)
    cluster.held.add(MessageKind.APPEND_RESPONSE)
    cluster.settle()
    cluster.cut = {(1, 3), (1, 4), (1, 5)}
    cluster.propose(1, b"x")
    cluster.held.clear()
    cluster.settle()
    cluster.heal()
    assert not cluster[1].is_leader
    assert not cluster[1].conf_state.voters_outgoing
    assert all(cluster[one].conf_state.voters_outgoing for one in (3, 4, 5))
    assert cluster[1].last_index == cluster[2].last_index == cluster[3].last_index + 1
    return cluster


@pytest.mark.parametrize("pre_vote", [True, False])
@pytest.mark.parametrize("first", [3, 4, 5])
def test_those_who_left_tell_the_others_that_they_are_not_needed(
    pre_vote: bool, first: int
) -> None:
    """They refuse their votes, for they have more; and cannot lead themselves (seed 709038)."""
    cluster = _half_heard_change(pre_vote=pre_vote)
    cluster.tick(first, 10)  # so that each of them campaigns first once
    for _ in range(60):
        for replica in (1, 2, 3, 4, 5):
            cluster.tick(replica)
        cluster.settle()
    (leader,) = (one for one in (1, 2, 3, 4, 5) if cluster[one].is_leader)
    assert leader in (3, 4, 5)
    cluster.propose(leader, b"y")
    for one in (3, 4, 5):
        assert cluster[one].conf_state == ConfState(voters=(3, 4, 5))  # type: ignore[arg-type]
        assert cluster.replicas[one].data() == [b"y"]


def test_a_candidate_that_hears_of_a_change_asks_again_when_it_is_applied() -> None:
    cluster = _half_heard_change(pre_vote=True)
    term, commit = cluster[3].term, cluster[3].commit
    cluster[3].campaign()
    cluster.settle()
    assert cluster[3].commit > commit
    assert cluster[3].status().role is Role.FOLLOWER
    assert cluster[3].term == term
    assert cluster[3].conf_state.voters_outgoing == ()
    for one in (4, 5):
        cluster.tick(one, 10)  # long enough to doubt the leader, and not to campaign
    cluster.elect(3)


def test_a_refusal_that_comes_after_the_election_was_lost_is_heard_too() -> None:
    cluster = _half_heard_change(pre_vote=True)
    commit = cluster[1].commit
    cluster.held.add(MessageKind.PRE_VOTE_RESPONSE)
    cluster[3].campaign()
    cluster.settle()
    late = [one for one in cluster.in_flight if one.sender == 1]
    cluster.in_flight.clear()
    cluster[3].step(
        Message(
            kind=MessageKind.HEARTBEAT, to=ReplicaId(3), sender=ReplicaId(1), term=cluster[3].term
        )
    )
    assert cluster[3].status().role is Role.FOLLOWER
    assert cluster[3].commit < commit
    for message in late:
        cluster[3].step(message)
    assert cluster[3].commit == commit


@pytest.mark.parametrize(
    ("index", "log_term"), [(3, 1), (9, 2)], ids=["another entry", "an entry that is not here"]
)
def test_what_a_vote_calls_committed_is_not_believed_of_another_log(
    index: int, log_term: int
) -> None:
    member = a_replica(1, log=(1, 1, 2), commit=1)
    member.node.campaign()
    member.node.step(
        Message(
            kind=MessageKind.VOTE_RESPONSE,
            to=ReplicaId(1),
            sender=ReplicaId(2),
            term=member.node.term,
            index=Index(index),
            log_term=Term(log_term),
            reject=True,
        )
    )
    assert member.node.commit == 1


def test_nobody_campaigns_with_a_committed_change_unapplied() -> None:
    cluster = Cluster(async_storage_writes=True)
    cluster.elect(1)
    cluster[1].propose_conf_change(_change(REMOVE, 3))
    cluster.handle(1)
    for _ in range(4):
        cluster.deliver()
        cluster.handle(1)
        member = cluster.replicas[2]
        cluster.handle_ready(2)
        while member.append_work:
            cluster.handle_append(2)  # written, but what is committed is not applied
    assert cluster[2].commit > cluster[2].applied
    cluster[2].campaign()
    assert cluster[2].term == 1
    while cluster.replicas[2].apply_work:
        cluster.handle_apply(2)
    cluster[2].campaign()
    assert cluster[2].term == 2


def test_removing_a_silent_voter_can_commit_what_waited_for_it() -> None:
    cluster = Cluster(2)
    cluster.elect(1)
    cluster[1].propose_conf_change(_change(REMOVE, 2))
    cluster.handle(1)
    cluster.deliver()
    cluster.handle(2)
    cluster[1].propose([b"x"])
    cluster.isolate(2)
    for message in cluster.in_flight:
        cluster[1].step(message)
    cluster.in_flight.clear()
    cluster.settle()
    assert cluster.replicas[1].data() == [b"x"]
