"""When enough voters agree.

A decision needs a majority of the voters; while the membership changes through a joint
configuration it needs a majority of the old and a majority of the new ones (Raft paper, section
6). An empty half of a joint configuration agrees with everything, so that one rule serves both.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from angarium.ids import Index, ReplicaId

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

UNBOUNDED: Final = Index(2**63 - 1)
"""What a group without voters would commit: everything. Never the result with a voter in it."""


class VoteResult(Enum):
    """Where an election stands."""

    PENDING = "pending"
    """Neither side has a majority yet."""
    LOST = "lost"
    """A majority can no longer be reached."""
    WON = "won"


def majority_index(indexes: list[Index]) -> Index:
    """Return the highest index that a majority of these voters' `indexes` has reached.

    There is one index per voter; the list is sorted in place.
    """
    indexes.sort()
    # With n values sorted upward, the one at (n-1)//2 has at least a majority at or above it:
    # itself and everyone to its right.
    return indexes[(len(indexes) - 1) // 2]


def committed_index(
    voters: Collection[ReplicaId],
    acked: Mapping[ReplicaId, Index],
    *,
    outgoing: Collection[ReplicaId] = (),
) -> Index:
    """Return the highest index acknowledged by a majority of `voters`, and of `outgoing` if joint.

    A voter missing from `acked` has acknowledged nothing. With no voters at all: `UNBOUNDED`.
    """
    halves = [
        majority_index([acked.get(voter, Index(0)) for voter in half])
        # Both halves must agree. With only one of them two disjoint majorities could decide
        # differently during the change (Raft §6). Planted as joint-change-decided-by-the-new-half.
        for half in (voters, outgoing)
        if half
    ]
    return min(halves, default=UNBOUNDED)


def vote_result(
    voters: Collection[ReplicaId],
    votes: Mapping[ReplicaId, bool],
    *,
    outgoing: Collection[ReplicaId] = (),
) -> VoteResult:
    """Return how an election stands; a joint one is won in both halves or lost in either.

    Votes of replicas that are not voters count nothing. With no voters at all it is won.
    """
    incoming_result = _half_result(voters, votes)
    if not outgoing:
        return incoming_result
    outgoing_result = _half_result(outgoing, votes)
    if incoming_result is outgoing_result:
        return incoming_result
    if VoteResult.LOST in (incoming_result, outgoing_result):
        return VoteResult.LOST
    return VoteResult.PENDING


def _half_result(voters: Collection[ReplicaId], votes: Mapping[ReplicaId, bool]) -> VoteResult:
    granted = missing = 0
    for voter in voters:
        vote = votes.get(voter)
        if vote is None:
            missing += 1
        elif vote:
            granted += 1
    # More than half, so that two majorities share a voter (Raft §5.2).
    needed = len(voters) // 2 + 1 if voters else 0
    if granted >= needed:
        return VoteResult.WON
    if granted + missing >= needed:
        return VoteResult.PENDING
    return VoteResult.LOST
