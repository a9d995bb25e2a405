"""What the world notices by itself while the cluster runs, without asking any client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.replica.scrutiny import TERM_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from angarium.ids import Index, RaftGroupId, ReplicaId, Term
    from angarium.raft.messages import Entry
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.replica.replica import Replica
    from angarium.replica.witness import WitnessReplica
    from angarium.testing.history import History


class Watch:
    """Compares nodes with each other: one leader per term, one entry and state per index (C9)."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._leaders: dict[tuple[RaftGroupId, Term], ReplicaId] = {}
        self.on_applied: Callable[[PartitionReplica], None] | None = None
        """Told of every entry that a replica has applied."""
        self._applied: dict[tuple[RaftGroupId, Index], tuple[Term, int, str]] = {}
        self._void: set[ReplicaId] = set()
        """Who is not compared with anybody any more: its group went on without it."""

    def follow(self, name: str, replica: PartitionReplica) -> None:
        """Look at everything that `replica`, on the node called `name`, applies from now on."""
        partition, group = replica.partition, replica.group
        apply, applied = partition.apply, self._applied

        def watched(entry: Entry) -> None:
            apply(entry)
            if replica.id in self._void:
                return
            fact = (entry.term, partition.machine.running_hash, name)
            before = applied.setdefault((group, entry.index), fact)
            if before[:2] != fact[:2]:
                self._incident(f"group {group} index {entry.index}: {name} and {before[2]} differ")
            if self.on_applied is not None:
                self.on_applied(replica)

        partition.apply = watched  # type: ignore[method-assign]

    def look(self, replica: PartitionReplica) -> None:
        """Note where `replica` ends, whether it believes to lead, and whether others do as well."""
        self._history.ends[replica.group].add(replica.end_offset)
        self.look_at_leader(replica)

    def look_at_witness(
        self, witness: WitnessReplica, leader: PartitionReplica, ends: Mapping[ReplicaId, Index]
    ) -> None:
        """Note whether a full voter lacks what a witness has forgotten; `ends`: of their logs."""
        base = witness.storage.first_index() - 1
        voters = leader.raft.conf_state.voters
        if witness.id not in voters or leader.raft.term < witness.raft.term:
            return
        for one in voters:
            if ends.get(one, base) < base:
                self._incident(
                    f"group {leader.group}: {witness.id} has forgotten entries up to {base}, "
                    f"and {one} has none behind {ends[one]}"
                )

    def look_at_leader(self, replica: Replica) -> None:
        """Note whether a replica believes to lead, and whether others do as well."""
        raft = replica.raft
        if raft.term > TERM_MAX:
            self._incident(f"group {replica.group}: {raft.id} is in term {raft.term}, for ever")
        if raft.is_leader and raft.id not in self._void:
            leader = self._leaders.setdefault((replica.group, raft.term), raft.id)
            if leader != raft.id:
                self._incident(
                    f"group {replica.group} term {raft.term}: {leader} and {raft.id} both lead"
                )

    def forgive(self, group: RaftGroupId, last: Index, void: Iterable[ReplicaId]) -> None:
        """Forget what a lost majority did: its group goes on behind the entry at `last`."""
        self._void.update(void)
        for key in [one for one in self._applied if one[0] == group and one[1] > last]:
            del self._applied[key]
        for tenure in [one for one in self._leaders if one[0] == group]:
            del self._leaders[tenure]

    def _incident(self, sentence: str) -> None:
        if sentence not in self._history.incidents:
            self._history.incidents.append(sentence)
