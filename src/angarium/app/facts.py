"""What a node knows of itself, for those who watch it through the HTTP door."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.ids import CATALOG_GROUP
from angarium.node.lacking import lacks
from angarium.replica.scrutiny import Objection
from angarium.telemetry.exposition import Family, Sample, counter, gauge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from angarium.node.node import Node
    from angarium.security.tls import TlsWatch
    from angarium.telemetry.meters import Meters


class NodeFacts:
    """Facts of a running node."""

    def __init__(self, node: Node, meters: Meters, *, tls: TlsWatch | None = None) -> None:
        self.meters = meters
        self._tls = tls
        self._node = node
        self.doors: list[Callable[[], Iterable[Family]]] = []
        """What other doors than the one that shows the metrics count."""

    def unready(self) -> tuple[str, ...]:
        """Return why nothing should be sent here; nothing if it may."""
        return self._node.readiness.reasons()

    def families(self) -> Iterable[Family]:
        """Return metrics of the node."""
        for door in self.doors:
            yield from door()
        node = self._node
        release = node.config.release.software
        yield Family(
            "angarium_build_info", "gauge", "The release.", (Sample(1, (("version", release),)),)
        )
        if self._tls is not None:
            yield from self._tls.families()
        if node.config.discovery is not None:
            yield from node.lookout.families()
            yield from node.rumours.families()
        is_ready = not self.unready()
        yield gauge("angarium_ready", "1 while nothing speaks against the node.", is_ready)
        yield Family(
            "angarium_damage_total",
            "counter",
            "Damage to stored data, by outcome.",
            tuple(
                Sample(count, (("fate", fate.value),))
                for fate, count in node.host.outbox.damage.counts.items()
            ),
        )
        lost = len(node.host.lost) + len(node.host.repairs)
        here = node.replicas.here.values()
        mending = sum(1 for one in here if one.is_mending)
        yield gauge("angarium_damaged_replicas", "Replicas damaged here now.", lost + mending)
        led, held = sum(1 for one in here if one.may_serve), len(here)
        yield Family(
            "angarium_partitions",
            "gauge",
            "Partitions that this node has a replica of, by role.",
            (Sample(led, (("role", "leader"),)), Sample(held - led, (("role", "follower"),))),
        )
        yield gauge(
            "angarium_replicas_lacking",
            "Replicas on this node that do not have all records they should have.",
            sum(1 for _ in lacks(node)),
        )
        if node.catalog.is_here:
            yield from self._catalog_families()
        is_leader = node.leader_of(CATALOG_GROUP) == node.id
        yield gauge("angarium_catalog_leader", "1 on the node that leads the catalog.", is_leader)
        yield counter("angarium_catalog_entries_total", "Catalog entries.", node.catalog.applied)
        refused = node.host.outbox.refusals.counts
        yield Family(
            "angarium_peer_refusals_total",
            "counter",
            "Greetings and messages of other nodes that were not believed, by reason.",
            tuple(Sample(refused[one], (("objection", str(one)),)) for one in Objection),
        )
        yield gauge(
            "angarium_clock_ahead_seconds",
            "How far this node's clock is ahead of what a majority of the cluster says.",
            (node.time.ahead_ms(node.id) or 0) / 1_000,
        )
        yield gauge(
            "angarium_clock_agrees",
            "1 while a majority of clocks agrees with this node's; else trims by age wait.",
            node.time.clocks.is_sure,
        )
        yield gauge(
            "angarium_event_loop_lag_seconds",
            "999 of 1000 ticks were at most this late.",
            node.lag.quantile(0.999),
        )

    def _catalog_families(self) -> Iterable[Family]:
        node = self._node
        yield gauge("angarium_topics", "Topics of the cluster.", len(node.catalog.topics()))
        members = [one.id for one in node.catalog.members()]
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
        yield Family(
            "angarium_node_silences_total",
            "counter",
            "How often nothing came from another node for two election timeouts, over open links.",
            (Sample(node.liveness.silences),),
        )
