"""The simulated operator: takes in newcomers, replaces the dead, moves replicas and leadership.

It does by looking what the cluster's catalog will do by rules: whoever should hold a replica and
does not is added as a learner; when it has caught up it becomes a voter in the same joint change
that removes those who should not be there any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import AngariumError
from angarium.ids import ReplicaId, node_of
from angarium.raft import Change, ChangeKind, ConfChange, Transition
from angarium.testing.sim.clock import MILLISECOND

if TYPE_CHECKING:
    from angarium.ids import GroupId, NodeId
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.sim.world import World

ROUND = 100 * MILLISECOND
CAUGHT_UP_ENTRIES = 20
"""A learner this close to the end of the log may vote."""


class Operator:
    """Steers each group's membership towards what it should be."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.changes = 0
        self.wanted: dict[GroupId, set[NodeId]] = {}

    def start(self) -> None:
        """Begin to look after the groups."""
        self.world.scheduler.after(ROUND, self._round)

    def leader(self, group: GroupId) -> PartitionReplica | None:
        """Return the replica that leads `group` with the highest term, if any does."""
        best: PartitionReplica | None = None
        for node in self.world.nodes.values():
            if node.host is None or node.is_paused:
                continue
            replica = node.host.replicas.get(group)
            if replica is None or not replica.may_serve:
                continue
            if best is None or replica.raft.term > best.raft.term:
                best = replica
        return best

    def is_settled(self, group: GroupId) -> bool:
        """Tell whether exactly those vote who should, and nobody merely listens."""
        leader = self.leader(group)
        if leader is None:
            return False
        state = leader.raft.conf_state
        return (
            not state.voters_outgoing
            and not state.learners
            and (set(state.voters) == self._ids(group))
        )

    def transfer(self, group: GroupId, to: NodeId) -> None:
        """Ask the leader of `group` to hand over to the replica on `to`."""
        leader = self.leader(group)
        target = self.world.nodes[to].replica
        if leader is not None and target in leader.raft.conf_state.voters and target != leader.id:
            leader.raft.transfer_leader(target)
            self._drive(leader)

    def _round(self) -> None:
        for group in self.world.groups:
            self._steer(group)
        self.world.scheduler.after(ROUND, self._round)

    def _ids(self, group: GroupId) -> set[ReplicaId]:
        return {self.world.nodes[node].replica for node in self.wanted[group]}

    def _steer(self, group: GroupId) -> None:
        leader = self.leader(group)
        if leader is None:
            return
        state = leader.raft.conf_state
        if state.voters_outgoing:
            return
        change = self._next_change(group, leader)
        if change is None:
            return
        try:
            leader.propose_conf_change(change)
        except AngariumError:
            return
        self.changes += 1
        said = (f"{one.kind.name} node-{node_of(one.replica)}" for one in change.changes)
        self.world.note("operator", f"group {group}:", *said)
        self._drive(leader)

    def _next_change(self, group: GroupId, leader: PartitionReplica) -> ConfChange | None:
        state = leader.raft.conf_state
        wanted = self._ids(group)
        present = {*state.voters, *state.learners}
        newcomers = sorted(wanted - present)
        if newcomers:
            changes = tuple(Change(ChangeKind.ADD_LEARNER, one) for one in newcomers[:1])
            return ConfChange(changes)
        ready = [one for one in state.learners if one in wanted and self._is_ready(leader, one)]
        leaving = sorted(present - wanted)
        if not ready and not leaving:
            return None
        staying = set(state.voters) - set(leaving)
        if leaving and len(staying) + len(ready) < len(wanted):
            # Nobody leaves before whoever takes the place has caught up.
            gone = [one for one in leaving if one in state.learners]
            if not ready and not gone:
                return None
            leaving = gone
        changes = tuple(
            [Change(ChangeKind.ADD_VOTER, one) for one in ready]
            + [Change(ChangeKind.REMOVE, one) for one in leaving]
        )
        return ConfChange(changes, Transition.AUTO)

    @staticmethod
    def _is_ready(leader: PartitionReplica, learner: ReplicaId) -> bool:
        match = leader.raft.match(learner)
        return match is not None and match + CAUGHT_UP_ENTRIES >= leader.raft.last_index

    def _drive(self, leader: PartitionReplica) -> None:
        self.world.nodes[node_of(leader.id)].poke(leader)
