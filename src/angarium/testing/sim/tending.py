"""Ends what clients have left open, as `service.transactions.tending` does when its time is over.

A simulated run is much shorter than the time that a transaction may be open. Without this a fence
would wait to the end of the run for one whose owner has crashed, and with it every group that may
not go beyond the fence.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from angarium.errors import AngariumError
from angarium.service.transactions import procedure
from angarium.testing.sim.clock import SECOND
from angarium.testing.sim.scripts import Crashed, ScriptedClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import RaftGroupId
    from angarium.machine.series import Attempt
    from angarium.testing.sim.scripts import Script
    from angarium.testing.sim.world import World

WITHIN = 20 * SECOND
"""How long it may take to end everything, when nothing fails any more."""

LATER = 1 << 62
"""A time at which whatever is open has been so for too long."""


class Tender(ScriptedClient):
    """Ends every transaction that is open, each as its home says; only after its owner is gone."""

    def __init__(self, world: World) -> None:
        super().__init__(world, "tender", world.seed)

    def end_all(self) -> None:
        """End them, and return when that is done or has taken too long."""
        self.world.let_in(self)
        self.play(self._script())
        self.world.wait(WITHIN, lambda: not self.in_flight)

    def _script(self) -> Script[None]:
        for group, name, attempt in list(self._open()):
            # What cannot be ended shows in what waits for it.
            with suppress(Crashed, AngariumError):
                yield from self.follow(procedure.resolve(group, name, attempt), crashes=False)

    def _open(self) -> Iterator[tuple[RaftGroupId, str, Attempt]]:
        for group in self.world.groups:
            leader = self.world.operator.leader(group)
            if leader is not None:
                numbering = leader.partition.machine.numbering
                for name, attempt in numbering.transactions.overdue(LATER, numbering.limits):
                    yield group, name, attempt
