"""The next step from one membership to another."""

from __future__ import annotations

from angarium.ids import Incarnation, Index, NodeId, ReplicaId, replica_id, witness_id
from angarium.machine.catalog import Labels
from angarium.machine.catalog.values import Node
from angarium.node.steering import electors, next_change
from angarium.raft import Change, ChangeKind, ConfChange
from angarium.raft.messages import ConfState

A, B, C, D = (ReplicaId(number) for number in (1, 2, 3, 4))


def step(
    state: ConfState,
    *,
    voters: set[ReplicaId],
    learners: frozenset[ReplicaId] = frozenset(),
    match: dict[ReplicaId, int] | None = None,
    away: ReplicaId | None = None,
) -> ConfChange | None:
    matches = match or {}
    return next_change(
        state,
        voters=voters,
        learners=learners,
        settled_index=Index(990),
        match=lambda replica: Index(matches[replica]) if replica in matches else None,
        is_here=lambda replica: replica != away,
    )


def test_nothing_is_proposed_when_everybody_is_in_place() -> None:
    assert step(ConfState(voters=(A, B, C)), voters={A, B, C}) is None


def test_a_newcomer_listens_first() -> None:
    change = step(ConfState(voters=(A, B, C)), voters={A, B, D})
    assert change == ConfChange((Change(ChangeKind.ADD_LEARNER, D),))


def test_nobody_leaves_before_the_newcomer_has_caught_up() -> None:
    state = ConfState(voters=(A, B, C), learners=(D,))
    assert step(state, voters={A, B, D}, match={D: 10}) is None


def test_a_newcomer_takes_its_place_in_the_change_in_which_the_other_leaves() -> None:
    state = ConfState(voters=(A, B, C), learners=(D,))
    change = step(state, voters={A, B, D}, match={D: 990})
    assert change == ConfChange(
        (Change(ChangeKind.ADD_VOTER, D), Change(ChangeKind.REMOVE, C)),
    )


def test_a_learner_that_nobody_wants_may_leave_at_any_time() -> None:
    state = ConfState(voters=(A, B), learners=(C, D))
    change = step(state, voters={A, B, D}, match={D: 1})
    assert change == ConfChange((Change(ChangeKind.REMOVE, C),))


def test_a_voter_that_should_only_listen_is_demoted() -> None:
    change = step(ConfState(voters=(A, B, C)), voters={A}, learners=frozenset({B, C}))
    assert change == ConfChange(
        (Change(ChangeKind.ADD_LEARNER, B), Change(ChangeKind.ADD_LEARNER, C)),
    )


def test_a_joint_change_under_way_is_left_alone() -> None:
    state = ConfState(voters=(A, B, D), voters_outgoing=(A, B, C), auto_leave=True)
    assert step(state, voters={A, B, C}) is None


def test_a_witness_makes_room_where_its_node_is_to_have_records() -> None:
    """Two nodes change places: neither could begin as long as it has a vote of the other kind."""
    one, two, three = (replica_id(NodeId(it), Incarnation(1)) for it in (1, 2, 3))
    before, after = witness_id(three), witness_id(two)
    wanted = {one, three, after}
    state = ConfState(voters=(one, two, before), learners=(three, after))
    # Without it both of the others are needed.
    assert step(state, voters=wanted, match={one: 990, two: 10}) is None
    there = {one: 990, two: 990}
    assert step(state, voters=wanted, match=there, away=two) is None
    change = step(state, voters=wanted, match=there)
    assert change == ConfChange((Change(ChangeKind.REMOVE, before),))
    state = ConfState(voters=(one, two), learners=(three, after))
    assert step(state, voters=wanted, match=there) is None
    assert step(state, voters=wanted, match=there | {three: 990}) == ConfChange(
        (Change(ChangeKind.ADD_VOTER, three), Change(ChangeKind.REMOVE, two)),
    )


def test_a_witness_takes_another_ones_place_while_a_full_replica_is_missing() -> None:
    """Seed 860923: two of them voted, and a majority of the four needed one that was behind."""
    one, two, three = (replica_id(NodeId(it), Incarnation(1)) for it in (1, 2, 3))
    before, after = (witness_id(replica_id(NodeId(it), Incarnation(1))) for it in (4, 5))
    state = ConfState(voters=(one, two, before), learners=(three, after))
    match = {one: 990, two: 990, three: 10, after: 990}
    assert step(state, voters={one, three, after}, match=match) == ConfChange(
        (Change(ChangeKind.ADD_VOTER, after), Change(ChangeKind.REMOVE, before)),
    )


def test_a_witness_stays_until_the_full_replica_has_caught_up_that_stands_in_for_it() -> None:
    """One of two full replicas is away: without the witness nothing could be committed."""
    one, two, three, four = (replica_id(NodeId(it), Incarnation(1)) for it in (1, 2, 3, 4))
    state = ConfState(voters=(one, two, witness_id(three)), learners=(four,))
    match = {one: 990, two: 10, four: 10}
    assert step(state, voters={one, two, four}, match=match) is None
    assert step(state, voters={one, four}, match=match) is None
    change = step(state, voters={one, four}, match=match | {four: 990})
    assert change is not None
    assert {it.kind for it in change.changes} == {ChangeKind.ADD_VOTER, ChangeKind.REMOVE}
    assert len(change.changes) == 3


def member(number: int, host: str = "", *, draining: bool = False) -> Node:
    return Node(
        id=NodeId(number),
        incarnation=Incarnation(number),
        addresses=(),
        labels=Labels(host=host),
        level_min=1,
        level_max=1,
        draining=draining,
    )


def test_the_first_to_vote_on_the_catalog_are_of_different_hosts() -> None:
    nodes = [member(number, host) for number, host in enumerate("aabbcc", 1)]
    assert [one.id for one in electors(nodes)] == [1, 3, 5, 2, 4, 6]


def test_without_host_labels_the_oldest_nodes_vote_and_draining_ones_last() -> None:
    nodes = [member(4), member(2), member(1, draining=True), member(3)]
    assert [one.id for one in electors(nodes)] == [2, 3, 4, 1]


def test_a_draining_node_does_not_hold_its_sibling_back() -> None:
    nodes = [member(1, "a", draining=True), member(2, "a"), member(3, "b"), member(4, "b")]
    assert [one.id for one in electors(nodes)] == [2, 3, 4, 1]
