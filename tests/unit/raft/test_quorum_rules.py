"""Majorities, checked against counting by hand."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from angarium.ids import Index, ReplicaId
from angarium.raft.quorum import UNBOUNDED, VoteResult, committed_index, vote_result

replicas = st.integers(1, 7).map(ReplicaId)
voter_sets = st.frozensets(replicas, max_size=7)
acks = st.dictionaries(replicas, st.integers(0, 9).map(Index))
ballots = st.dictionaries(replicas, st.booleans())


def _has_majority(voters: frozenset[ReplicaId], those: set[ReplicaId]) -> bool:
    return not voters or 2 * len(voters & those) > len(voters)


@settings(max_examples=300)
@given(voter_sets, voter_sets, acks)
def test_the_committed_index_is_the_highest_that_majorities_reached(
    voters: frozenset[ReplicaId], outgoing: frozenset[ReplicaId], acked: dict[ReplicaId, Index]
) -> None:
    index = committed_index(voters, acked, outgoing=outgoing)
    if not voters and not outgoing:
        assert index == UNBOUNDED
        return

    def agreed(candidate: int) -> bool:
        there = {v for v in voters | outgoing if acked.get(v, 0) >= candidate}
        return _has_majority(voters, there) and _has_majority(outgoing, there)

    assert agreed(index)
    assert not agreed(index + 1)


@settings(max_examples=300)
@given(voter_sets, voter_sets, ballots)
def test_an_election_is_won_or_lost_only_when_missing_votes_cannot_change_it(
    voters: frozenset[ReplicaId], outgoing: frozenset[ReplicaId], votes: dict[ReplicaId, bool]
) -> None:
    granted = {v for v, vote in votes.items() if vote}
    possible = granted | {v for v in voters | outgoing if v not in votes}
    result = vote_result(voters, votes, outgoing=outgoing)
    won = _has_majority(voters, granted) and _has_majority(outgoing, granted)
    open_ = _has_majority(voters, possible) and _has_majority(outgoing, possible)
    assert (result is VoteResult.WON) == won
    assert (result is VoteResult.LOST) == (not open_)


@given(voter_sets, voter_sets, ballots, acks)
def test_the_halves_of_a_joint_configuration_are_equals(
    voters: frozenset[ReplicaId],
    outgoing: frozenset[ReplicaId],
    votes: dict[ReplicaId, bool],
    acked: dict[ReplicaId, Index],
) -> None:
    assert vote_result(voters, votes, outgoing=outgoing) is vote_result(
        outgoing, votes, outgoing=voters
    )
    assert committed_index(voters, acked, outgoing=outgoing) == committed_index(
        outgoing, acked, outgoing=voters
    )


@given(st.frozensets(replicas, min_size=1), acks, acks)
def test_two_majorities_always_share_a_voter(
    voters: frozenset[ReplicaId], one: dict[ReplicaId, Index], other: dict[ReplicaId, Index]
) -> None:
    first = {v for v in voters if one.get(v, 0) >= committed_index(voters, one)}
    second = {v for v in voters if other.get(v, 0) >= committed_index(voters, other)}
    assert first & second
