"""Partitions and nodes while a plan is made: what each node would have after the moves so far."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from angarium.machine.catalog.placement import host_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from angarium.ids import NodeId, RaftGroupId
    from angarium.machine.catalog.values import Node

Area: TypeAlias = tuple[str, str]
"""A region and a zone in it."""

Setting: TypeAlias = tuple[tuple[str, ...], bool, tuple[str, ...], tuple[Area, ...]]
"""Where a partition should be led, whether that is its home, where it may not be, and where those
of its replicas are that stay."""


class LocatedPartition(NamedTuple):
    """A partition, where it lives, and what one replica of it holds."""

    group: RaftGroupId
    replicas: tuple[NodeId, ...]
    """Where it is, or is on its way to; the preferred leader first."""
    stored_bytes: int = 0
    regions: tuple[str, ...] = ()
    """Those in which its leader should be, best first; none: anywhere."""
    is_homed: bool = False
    """Whether no replica may leave the first of them."""
    readers: tuple[NodeId, ...] = ()
    """Who has a copy without a vote. They count, and stay."""
    witness: NodeId | None = None
    """Who has a vote and no records. It counts, without any bytes, and stays."""
    barred: tuple[str, ...] = ()
    """The regions of the witness: no replica goes there."""
    is_fixed: bool = False
    """It is on its way already, or somebody else's to move: it counts, and is left alone."""


class Move(NamedTuple):
    """One step: one replica goes elsewhere, or nothing but the preferred leader changes."""

    group: RaftGroupId
    replicas: tuple[NodeId, ...]
    target: tuple[NodeId, ...]
    stored_bytes: int = 0

    @property
    def arriving(self) -> NodeId | None:
        """The node that gets a replica; None if only the leader changes."""
        return next((one for one in self.target if one not in self.replicas), None)

    @property
    def leaving(self) -> NodeId | None:
        """The node that gives one away."""
        return next((one for one in self.replicas if one not in self.target), None)


class Layout:
    """Who has what, changed move by move; `moves` is how it came to be."""

    def __init__(self, nodes: Sequence[Node], partitions: Iterable[LocatedPartition]) -> None:
        """Begin with `partitions` as they are. Nodes that are not in `nodes` get nothing."""
        self.moves: list[Move] = []
        self.hosts: dict[NodeId, str] = {node.id: host_of(node) for node in nodes}
        self.regions: dict[NodeId, str] = {node.id: node.labels.region for node in nodes}
        self.areas: dict[NodeId, Area] = {
            node.id: (node.labels.region, node.labels.zone) for node in nodes
        }
        self.partitions: dict[RaftGroupId, LocatedPartition] = {}
        self.replicas: dict[RaftGroupId, tuple[NodeId, ...]] = {}
        self.counts: dict[NodeId, int] = dict.fromkeys(self.hosts, 0)
        self.stored: dict[NodeId, int] = dict.fromkeys(self.hosts, 0)
        self.held: dict[NodeId, list[tuple[int, RaftGroupId]]] = {one: [] for one in self.hosts}
        """What each node may give away, the smallest first. What has just come stays."""
        self.spent: dict[NodeId, list[tuple[int, RaftGroupId]]] = {one: [] for one in self.hosts}
        """The same of partitions of which another replica moves already: better not these."""
        self._last: dict[RaftGroupId, int] = {}
        """Which of the moves was the last one of a partition."""
        self._settings: dict[NodeId, Counter[Setting]] = {one: Counter() for one in self.hosts}
        """In which company each node has what it may give away, and how often."""
        self._allowed: dict[tuple[Setting, Area, Area], bool] = {}
        for partition in partitions:
            self._add(partition)
        for held in self.held.values():
            held.sort()

    def _add(self, partition: LocatedPartition) -> None:
        if not partition.is_fixed and any(one not in self.hosts for one in partition.replicas):
            partition = partition._replace(is_fixed=True)
        self.partitions[partition.group] = partition
        self.replicas[partition.group] = partition.replicas
        if partition.witness in self.counts:
            self.counts[partition.witness] += 1
        for node in dict.fromkeys((*partition.replicas, *partition.readers)):
            if node in self.hosts:
                self.counts[node] += 1
                self.stored[node] += partition.stored_bytes
                if not partition.is_fixed and node in partition.replicas:
                    self.held[node].append((partition.stored_bytes, partition.group))
                    self._settings[node][self._setting(partition.group, node)] += 1

    # --- what may be --------------------------------------------------------------------------

    def may_move(self, group: RaftGroupId, leaving: NodeId, arriving: NodeId) -> bool:
        """Tell whether a replica may go: to a host of its own, and not spread worse than before."""
        hosts = self.hosts
        host = hosts[arriving]
        beside = (*self.partitions[group].readers, self.partitions[group].witness)
        for one in (*self.replicas[group], *beside):
            if one is not None and one != leaving and hosts.get(one) == host:
                return False
        before, after = self.areas[leaving], self.areas[arriving]
        return before == after or self._is_allowed(self._setting(group, leaving), before, after)

    def may_give_any(self, leaving: NodeId, arriving: NodeId) -> bool:
        """Tell whether a node has anything that may go to the other one's region and zone at all.

        In a cluster of zones most pairs of nodes have nothing for each other, and that is known
        without a look at every partition.
        """
        before, after = self.areas[leaving], self.areas[arriving]
        return before == after or any(
            self._is_allowed(setting, before, after) for setting in self._settings[leaving]
        )

    def _setting(self, group: RaftGroupId, node: NodeId) -> Setting:
        """Return the regions and zones of a partition's other replicas, and where it is led."""
        areas, partition = self.areas, self.partitions[group]
        others = sorted(areas[one] for one in self.replicas[group] if one != node)
        return partition.regions, partition.is_homed, partition.barred, tuple(others)

    def _is_allowed(self, setting: Setting, before: Area, after: Area) -> bool:
        """Tell whether a replica with such others may go from one area to another."""
        asked = (setting, before, after)
        known = self._allowed.get(asked)
        if known is None:
            regions, is_homed, barred, others = setting
            if after[0] in barred:
                known = False
            elif is_homed and (before[0] == regions[0]) != (after[0] == regions[0]):
                known = after[0] == regions[0]  # homeward, and never away
            else:
                known = _near(others, after) <= _near(others, before) and (
                    _best_rank(regions, (*others, after)) <= _best_rank(regions, (*others, before))
                )
            self._allowed[asked] = known
        return known

    def company(self, others: Iterable[NodeId], node: NodeId) -> tuple[int, int]:
        """Return how many of the others share the region of `node`, and how many its zone."""
        return _near([self.areas[one] for one in others], self.areas[node])

    def crowding(self, replicas: Sequence[NodeId]) -> tuple[int, int]:
        """Return how many pairs of replicas share a region, and how many a zone."""
        pairs = [self.company(replicas[:at], one) for at, one in enumerate(replicas)]
        return sum(one for one, _ in pairs), sum(one for _, one in pairs)

    def leaders_of(self, group: RaftGroupId) -> tuple[NodeId, ...]:
        """Return who may lead a partition: the replicas in the best of its regions that has any."""
        replicas = self.replicas[group]
        for region in self.partitions[group].regions:
            there = tuple(one for one in replicas if self.regions[one] == region)
            if there:
                return there
        return replicas

    # --- what is done -------------------------------------------------------------------------

    def move(self, group: RaftGroupId, leaving: NodeId, arriving: NodeId) -> None:
        """Let a replica go elsewhere; if it was to lead, its successor is."""
        before = self.replicas[group]
        after = tuple(arriving if one == leaving else one for one in before)
        size = self.partitions[group].stored_bytes
        for one in before:
            if self.may_give(one, group):
                self._forget(one, self._setting(group, one))
            is_held = _taken_out(self.held[one], (size, group))
            if one == leaving:
                if not is_held:
                    _taken_out(self.spent[one], (size, group))
            elif is_held:
                insort(self.spent[one], (size, group))
        self.counts[leaving] -= 1
        self.counts[arriving] += 1
        self.stored[leaving] -= size
        self.stored[arriving] += size
        self.replicas[group] = after
        for one in after:
            if one != arriving and self.may_give(one, group):
                self._settings[one][self._setting(group, one)] += 1
        self._last[group] = len(self.moves)
        self.moves.append(Move(group, before, after, size))

    def _forget(self, node: NodeId, setting: Setting) -> None:
        settings = self._settings[node]
        settings[setting] -= 1
        if not settings[setting]:
            del settings[setting]

    def lead(self, group: RaftGroupId, node: NodeId) -> None:
        """Let another replica be the preferred leader: with the last move, if there is one."""
        before = self.replicas[group]
        after = (node, *(one for one in before if one != node))
        self.replicas[group] = after
        at = self._last.get(group)
        if at is None:
            self.moves.append(Move(group, before, after, self.partitions[group].stored_bytes))
        else:
            self.moves[at] = self.moves[at]._replace(target=after)

    def may_give(self, node: NodeId, group: RaftGroupId) -> bool:
        """Tell whether a node has a replica to give away that has not just come."""
        one = (self.partitions[group].stored_bytes, group)
        held, spent = self.held[node], self.spent[node]
        return any(
            at < len(those) and those[at] == one
            for those, at in ((held, bisect_left(held, one)), (spent, bisect_left(spent, one)))
        )

    def has_moved(self, group: RaftGroupId) -> bool:
        """Tell whether a partition moves anyway."""
        return group in self._last


def _best_rank(regions: tuple[str, ...], areas: Sequence[Area]) -> int:
    """Return how far down in `regions` the first one is that something is in."""
    there = {region for region, _ in areas}
    return next((rank for rank, one in enumerate(regions) if one in there), len(regions))


def _near(others: Sequence[Area], area: Area) -> tuple[int, int]:
    """Return how many of the others are in the region of `area`, and how many in its zone."""
    in_region = in_zone = 0
    for other in others:
        if other[0] == area[0]:
            in_region += 1
            in_zone += other == area
    return in_region, in_zone


def _taken_out(held: list[tuple[int, RaftGroupId]], one: tuple[int, RaftGroupId]) -> bool:
    at = bisect_left(held, one)
    if at == len(held) or held[at] != one:
        return False
    del held[at]
    return True


def put_in(order: list[tuple[int, NodeId]], count: int, node: NodeId) -> None:
    """Keep `order`, of nodes by how much they have, up to date."""
    insort(order, (count, node))
