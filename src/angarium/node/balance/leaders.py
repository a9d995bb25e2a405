"""Who is to lead what: as many partitions for each node as its replicas allow.

Leaderships go along shortest paths: from the node with most, over partitions that it leads and the
next one may lead, to a node with at least two fewer. Where no such path is left, nobody's share can
become smaller without another's growing beyond it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from angarium.node.balance.replicas import APART_MIN

if TYPE_CHECKING:
    from angarium.ids import NodeId, RaftGroupId
    from angarium.node.balance.layout import Layout


def even_leaders(layout: Layout) -> None:
    """Choose preferred leaders; those of partitions that move anyway first."""
    leaders = _Leaders(layout)
    leaders.even_out()
    for group, node in leaders.of.items():
        if layout.replicas[group][0] != node:
            layout.lead(group, node)


class _Leaders:
    """Who leads what, and whom each node could let lead instead."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.of: dict[RaftGroupId, NodeId] = {}
        """The leaders of those partitions that may be given another one."""
        self._counts: dict[NodeId, int] = dict.fromkeys(layout.counts, 0)
        self._heirs: dict[NodeId, dict[NodeId, dict[RaftGroupId, None]]] = {
            one: {} for one in layout.counts
        }
        """By leader and by who could lead instead, which partitions; in order, without repeats."""
        astray = []
        for group in sorted(layout.replicas, key=lambda one: (not layout.has_moved(one), one)):
            leader = layout.replicas[group][0]
            if layout.partitions[group].is_fixed:
                if leader in self._counts:
                    self._counts[leader] += 1
            elif leader in layout.leaders_of(group):
                self._enter(group, leader)
            else:
                astray.append(group)
        for group in astray:  # led outside of its home, though it has a replica there
            candidates = layout.leaders_of(group)
            self._enter(group, min(candidates, key=lambda one: (self._counts[one], one)))

    def _enter(self, group: RaftGroupId, leader: NodeId) -> None:
        self.of[group] = leader
        self._counts[leader] += 1
        heirs = self._heirs[leader]
        for one in self._layout.leaders_of(group):
            if one != leader:
                heirs.setdefault(one, {})[group] = None

    def _leave(self, group: RaftGroupId) -> None:
        leader = self.of[group]
        self._counts[leader] -= 1
        heirs = self._heirs[leader]
        for one in self._layout.leaders_of(group):
            if one != leader:
                del heirs[one][group]
                if not heirs[one]:
                    del heirs[one]

    def even_out(self) -> None:
        """Pass leaderships on until no path is left."""
        moved = True
        while moved:
            moved = False
            for high in sorted(self._counts, key=lambda one: (-self._counts[one], one)):
                while path := self._path(high):
                    moved = True
                    self._pass_on(path)

    def _pass_on(self, path: list[NodeId]) -> None:
        for giver, taker in pairwise(path):
            group = next(iter(self._heirs[giver][taker]))
            self._leave(group)
            self._enter(group, taker)

    def _path(self, high: NodeId) -> list[NodeId] | None:
        """Return the shortest way from `high` to a node with much less; None if there is none."""
        enough = self._counts[high] - APART_MIN
        came_from: dict[NodeId, NodeId] = {}
        level = [high]
        while level:
            reached = []
            for giver in level:
                for taker in self._heirs[giver]:
                    if taker != high and taker not in came_from:
                        came_from[taker] = giver
                        reached.append(taker)
            least = min(reached, key=lambda one: (self._counts[one], one), default=high)
            if self._counts[least] <= enough:
                path = [least]
                while path[-1] != high:
                    path.append(came_from[path[-1]])
                return path[::-1]
            level = reached
        return None
