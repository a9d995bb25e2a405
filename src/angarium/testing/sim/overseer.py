"""A simulated operator of groups: moves them and pauses them, now and then."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from angarium.ids import Offset, RaftGroupId
from angarium.machine import Cursors
from angarium.machine.changes import Pause, Seek
from angarium.testing.sim.calls import Caller
from angarium.testing.sim.clock import MILLISECOND

if TYPE_CHECKING:
    from angarium.machine import Outcome
    from angarium.machine.changes import Change
    from angarium.testing.sim.requests import PublishReply
    from angarium.testing.sim.world import World


class Overseer:
    """Seeks, and pauses for a moment, in any group."""

    def __init__(self, world: World, groups: list[tuple[RaftGroupId, str]], seed: int) -> None:
        self.world = world
        self.name = "overseer"
        self.active = True
        self.in_flight = 0
        self._groups = groups
        self._rng = random.Random(seed)
        self._caller = Caller(world, self.name, self._rng)

    def start(self) -> None:
        """Begin to look after the groups."""
        self._later()

    def receive(self, reply: PublishReply) -> None:
        """Take an answer."""
        self._caller.receive(reply)

    def _later(self) -> None:
        self.world.scheduler.after(self._rng.randrange(200, 1_500) * MILLISECOND, self._act)

    def _act(self) -> None:
        if not self.active:
            return
        partition, name = self._rng.choice(self._groups)
        if self._rng.random() < 0.4:
            offset = int(self.world.seen_end(partition) * self._rng.random())
            self._do(partition, Seek(name, Offset(offset)), self._later)
        else:
            resume = Pause(name, False)
            self._do(partition, Pause(name, True), lambda: self._do(partition, resume, self._later))

    def _do(self, partition: RaftGroupId, change: Change, then: object) -> None:
        assert callable(then)
        self.in_flight = 1

        def done(outcome: Outcome | None) -> None:
            self.in_flight = 0
            self.world.note(self.name, "asks for", change, outcome)
            self.world.scheduler.after(100 * MILLISECOND, then)

        self._caller.call(partition, Cursors(changes=(change,)), done)
