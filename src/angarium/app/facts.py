"""What a node knows of itself, for whoever watches it through the HTTP door."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.ids import CATALOG_GROUP
from angarium.telemetry.exposition import Family, Sample, counter, gauge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.node.node import Node
    from angarium.telemetry.meters import Meters


class NodeFacts:
    """Facts of a running node."""

    def __init__(self, node: Node, meters: Meters) -> None:
        self.meters = meters
        self._node = node

    def is_ready(self) -> str:
        """Return why nothing should be sent here; empty if it may.

        Whether the catalog has a leader at the moment is no part of it: a node serves records
        without one, and would otherwise be taken out just while the cluster elects.
        """
        node = self._node
        if node.failure is not None:
            return "failed"
        try:
            members = node.catalog.machine.nodes.by_id
        except AssertionError:
            return "starting"
        return "" if node.id in members else "not a member yet"

    def families(self) -> Iterable[Family]:
        """Return metrics of the node."""
        node = self._node
        machine = node.catalog.machine
        release = node.config.release.software
        yield Family(
            "angarium_build_info", "gauge", "The release.", (Sample(1, (("version", release),)),)
        )
        led = sum(1 for one in node.host.replicas.values() if one.may_serve)
        held = len(node.host.replicas)
        yield Family(
            "angarium_partitions",
            "gauge",
            "Partitions that this node has a replica of, by its part in them.",
            (Sample(led, (("role", "leader"),)), Sample(held - led, (("role", "follower"),))),
        )
        yield gauge("angarium_topics", "Topics of the cluster.", len(machine.topics.by_id))
        members = machine.nodes.by_id
        alive = sum(1 for one in members if one == node.id or node.peers.is_up(one))
        yield Family(
            "angarium_nodes",
            "gauge",
            "Nodes of the cluster, by whether this one hears from them.",
            (
                Sample(alive, (("state", "alive"),)),
                Sample(len(members) - alive, (("state", "silent"),)),
            ),
        )
        is_leader = node.leader_of(CATALOG_GROUP) == node.id
        yield gauge("angarium_catalog_leader", "1 on the node that leads the catalog.", is_leader)
        yield counter("angarium_catalog_entries_total", "Catalog entries.", node.catalog.applied)
        yield gauge(
            "angarium_event_loop_lag_seconds",
            "How late 999 of 1000 ticks were at the most.",
            node.lag.quantile(0.999),
        )
