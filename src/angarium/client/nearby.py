"""Which nodes are near a client: those of its region that were alive when it last asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

    from angarium.api import ClusterStatus, PartitionInfo
    from angarium.client.region import Region
    from angarium.ids import NodeId


class Nearby:
    """What one client knows about regions."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self._regions: dict[NodeId, str] = {}
        self._alive: frozenset[NodeId] = frozenset()
        self._is_told = False

    def learn(self, status: ClusterStatus) -> None:
        """Take over which node is in which region."""
        self._is_told = True
        self._regions = {node.id: node.region for node in status.nodes}
        self._alive = frozenset(node.id for node in status.nodes if node.alive)

    @property
    def is_known(self) -> bool:
        """Tell whether it is known which nodes are near, if that matters at all."""
        matters = self.region.is_measured or bool(self.region.name)
        return not matters or (self._is_told and self.region.is_settled)

    def is_far(self, node: NodeId | None) -> bool:
        """Tell whether others are nearer; of a client without a region nobody is."""
        return bool(self.region.name) and self.region_of(node) != self.region.name

    def region_of(self, node: NodeId | None) -> str:
        """Return the region of a node; empty if it has none, or is not known."""
        return "" if node is None else self._regions.get(node, "")

    def reading_node(
        self,
        partition: PartitionInfo | None,
        number: int,
        *,
        leader: NodeId | None,
        distrusted: Container[NodeId],
    ) -> NodeId | None:
        """Return who should be read from; None if nobody is known.

        The leader, if it is near or the client has no region; then a near node that has a replica,
        with a vote or to read from; then any near one, which reads for us from the nearest replica
        that it knows; then the leader, wherever it is.
        """
        if not self.region.name or (leader is not None and not self.is_far(leader)):
            return leader
        near = [one for one in self._alive if not self.is_far(one) and one not in distrusted]
        if not near:
            return leader
        held = () if partition is None else (*partition.replicas, *partition.readers)
        # The same one every time, and over all partitions each as often as the others.
        choice = sorted(set(held).intersection(near)) or sorted(near)
        return choice[number % len(choice)]
