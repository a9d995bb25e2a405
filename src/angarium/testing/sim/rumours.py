"""Rumours that a node is gone: some are true, most are lies, and each is believed.

A real node asks the other one first, and does nothing if that answers (`node/rumours.py`). Here
it never answers: this is the worst that a lying agent and a network that fails at the right moment
can do together. No promise may be broken by it, and work has to go on.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from angarium.testing.sim.clock import MILLISECOND

if TYPE_CHECKING:
    from angarium.testing.sim.world import World

GAP: Final = 300 * MILLISECOND
"""Mean time between two rumours."""

SPREAD: Final = 120 * MILLISECOND
"""How long it takes at most until everybody has heard one."""


class Rumours:
    """Says that nodes are gone, to one node or to several, until told to stop."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._rng = random.Random(seed)

    def start(self) -> None:
        """Begin, a moment after everybody else."""
        self._world.scheduler.after(300 * MILLISECOND, self._speak)

    def _speak(self) -> None:
        if not self._world.faults.active:
            return
        rng = self._rng
        self._world.scheduler.after(rng.randrange(GAP // 4, 2 * GAP), self._speak)
        down = [one for one in self._world.nodes.values() if not one.is_up or one.is_paused]
        is_true = bool(down) and rng.random() < 0.5
        gone = rng.choice(down if is_true else list(self._world.nodes.values()))
        self._world.note("rumour", "has it that gone is", gone.name)
        for node in self._world.nodes.values():
            if node is not gone and node.is_up and rng.random() < 0.8:
                node.later(rng.randrange(SPREAD), node.believe_gone, gone.id)
