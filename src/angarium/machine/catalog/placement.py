"""Where replicas go: spread over failure domains first, then over the least loaded nodes.

Those of a homed partition are in its home as far as that has hosts, and spread over its zones.

A pure function of the nodes and their loads, with ties broken by rendezvous hashing of the group,
so that every replica of the catalog places alike and equal nodes get equal shares.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from angarium.machine.catalog.regions import may_hold
from angarium.machine.catalog.values import NO_NODE
from angarium.machine.fingerprint import affinity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from angarium.ids import NodeId, RaftGroupId
    from angarium.machine.catalog.regions import Wish
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
        for node in partition.holders:
            self.replicas[node] = self.replicas.get(node, 0) + sign
        leader = (partition.target or partition.replicas)[0]
        self.leaders[leader] = self.leaders.get(leader, 0) + sign


def chosen_replicas(
    nodes: Sequence[Node],
    wish: Wish,
    *,
    group: RaftGroupId,
    loads: Loads,
    keep: Sequence[NodeId] = (),
    anew: bool = False,
) -> tuple[NodeId, ...] | None:
    """Return the nodes for `group`, the preferred leader first; nothing if there are too few.

    No two of them share a host. Those in `keep` stay among them, but for those that a homed
    partition has away from a home that can take them; with `anew`, where they are spread as well
    as others would be. The leader is in the first of the wished regions that has a node to offer.
    """
    count = wish.replication
    nodes = [node for node in nodes if wish.may_be_in(node.labels.region)]
    if wish.is_homed:
        if not may_hold(wish, hosts_by_region(nodes)):
            return None
        chosen = _at_home(nodes, wish, group=group, loads=loads, keep=keep)
    elif anew:
        chosen = []
        _choose_led(chosen, nodes, wish, group=group, loads=loads, keep=frozenset(keep))
        _choose(chosen, nodes, count, group=group, loads=loads, keep=frozenset(keep))
    else:
        chosen = _kept(nodes, keep)[:count]
        _choose_led(chosen, nodes, wish, group=group, loads=loads)
    _choose(chosen, nodes, count, group=group, loads=loads)
    if len(chosen) < count:
        return None
    ranks = {region: rank for rank, region in enumerate(wish.regions)}

    def reluctance(node: Node) -> tuple[int, int, int, int]:
        away = ranks.get(node.labels.region, len(ranks))
        return away, loads.leaders.get(node.id, 0), affinity(group, node.id), node.id

    leader = min(chosen, key=reluctance)
    return (leader.id, *(node.id for node in chosen if node is not leader))


def chosen_readers(
    nodes: Sequence[Node],
    regions: Iterable[str],
    voters: Collection[NodeId],
    *,
    group: RaftGroupId,
    loads: Loads,
    keep: Collection[NodeId] = (),
    filled: Collection[NodeId] = (),
) -> tuple[NodeId, ...]:
    """Return who has a copy without a vote: a node of each of `regions` that has no voter.

    Those in `keep` stay. Where none does, it is one of `filled`: they have the records already.
    """
    served = {node.labels.region for node in nodes if node.id in voters}
    readers = []
    for region in regions:
        there = [node for node in nodes if node.labels.region == region]
        if region in served or not there:
            continue

        def cost(node: Node) -> tuple[bool, bool, int, int, int]:
            load = loads.replicas.get(node.id, 0)
            is_new = node.id not in filled
            return node.id not in keep, is_new, load, affinity(group, node.id), node.id

        readers.append(min(there, key=cost).id)
    return tuple(readers)


def chosen_witness(
    nodes: Sequence[Node],
    regions: Sequence[str],
    voters: Collection[NodeId],
    *,
    group: RaftGroupId,
    loads: Loads,
    keep: NodeId,
) -> NodeId:
    """Return who is to break ties, in the first of `regions` that has a host for it.

    Where none has, it stays with whoever it is with.
    """
    if not regions:
        return NO_NODE
    hosts = {host_of(node) for node in nodes if node.id in voters}
    free = [node for node in nodes if node.labels.region in regions and host_of(node) not in hosts]

    def cost(node: Node) -> tuple[int, bool, int, int, int]:
        load = loads.replicas.get(node.id, 0)
        away = regions.index(node.labels.region)
        return away, node.id != keep, load, affinity(group, node.id), node.id

    return min(free, key=cost).id if free else keep


def hosts_by_region(nodes: Iterable[Node]) -> Counter[str]:
    """Return how many hosts each region has; nodes of one host in several count in the first."""
    regions: dict[str, str] = {}
    for node in nodes:
        regions.setdefault(host_of(node), node.labels.region)
    return Counter(regions.values())


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


def _at_home(
    nodes: Sequence[Node],
    wish: Wish,
    *,
    group: RaftGroupId,
    loads: Loads,
    keep: Sequence[NodeId],
) -> list[Node]:
    """Return as many nodes of the home as it can offer, and those of `keep` behind them."""
    home = wish.regions[0]
    kept = _kept(nodes, keep)
    chosen = [node for node in kept if node.labels.region == home][: wish.replication]
    there = [node for node in nodes if node.labels.region == home]
    _choose(chosen, there, wish.replication, group=group, loads=loads)
    hosts = set(map(host_of, chosen))
    away = [node for node in kept if node.labels.region != home and host_of(node) not in hosts]
    return [*chosen, *away][: wish.replication]


def _choose_led(
    chosen: list[Node],
    nodes: Sequence[Node],
    wish: Wish,
    *,
    group: RaftGroupId,
    loads: Loads,
    keep: Collection[NodeId] = (),
) -> None:
    """See to it that one of `chosen` is where a partition should be led, if a node is there."""
    there = [[node for node in nodes if node.labels.region == one] for one in wish.regions]
    best = next((some for some in there if some), [])
    if not best or any(node in best for node in chosen):
        return
    if len(chosen) == wish.replication:
        chosen.pop()
    count = min(len(chosen) + 1, wish.replication)
    _choose(chosen, best, count, group=group, loads=loads, keep=keep)


def _choose(
    chosen: list[Node],
    nodes: Sequence[Node],
    count: int,
    *,
    group: RaftGroupId,
    loads: Loads,
    keep: Collection[NodeId] = (),
) -> None:
    """Add the best of `nodes` to `chosen`, one by one, until there are `count` or none is left."""

    def cost(node: Node) -> tuple[int, int, bool, int, int, int]:
        region, zone = node.labels.region, node.labels.zone
        near = [one.labels for one in chosen if one.labels.region == region]
        return (
            len(near),
            sum(labels.zone == zone for labels in near),
            node.id not in keep,
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
