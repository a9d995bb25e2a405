"""A simulated steward: it lets logs begin later, and leaves gaps in them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from angarium.ids import Offset, RaftGroupId
from angarium.machine import Reserve, Trim, Trimmed
from angarium.testing import history
from angarium.testing.history import Result
from angarium.testing.sim.calls import Caller
from angarium.testing.sim.clock import MILLISECOND

if TYPE_CHECKING:
    from angarium.machine import Outcome
    from angarium.testing.sim.requests import PublishReply
    from angarium.testing.sim.world import World

SHARE_TRIMMED_MAX = 0.4
"""Of what readers have seen, so that enough is left at the end to be checked."""


class Steward:
    """Trims and reserves, now and then, in any group."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.name = "steward"
        self.active = True
        self.in_flight = 0
        self._rng = random.Random(seed)
        self._caller = Caller(world, self.name, self._rng)
        self._starts: dict[RaftGroupId, int] = {}

    def start(self) -> None:
        """Begin to look after the logs."""
        self._later()

    def receive(self, reply: PublishReply) -> None:
        """Take an answer."""
        self._caller.receive(reply)

    def _later(self) -> None:
        self.world.scheduler.after(self._rng.randrange(50, 500) * MILLISECOND, self._act)

    def _act(self) -> None:
        if not self.active:
            return
        group = self._rng.choice(self.world.groups)
        if self._rng.random() < 0.3:
            self.in_flight = 1
            count = self._rng.choice((1, 2, 5))
            # Done twice it leaves two gaps, which harms nobody; so it may be asked again.
            self._caller.call(group, Reserve(count=count), self._reserved)
            return
        start = self._starts.get(group, 0)
        seen = self.world.seen_end(group)
        start += int((seen - start) * self._rng.random() * SHARE_TRIMMED_MAX)
        wish = history.Trim(group, start, self.world.scheduler.now)
        self.world.history.trims.append(wish)

        def trimmed(outcome: Outcome | None) -> None:
            if isinstance(outcome, Trimmed):
                wish.result = Result.OK
                self._starts[group] = start
            self.world.note(self.name, "trims group", group, "to", start, wish.result.value)
            self._done()

        self.in_flight = 1
        self._caller.call(group, Trim(start_offset=Offset(start)), trimmed)

    def _reserved(self, outcome: Outcome | None) -> None:
        self.world.note(self.name, "reserves", outcome)
        self._done()

    def _done(self) -> None:
        self.in_flight = 0
        self._later()
