"""The simulated operator: takes in newcomers, replaces the dead, moves replicas and leadership.

It stands where the catalog and the nodes' placement stand in a cluster, and decides as they do, by
the same code (`node.steering`, `node.losses`): which groups need a look, what to propose next, who
counts as full, and whether a node may come back without its data now.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

from angarium.errors import AngariumError
from angarium.ids import NodeId, node_of, replica_id, witness_id
from angarium.node.losses import Copies, objection
from angarium.node.steering import in_sync, lacks_little, needs_steering, next_change
from angarium.testing.sim.clock import MILLISECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.ids import Incarnation, RaftGroupId, ReplicaId
    from angarium.machine.catalog import Recovery
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.replica.witness import WitnessReplica
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.world import World

ROUND = 100 * MILLISECOND
ASK_AGAIN = 200 * MILLISECOND
"""How long a node that was not let in waits before it asks again."""


class Operator:
    """Steers each group's membership towards what it should be."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.changes = 0
        self.wanted: dict[RaftGroupId, set[NodeId]] = {}
        self.readers: dict[RaftGroupId, set[NodeId]] = defaultdict(set)
        """Who should listen in each group, besides those who vote."""
        self.witness: dict[RaftGroupId, NodeId] = {}
        """Who should be the witness of each group, if it has one."""
        self.registered: dict[NodeId, tuple[Incarnation, dict[RaftGroupId, Incarnation]]] = {}
        """Who each node is, as the catalog would say: by the disk with which it was let in, and in
        groups whose replica it lost to damage as whom it came back."""
        self.recoveries: dict[RaftGroupId, Recovery] = {}
        """Groups that went on with one replica."""

        self.is_member: Callable[[SimNode], bool] = lambda _: True
        """Tells whether a node is one of this cluster, where there is another one."""

    def start(self) -> None:
        """Begin to look after the groups."""
        for node in self.world.nodes.values():
            self._register(node)
        self.world.scheduler.after(ROUND, self._round)

    def leader(self, group: RaftGroupId) -> PartitionReplica | None:
        """Return the replica that leads `group` with the highest term, if any does."""
        best: PartitionReplica | None = None
        for node in self.world.nodes.values():
            if node.host is None or node.is_paused or not self.is_member(node):
                continue
            replica = node.host.replicas.get(group)
            if replica is None or not replica.may_serve:
                continue
            if best is None or replica.raft.term > best.raft.term:
                best = replica
        return best

    def is_settled(self, group: RaftGroupId) -> bool:
        """Tell whether exactly those vote who should, and exactly the readers listen."""
        leader = self.leader(group)
        if leader is None or not all(self._is_let_in(node) for node in self.votes(group)):
            return False
        state = leader.raft.conf_state
        return (
            not state.voters_outgoing
            and set(state.learners) == self._reader_ids(group)
            and (set(state.voters) == self._ids(group))
        )

    def is_settled_as(self, group: RaftGroupId, nodes: set[NodeId]) -> bool:
        """Tell whether exactly the replicas on `nodes` vote, as their leader says."""
        leader = self.leader(group)
        if leader is None:
            return False
        state = leader.raft.conf_state
        voters = {self._id(node, group) for node in nodes}
        return not state.voters_outgoing and set(state.voters) == voters

    def votes(self, group: RaftGroupId) -> set[NodeId]:
        """Return everybody who should vote, the witness included."""
        witness = self.witness.get(group)
        return self.wanted[group] | (set() if witness is None else {witness})

    def witness_of(self, group: RaftGroupId) -> WitnessReplica | None:
        """Return the witness of `group`, if its machine is up and has it."""
        node = self.witness.get(group)
        host = None if node is None else self.world.nodes[node].host
        return None if host is None else host.witnesses.get(group)

    def holders(self, group: RaftGroupId) -> set[NodeId]:
        """Return the nodes that should hold what `group` holds, voting or not."""
        return self.wanted[group] | self.readers[group]

    def full_replicas(self, group: RaftGroupId, leader: PartitionReplica) -> tuple[NodeId, ...]:
        """Return whose replicas a leader vouches for."""
        return self._in_sync(group, leader)

    def transfer(self, group: RaftGroupId, to: NodeId) -> None:
        """Ask the leader of `group` to hand over to the replica on `to`."""
        leader = self.leader(group)
        target = self.world.nodes[to].replica_in(group)
        if leader is not None and target in leader.raft.conf_state.voters and target != leader.id:
            leader.raft.transfer_leader(target)
            self._drive(leader)

    def could_be_handed(self, group: RaftGroupId, leader: PartitionReplica, to: NodeId) -> bool:
        """Tell whether a leader may hand `group` over to the replica on `to` now."""
        replica = self._id(to, group)
        return self._is_here(group, replica) and lacks_little(leader, replica)

    # --- who comes in, and what may be given up ---------------------------------------------

    def let_in(self, node: SimNode) -> None:
        """Let a node be what it is now, if it came without its data: now, or as soon as it may."""
        if not self.is_member(node):
            return
        if self._is_let_in(node.id):
            self._register(node)
            return
        reason = self.objection_to_losing(node.id)
        if reason is None:
            self._register(node)
            return
        self.world.note("operator", f"does not let node-{node.id} in:", reason)
        self.world.scheduler.after(ASK_AGAIN, self._ask_again, node, node.life)

    def _ask_again(self, node: SimNode, life: int) -> None:
        if node.life == life:
            self.let_in(node)

    def objection_to_losing(self, node: NodeId) -> str | None:
        """Say why the disk of `node` may not be given up, or be new, now."""
        return objection(self._copies_on(node), without=node)

    def is_ready(self, node: SimNode) -> bool:
        """Tell whether a node says that it has what it should have, as `/readyz` would."""
        if node.host is None or not self._is_let_in(node.id):
            return False
        for group in self.world.groups:
            replica = node.host.replicas.get(group)
            if node.id in self.wanted[group] and (replica is None or replica.unready()):
                return False
            if node.id == self.witness.get(group):
                witness = node.host.witnesses.get(group)
                if witness is None or witness.id not in witness.raft.conf_state.voters:
                    return False
        return True

    def _is_let_in(self, node: NodeId) -> bool:
        return self.registered[node][0] == self.world.nodes[node].incarnation

    def _register(self, node: SimNode) -> None:
        renewed = dict(node.renewed)
        for group, recovery in self.recoveries.items():
            fresh = recovery.fresh_on(node.id)
            if fresh is not None and node.replica_in(group) in recovery.void:
                renewed[group] = fresh
        self.registered[node.id] = node.incarnation, renewed

    def may_renew(self, group: RaftGroupId, node: SimNode) -> bool:
        """Tell whether a machine may throw away what damage has left of its replica of a group.

        Its leader has to vouch that a majority of those who should vote have everything.
        """
        leader = self.leader(group)
        if leader is None or not self._is_let_in(node.id):
            return False
        others = set(self._in_sync(group, leader)) - {node.id}
        return len(others) > len(self.votes(group)) // 2

    def _copies_on(self, node: NodeId) -> list[Copies]:
        copies = []
        for group in self.world.groups:
            if node in self.votes(group):
                leader = self.leader(group)
                full = () if leader is None else self._in_sync(group, leader)
                replicas = tuple(sorted(self.wanted[group]))
                copies.append(
                    Copies(f"group {group}", replicas, frozenset(full), group in self.witness)
                )
        return copies

    def _in_sync(self, group: RaftGroupId, leader: PartitionReplica) -> tuple[NodeId, ...]:
        is_here = partial(self._is_here, group)
        wanted = self._ids(group) | {self._id(one, group) for one in self.world.witness_ids}
        return in_sync(leader, is_wanted=wanted.__contains__, is_here=is_here)

    def _is_here(self, group: RaftGroupId, replica: ReplicaId) -> bool:
        node = self.world.node_of(replica)
        is_up = node.is_up and not node.is_paused and self.is_member(node)
        return is_up and node.replica_in(group) == replica

    # --- membership -------------------------------------------------------------------------

    def _round(self) -> None:
        for group in self.world.groups:
            self._steer(group)
        self.world.scheduler.after(ROUND, self._round)

    def _ids(self, group: RaftGroupId) -> set[ReplicaId]:
        return {self._id(node, group) for node in self.votes(group)}

    def _reader_ids(self, group: RaftGroupId) -> set[ReplicaId]:
        return {self._id(node, group) for node in self.readers[group]}

    def _id(self, node: NodeId, group: RaftGroupId) -> ReplicaId:
        incarnation, renewed = self.registered[node]
        full = replica_id(node, renewed.get(group, incarnation))
        return witness_id(full) if node in self.world.witness_ids else full

    def _steer(self, group: RaftGroupId) -> None:
        leader = self.leader(group)
        if leader is None:
            return
        state, voters = leader.raft.conf_state, self._ids(group)
        learners = self._reader_ids(group)
        if not needs_steering(
            state, voters=voters, learners=learners, is_resting=leader.is_resting
        ):
            return
        change = next_change(
            state,
            voters=voters,
            learners=learners,
            settled_index=max(leader.settled_index, leader.raft.forgotten_index),
            match=leader.raft.match,
            is_here=partial(self._is_here, group),
        )
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

    def _drive(self, leader: PartitionReplica) -> None:
        self.world.nodes[node_of(leader.id)].poke(leader)
