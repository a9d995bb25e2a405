"""Judges what is evened out though nobody asked for it: when it begins, and that it comes to rest.

The rules are written down once more here, from what is seen of the nodes, and not by what the
catalog has noted: it begins when every node has been there and the same for a while, a node that
only moved is no reason, and as long as nodes stay the same no replica leaves the same node again
and again. Once it may come back: plans are made from what is there, and the last one has swaps for
the sake of bytes that the first one could not know.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.ids import NodeId, RaftGroupId
    from angarium.machine.catalog import Labels
    from angarium.node.balance import Move
    from angarium.testing.sim.rebalancing import Rebalancing


class Unasked:
    """Looks at the nodes as often as their catalog's leader does, and remembers what moved."""

    def __init__(self, judged: Rebalancing, *, calm: int) -> None:
        """Object to what begins less than `calm` after something happened to a node."""
        self._judged = judged
        self._calm = calm
        self._sites: list[tuple[NodeId, Labels]] = []
        self._disturbed_at = 0
        self._left: Counter[tuple[RaftGroupId, NodeId]] = Counter()
        """How often a node gave a replica away since nodes are these, and no plan was an old one.
        """

    def look(self) -> None:
        """Note whether a node is away, or others are there than before."""
        nodes = self._judged.machine.nodes.by_id
        sites = [(one, nodes[one].labels) for one in sorted(nodes) if not nodes[one].draining]
        if sites != self._sites:
            self._left.clear()
        if sites != self._sites or self._judged.away():
            self._sites = sites
            self._disturbed_at = self._judged.world.scheduler.now

    def plans_anew(self) -> None:
        """Forget what moved: something was called off, or done by a plan that was old."""
        self._left.clear()

    def judge_return(self, come_back: Callable[[], None]) -> None:
        """Let a node come back under its id, and object if that is a reason to move anything."""
        before = self._judged.machine.balance
        come_back()
        if self._judged.machine.balance != before:
            self._judged.object_to("a node that only got another address counts as another node")

    def judge_beginning(self) -> None:
        """Object to a run that begins at a bad time."""
        self.look()
        for_us = self._judged.world.scheduler.now - self._disturbed_at
        if for_us < self._calm:
            self._judged.object_to(f"it began by itself {for_us} µs after something happened")

    def judge_moves(self, moves: Sequence[Move]) -> None:
        """Object to moves of a run that nobody asked for, and to those that undo others."""
        if self._judged.machine.balance.is_by_itself and moves:
            self.judge_beginning()
        for move in moves:
            if move.arriving is None or move.leaving is None:
                continue
            self._left[move.group, move.leaving] += 1
            if self._left[move.group, move.leaving] > 2:
                name = f"group {move.group}"
                self._judged.object_to(f"{name} leaves node {move.leaving} again and again")
