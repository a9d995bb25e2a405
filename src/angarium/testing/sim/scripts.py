"""A simulated client that follows a script: it asks one thing, hears the answer, and goes on.

Scripts run the procedures of `service.transactions`, the very code that a node's coordinator runs,
one question after the other. A client may crash in the middle of one: a last question is sent and
its answer never heard. Whoever it is afterwards has lost its memory of how far it came.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from angarium.testing.sim.calls import Caller

if TYPE_CHECKING:
    from collections.abc import Generator

    from angarium.errors import AngariumError
    from angarium.ids import RaftGroupId
    from angarium.machine import Command, Outcome
    from angarium.service.transactions.procedure import Procedure
    from angarium.testing.sim.requests import PublishReply
    from angarium.testing.sim.world import World
    from angarium.wire.operations.transactions import Told

T = TypeVar("T")
ASKED_MAX = 1_000
"""How often a question is put before its outcome counts as unknown."""


class Ask(NamedTuple):
    """One command to one group; given up, its outcome unknown, after so many attempts."""

    group: RaftGroupId
    command: Command
    attempts_max: int = ASKED_MAX


class Heard(NamedTuple):
    """What came back."""

    outcome: Outcome | None
    told: Told | None


Script: TypeAlias = "Generator[Ask, Heard, T]"


class Crashed(Exception):
    """The client is gone in the middle of a procedure."""


class ScriptedClient:
    """Plays one script after the other."""

    def __init__(self, world: World, name: str, seed: int) -> None:
        self.world = world
        self.name = name
        self.active = True
        self.in_flight = 0
        self._rng = random.Random(seed)
        self._caller = Caller(world, name, self._rng)

    def receive(self, reply: PublishReply) -> None:
        """Take an answer."""
        self._caller.receive(reply)

    def play(self, script: Script[None]) -> None:
        """Begin a script; `ended` is called after its last line."""
        self.in_flight = 1
        self._go_on(script, None)

    def ended(self) -> None:
        """Hear that a script is over."""

    def _go_on(self, script: Script[None], heard: Heard | None) -> None:
        try:
            ask = next(script) if heard is None else script.send(heard)
        except StopIteration:
            self.in_flight = 0
            self.ended()
            return
        self._caller.call(
            ask.group,
            ask.command,
            lambda outcome: self._go_on(script, Heard(outcome, self._caller.told)),
            attempts_max=ask.attempts_max,
        )

    # --- procedures -------------------------------------------------------------------------

    def follow(self, steps: Procedure[T], *, crashes: bool) -> Script[T]:
        """Run a procedure to its end, or to a crash half-way; raises `Crashed`, or its error."""
        left = self._rng.randrange(8) if crashes else None
        asks = next(steps)
        while True:
            answers = []
            for group, command in asks:
                is_last = left == 0
                heard = yield Ask(group, command, 1 if is_last else ASKED_MAX)
                if is_last or heard.told is None:
                    raise Crashed
                answers.append(heard.told)
                left = None if left is None else left - 1
            try:
                asks = steps.send(tuple(answers))
            except StopIteration as done:
                result: T = done.value
                return result

    def incident(self, what: str, error: AngariumError) -> None:
        """Note a refusal that nothing in this run explains."""
        self.world.history.incidents.append(f"{self.name}: {what}: {error.code} {error}")
