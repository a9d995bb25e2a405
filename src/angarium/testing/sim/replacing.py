"""Disks that are replaced, or put back as they were earlier, in a run with all other faults.

Unlike other faults that destroy a disk, nobody looks into the cluster here to see whether a
majority is safe: the next disk goes when every node says that it is ready and the operator's own
rules allow it. What a disk has forgotten is noticed by the others as far as they have heard of it,
so an older copy comes back only where all of them have.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from angarium.testing.sim.clock import MILLISECOND

if TYPE_CHECKING:
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.world import World

LULL = 800 * MILLISECOND
PREFIXES = ("", "", "wal/", "groups/", "snapshots/")
"""What an older copy is of: of everything, or only of some files."""


class Replacing:
    """Gives disks up, one after the other, as long as the cluster lets it."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self._rng = random.Random(seed)

    def start(self) -> None:
        """Begin, after a moment of peace."""
        self._later()

    def _later(self) -> None:
        self.world.scheduler.after(self._rng.randrange(300, 2_000) * MILLISECOND, self._act)

    def _act(self) -> None:
        if not self.world.faults.active:
            return
        if self._rng.random() < 0.4:
            self.world.quiet_until = self.world.scheduler.now + LULL
        node = self._rng.choice(list(self.world.nodes.values()))
        if self._rng.random() < 0.5:
            self.world.scheduler.after(LULL, self._replace, node)
        elif node.is_up:
            copy, end = node.disk.copied(), node.host.wal.end if node.host is not None else 0
            wait = self._rng.randrange(800, 2_500) * MILLISECOND
            self.world.scheduler.after(wait, self._roll_back, node, node.replica, copy, end)
        self._later()

    def _may_go(self, node: SimNode) -> bool:
        world = self.world
        return (
            world.faults.active
            and not world.faults.is_anything_destroyed()
            and all(map(world.operator.is_ready, world.nodes.values()))
            and world.operator.objection_to_losing(node.id) is None
        )

    def _replace(self, node: SimNode) -> None:
        if self._may_go(node):
            node.wipe()
            self.world.faults.strike_disk("replace", node, node.name)

    def _roll_back(
        self, node: SimNode, replica: int, copy: dict[str, tuple[bytes, int]], end: int
    ) -> None:
        others = [one for one in self.world.nodes.values() if one is not node]
        is_known = all(one.saved_ends.get(node.replica, 0) > end for one in others)
        if node.replica == replica and is_known and self._may_go(node):
            prefix = self._rng.choice(PREFIXES)
            node.roll_back(copy, prefix)
            self.world.faults.strike_disk("rollback", node, f"{node.name} {prefix or 'all of it'}")
