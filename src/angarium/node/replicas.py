"""This node's replicas of partitions, for those that serve from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.replica.roster import ORIGIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.ids import RaftGroupId
    from angarium.node.node import Node
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.replica.witness import WitnessReplica


class Replicas:
    """Finds replicas. Raises `Unreachable` while the node is coming up."""

    def __init__(self, node: Node) -> None:
        self._node = node

    @property
    def here(self) -> Mapping[RaftGroupId, PartitionReplica]:
        """All of them as they are now, whatever state they are in."""
        return self._node.host.replicas

    def witness(self, group: RaftGroupId) -> WitnessReplica | None:
        """Return this node's witness of `group`, which serves nobody."""
        return self._node.host.witnesses.get(group)

    def get(self, group: RaftGroupId) -> PartitionReplica | None:
        """Return the replica of `group`, whatever state it is in."""
        return self._node.host.replicas.get(group)

    def is_mending(self, group: RaftGroupId) -> bool:
        """Tell whether the log of `group` is being repaired from other nodes."""
        return group in self._node.host.repairs

    def leading(self, group: RaftGroupId) -> PartitionReplica | None:
        """Return the replica of `group` if it leads and may serve."""
        replica = self._node.host.replicas.get(group)
        return replica if replica is not None and replica.may_serve else None

    def full(self, group: RaftGroupId) -> PartitionReplica | None:
        """Return the replica of `group` if it can stand for it.

        One that is empty, joins or lags behind answers nobody: what it lacks would look like
        nothing.
        """
        replica = self._node.host.replicas.get(group)
        return None if replica is None or replica.shortfall() else replica

    def has_begun(self, group: RaftGroupId) -> bool:
        """Tell whether the replica of `group` has applied an entry.

        The first one that a partition commits is its leader's own, and from then on that serves.
        """
        replica = self._node.host.replicas.get(group)
        return replica is not None and replica.applied > ORIGIN
