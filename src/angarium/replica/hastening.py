"""Elections that do not wait until a leader's silence shows.

Somebody who should know says that a node is gone, and it does not answer: whoever drives the host
has found that out. The groups that node leads then need not wait for a whole election timeout. Each
of their replicas here stops believing in its leader, so that others can have its vote, and soon
campaigns itself, one after the other.

This changes when a campaign begins, and nothing else. It begins with a pre-vote, which every
replica refuses that hears from its leader, so a node that was given up by mistake goes on leading
as long as a majority hears it; its next heartbeat ends the matter here as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from angarium.ids import node_of

if TYPE_CHECKING:
    from angarium.ids import NodeId, RaftGroupId, Term
    from angarium.replica.replica import Replica


@dataclass(slots=True)
class _Hastened:
    """A group that looks for another leader."""

    replica: Replica
    term: Term
    """When it changes, somebody's election is under way, and has some time."""
    due: int
    """Ticks until this replica campaigns."""
    again: int
    """Ticks from one campaign to the next: the others may hear a moment later that the leader is
    gone, or have split the votes. It differs from replica to replica, so that they do not again."""
    left: int
    """Ticks until it waits like every other group again."""


class Hastening:
    """The groups of one host that look for a leader sooner than they would."""

    def __init__(self, *, election_ticks: int, heartbeat_ticks: int) -> None:
        """Both are far above a round trip: whoever chose them knows the network."""
        self._election_ticks = election_ticks
        self._turn_ticks = heartbeat_ticks
        self._groups: dict[RaftGroupId, _Hastened] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def begin(self, replica: Replica, gone: NodeId) -> bool:
        """Let a replica look for another leader if the one it has is on `gone`; tell whether."""
        raft = replica.raft
        if not raft.leader or node_of(raft.leader) != gone:
            return False
        raft.forget_leader()
        voters = sorted(one for one in raft.conf_state.voters if node_of(one) != gone)
        if raft.id not in voters:
            return False
        # Who goes first differs from group to group: one node should not lead all that are left.
        turn = (voters.index(raft.id) - replica.group) % len(voters)
        wait = self._turn_ticks * turn
        self._groups[replica.group] = _Hastened(
            replica,
            raft.term,
            due=wait,
            again=self._election_ticks // 2 + wait,
            left=2 * self._election_ticks,
        )
        return True

    def tick(self) -> None:
        """Let one tick pass, before it passes for the replicas."""
        for group, one in list(self._groups.items()):
            raft = one.replica.raft
            if raft.leader or not one.left or one.replica.is_closed:
                del self._groups[group]
                continue
            one.left -= 1
            if raft.term != one.term:
                one.term, one.due = raft.term, one.again
            one.due -= 1
            if one.due < 0:
                one.due = one.again
                raft.hasten(1)
