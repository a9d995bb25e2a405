"""The group as its members see it: who is in it, how far each one is, who voted for us.

Everything here is iterated in the order of ids, so that the same inputs always produce the same
messages in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.ids import Index, ReplicaId, is_witness
from angarium.raft.membership import Membership
from angarium.raft.progress import Progress, Window
from angarium.raft.quorum import (
    UNBOUNDED,
    VoteResult,
    committed_index,
    majority_index,
    vote_result,
)

if TYPE_CHECKING:
    from angarium.raft.messages import ConfState


class Tracker:
    """The active membership with one `Progress` per member."""

    __slots__ = (
        "_incoming",
        "_inflight_bytes_max",
        "_inflight_messages_max",
        "_outgoing",
        "conf_state",
        "has_witness",
        "membership",
        "progress",
        "voters",
        "votes",
    )

    def __init__(self, *, inflight_messages_max: int, inflight_bytes_max: int) -> None:
        self._inflight_messages_max = inflight_messages_max
        self._inflight_bytes_max = inflight_bytes_max
        self.progress: dict[ReplicaId, Progress] = {}
        """By ascending id."""
        self.votes: dict[ReplicaId, bool] = {}
        self._take(Membership())

    def adopt(self, membership: Membership, *, last_index: Index) -> None:
        """Switch to `membership`; newcomers are probed from the leader's `last_index` on."""
        progress = {}
        for replica in sorted(membership.members):
            known = self.progress.get(replica)
            if known is None or replica in membership.renewed:
                known = Progress(next_index=max(last_index, Index(1)), window=self._window())
                # A newcomer had no chance to say anything yet; counting it as silent could make
                # the leader step down at the next check of the quorum.
                known.recently_active = True
            # Progress of members that stay is kept: what they have acknowledged does not depend on
            # who else votes.
            known.is_learner = replica in membership.learners
            progress[replica] = known
        self.progress = progress
        self._take(membership)

    def reset_progress(self, *, last_index: Index, own_id: ReplicaId) -> None:
        """Forget what was known about everybody's log but our own."""
        for replica, old in self.progress.items():
            fresh = Progress(
                next_index=Index(last_index + 1), window=self._window(), is_learner=old.is_learner
            )
            if replica == own_id:
                fresh.match = last_index
            self.progress[replica] = fresh

    def committed(self) -> Index:
        """Return the highest index that the voters have acknowledged, in both halves if joint."""
        progress = self.progress
        if not self._incoming:
            return UNBOUNDED
        # Voters only. What learners have counts for nothing (thesis §4.2.1): a majority of voters
        # could fail and take with it what only learners had. Planted as learner-counted-as-voter.
        index = majority_index([progress[voter].match for voter in self._incoming])
        if self._outgoing:
            index = min(index, majority_index([progress[v].match for v in self._outgoing]))
        return index

    def agreed(self, numbers: dict[ReplicaId, Index]) -> Index:
        """Return the highest of these `numbers` that enough voters have reached."""
        return committed_index(self._incoming, numbers, outgoing=self._outgoing)

    def quorum_is_active(self) -> bool:
        """Tell whether enough voters were heard of since they were last marked silent."""
        active = {v: self.progress[v].recently_active for v in self.voters}
        return self.result_of(active) is VoteResult.WON

    def result_of(self, votes: dict[ReplicaId, bool]) -> VoteResult:
        """Return how a decision with these `votes` stands."""
        return vote_result(self._incoming, votes, outgoing=self._outgoing)

    def record_vote(self, voter: ReplicaId, *, granted: bool) -> VoteResult:
        """Count a vote, the first of each voter only, and return how the election stands."""
        # A repeated message must not change a vote that was counted.
        self.votes.setdefault(voter, granted)
        return self.result_of(self.votes)

    @property
    def is_singleton(self) -> bool:
        """Whether a single voter decides alone."""
        return len(self._incoming) == 1 and not self._outgoing

    def _take(self, membership: Membership) -> None:
        self.membership = membership
        self.conf_state: ConfState = membership.conf_state
        self._incoming = self.conf_state.voters
        self._outgoing = self.conf_state.voters_outgoing
        self.voters: tuple[ReplicaId, ...] = tuple(sorted(membership.voters | membership.outgoing))
        self.has_witness = any(map(is_witness, membership.members))

    def _window(self) -> Window:
        return Window(messages_max=self._inflight_messages_max, bytes_max=self._inflight_bytes_max)
