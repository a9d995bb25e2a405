"""Which node is nearest, as one node sees it: its region first, then the shortest way."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angarium.ids import NodeId
    from angarium.machine.catalog import Partition
    from angarium.service.own_node import OwnNode


def is_near(node: OwnNode, other: NodeId) -> bool:
    """Tell whether another node is in the region of this one, or none of them has any."""
    known = node.catalog.member(other)
    return known is None or known.labels.region == node.config.region


def nearest_holder(node: OwnNode, partition: Partition) -> NodeId | None:
    """Return the nearest node that has a replica of a partition and can be reached."""
    held = {*partition.replicas, *partition.readers} - {node.id}
    up = [one for one in held if node.peers.is_up(one)]

    def distance(one: NodeId) -> tuple[bool, float, NodeId]:
        round_trip_ms = node.round_trip_ms(one)
        way = float("inf") if round_trip_ms is None else round_trip_ms
        return not is_near(node, one), way, one

    return min(up, key=distance, default=None)
