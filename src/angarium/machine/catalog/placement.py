"""Where replicas go: spread over failure domains first, then over the least loaded nodes.

A pure function of the nodes and their loads, with ties broken by rendezvous hashing of the group,
so that every replica of the catalog places alike and equal nodes get equal shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.machine.fingerprint import affinity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from angarium.ids import NodeId, RaftGroupId
    from angarium.machine.catalog.values import Node, Partition


class Loads:
    """How many replicas each node has, and how many partitions prefer it as their leader."""

    __slots__ = ("leaders", "replicas")

    def __init__(self, partitions: Iterable[Partition] = ()) -> None:
        self.replicas: dict[NodeId, int] = {}
        self.leaders: dict[NodeId, int] = {}
        for partition in partitions:
            self.add(partition, 1)

    def add(self, partition: Partition, sign: int) -> None:
        """Count `partition`, or stop counting it. A move counts where it was and where it goes."""
        for node in dict.fromkeys((*partition.replicas, *partition.target)):
            self.replicas[node] = self.replicas.get(node, 0) + sign
        leader = (partition.target or partition.replicas)[0]
        self.leaders[leader] = self.leaders.get(leader, 0) + sign


def chosen_replicas(
    nodes: Sequence[Node],
    count: int,
    *,
    group: RaftGroupId,
    home: str,
    loads: Loads,
    keep: Sequence[NodeId] = (),
) -> tuple[NodeId, ...] | None:
    """Return `count` nodes for `group`, the preferred leader first; nothing if there are too few.

    No two of them share a host. Those in `keep` stay among them. With a `home` region that has a
    node to offer, the leader is there.
    """
    chosen = _kept(nodes, keep)[:count]
    if home and not any(node.labels.region == home for node in chosen):
        at_home = [node for node in nodes if node.labels.region == home]
        if len(chosen) == count and at_home:
            chosen.pop()
        _choose(chosen, at_home, min(len(chosen) + 1, count), group=group, loads=loads)
    _choose(chosen, nodes, count, group=group, loads=loads)
    if len(chosen) < count:
        return None

    def reluctance(node: Node) -> tuple[bool, int, int, int]:
        away = bool(home) and node.labels.region != home
        return away, loads.leaders.get(node.id, 0), affinity(group, node.id), node.id

    leader = min(chosen, key=reluctance)
    return (leader.id, *(node.id for node in chosen if node is not leader))


def host_of(node: Node) -> str:
    """Return which machine `node` runs on, as far as placement is concerned."""
    return node.labels.host or f"node {node.id}"


def _kept(nodes: Sequence[Node], keep: Sequence[NodeId]) -> list[Node]:
    """Return the nodes of `keep` that may stay: there, and each on a host of its own."""
    by_id = {node.id: node for node in nodes}
    kept: dict[str, Node] = {}
    for one in keep:
        node = by_id.get(one)
        if node is not None:
            kept.setdefault(host_of(node), node)
    return list(kept.values())


def _choose(
    chosen: list[Node], nodes: Sequence[Node], count: int, *, group: RaftGroupId, loads: Loads
) -> None:
    """Add the best of `nodes` to `chosen`, one by one, until there are `count` or none is left."""

    def cost(node: Node) -> tuple[int, int, int, int, int]:
        region, zone = node.labels.region, node.labels.zone
        near = [one.labels for one in chosen if one.labels.region == region]
        return (
            len(near),
            sum(labels.zone == zone for labels in near),
            loads.replicas.get(node.id, 0),
            affinity(group, node.id),
            node.id,
        )

    while len(chosen) < count:
        hosts = {host_of(node) for node in chosen}
        free = [node for node in nodes if host_of(node) not in hosts]
        if not free:
            return
        chosen.append(min(free, key=cost))
