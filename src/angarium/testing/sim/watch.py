"""What the world notices by itself while the cluster runs, without asking any client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.replica.scrutiny import TERM_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.ids import Index, RaftGroupId, ReplicaId, Term
    from angarium.raft.messages import Entry
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.history import History


class Watch:
    """Compares nodes with each other: one leader per term, one entry and state per index (C9)."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._leaders: dict[tuple[RaftGroupId, Term], ReplicaId] = {}
        self.on_applied: Callable[[PartitionReplica], None] | None = None
        """Told of every entry that a replica has applied."""
        self._applied: dict[tuple[RaftGroupId, Index], tuple[Term, int, str]] = {}

    def follow(self, name: str, replica: PartitionReplica) -> None:
        """Look at everything that `replica`, on the node called `name`, applies from now on."""
        partition, group = replica.partition, replica.group
        apply, applied = partition.apply, self._applied

        def watched(entry: Entry) -> None:
            apply(entry)
            fact = (entry.term, partition.machine.running_hash, name)
            before = applied.setdefault((group, entry.index), fact)
            if before[:2] != fact[:2]:
                self._incident(f"group {group} index {entry.index}: {name} and {before[2]} differ")
            if self.on_applied is not None:
                self.on_applied(replica)

        partition.apply = watched  # type: ignore[method-assign]

    def look(self, replica: PartitionReplica) -> None:
        """Note where `replica` ends, whether it believes to lead, and whether others do as well."""
        raft = replica.raft
        self._history.ends[replica.group].add(replica.end_offset)
        if raft.term > TERM_MAX:
            self._incident(f"group {replica.group}: {raft.id} is in term {raft.term}, for ever")
        if raft.is_leader:
            leader = self._leaders.setdefault((replica.group, raft.term), raft.id)
            if leader != raft.id:
                self._incident(
                    f"group {replica.group} term {raft.term}: {leader} and {raft.id} both lead"
                )

    def _incident(self, sentence: str) -> None:
        if sentence not in self._history.incidents:
            self._history.incidents.append(sentence)
