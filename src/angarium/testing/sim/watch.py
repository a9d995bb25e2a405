"""What the world notices by itself while the cluster runs, without asking any client."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angarium.ids import GroupId, Index, ReplicaId, Term
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.history import History
    from angarium.testing.sim.node import SimNode


class Watch:
    """Compares nodes with each other: one leader per term, one state per index (C9)."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._leaders: dict[tuple[GroupId, Term], ReplicaId] = {}
        self._hashes: dict[tuple[GroupId, Index], tuple[int, str]] = {}

    def look(self, node: SimNode, group: GroupId, replica: PartitionReplica) -> None:
        """Note what `replica` believes, and whether it contradicts anybody."""
        raft = replica.raft
        if raft.is_leader:
            leader = self._leaders.setdefault((group, raft.term), raft.id)
            if leader != raft.id:
                self._incident(f"group {group} term {raft.term}: {leader} and {raft.id} both lead")
        digest = replica.partition.machine.running_hash
        before = self._hashes.setdefault((group, replica.applied), (digest, node.name))
        if before[0] != digest:
            self._incident(
                f"group {group} index {replica.applied}: {node.name} and {before[1]} differ"
            )

    def _incident(self, sentence: str) -> None:
        if sentence not in self._history.incidents:
            self._history.incidents.append(sentence)
