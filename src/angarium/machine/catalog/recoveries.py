"""Partitions that went on with one replica, after a majority of the others was lost for good.

Which of the former replicas are void is here for as long as the partition exists. A node that comes
back as one of them hears so before it serves anything, and gets the incarnation that was drawn for
it: whatever it has of the partition it gives up, and it is a newcomer. So the lost majority can
never outvote the replica that the partition went on with, however many of it return.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import InvalidArgument, NotFound, PreconditionFailed
from angarium.ids import Incarnation, Micros, NodeId, RaftGroupId, ReplicaId
from angarium.machine.outcomes import Done, Refused, limited, refused

if TYPE_CHECKING:
    from angarium.machine.catalog.commands import PartitionRecover
    from angarium.machine.catalog.nodes import Nodes
    from angarium.machine.catalog.topics import Topics

RECOVERY_LEVEL: Final = 6
"""The feature level from which on the catalog knows of it."""

VOID_MAX: Final = 100
"""Replicas of one partition that are void. At the limit it cannot be recovered once more."""


class Recovery(msgspec.Struct, frozen=True, array_like=True):
    """How a partition went on."""

    group: RaftGroupId
    source: NodeId
    """Whose replica it went on with, the last time."""
    void: tuple[ReplicaId, ...]
    """Who must not vote any more, nor ever again."""
    fresh: tuple[tuple[NodeId, Incarnation], ...]
    """As whom their nodes go on."""
    times: int
    """How often this was done."""
    recovered_at: Micros

    def fresh_on(self, node: NodeId) -> Incarnation | None:
        """Return as whom a node goes on, if it was one of the replicas."""
        return dict(self.fresh).get(node)


class Recoveries:
    """All of them, by partition."""

    __slots__ = ("by_group",)

    def __init__(self) -> None:
        self.by_group: dict[RaftGroupId, Recovery] = {}

    def recover(self, command: PartitionRecover, nodes: Nodes, topics: Topics) -> Done | Refused:
        """Let a partition go on with one replica, and nobody who voted with it before."""
        fault = self._fault(command, nodes, topics)
        if fault is not None:
            return fault
        known = self.by_group.get(command.group)
        void = dict.fromkeys((*(known.void if known is not None else ()), *command.void))
        if len(void) > VOID_MAX:
            return limited("VOID_MAX", f"{len(void)} replicas of one partition would be void")
        row = Recovery(
            group=command.group,
            source=command.source,
            void=tuple(void),
            fresh=_joined(known, command),
            times=command.times + 1,
            recovered_at=command.time,
        )
        self.by_group[command.group] = row
        for node in list(nodes.by_id):
            self.enforce(nodes, node)
        topics.go_on_with(command.group, command.source, command.gone, nodes)
        return Done()

    def _fault(self, command: PartitionRecover, nodes: Nodes, topics: Topics) -> Refused | None:
        known = self.by_group.get(command.group)
        source = nodes.by_id.get(command.source)
        if command.group not in topics.partitions:
            return refused(NotFound, f"there is no partition {command.group}")
        if source is None:
            return refused(NotFound, f"there is no node {command.source}")
        if command.times != (0 if known is None else known.times):
            return refused(PreconditionFailed, f"{command.group} was recovered meanwhile")
        if source.replica_in(command.group) not in command.void:
            return refused(PreconditionFailed, f"node {command.source} is another replica by now")
        if command.source not in dict(command.fresh):
            return refused(InvalidArgument, "nothing says as whom the surviving replica goes on")
        return None

    def enforce(self, nodes: Nodes, node: NodeId) -> None:
        """Let a node be nobody that is void, whatever it says of itself."""
        one = nodes.by_id.get(node)
        if one is None:
            return
        for recovery in self.by_group.values():
            fresh = recovery.fresh_on(node)
            if fresh is not None and one.replica_in(recovery.group) in recovery.void:
                renewed = {**dict(one.renewed), recovery.group: fresh}
                one = msgspec.structs.replace(one, renewed=tuple(sorted(renewed.items())))
        nodes.by_id[node] = one

    def forget(self, topics: Topics) -> None:
        """Forget partitions that are gone."""
        for group in [one for one in self.by_group if one not in topics.partitions]:
            del self.by_group[group]


def _joined(
    known: Recovery | None, command: PartitionRecover
) -> tuple[tuple[NodeId, Incarnation], ...]:
    before = () if known is None else known.fresh
    return tuple({**dict(before), **dict(command.fresh)}.items())
