"""How a simulated client puts commands to the leader of a group, until it has an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from angarium.errors import AngariumError, NotLeader
from angarium.ids import ReplicaId, node_of
from angarium.testing.sim.clock import MILLISECOND
from angarium.testing.sim.requests import PublishReply, SubmitRequest

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from angarium.ids import NodeId, RaftGroupId
    from angarium.machine import Command, Outcome
    from angarium.testing.sim.world import World
    from angarium.wire.operations.transactions import Told

PATIENCE = 250 * MILLISECOND
"""How long a caller waits for an answer before it asks again, perhaps somebody else."""


@dataclass(slots=True)
class _Call:
    group: RaftGroupId
    command: Command
    attempts_left: int
    done: Callable[[Outcome | None], None]


class Caller:
    """Asks one thing at a time. A command may be carried out although no answer ever came."""

    def __init__(self, world: World, name: str, rng: random.Random) -> None:
        self._world = world
        self._name = name
        self._rng = rng
        self._number = 0
        self._call: _Call | None = None
        self._leaders: dict[RaftGroupId, NodeId] = {}
        self.told: Told | None = None
        """What the last answer said besides the outcome, if it was about a transaction."""

    def call(
        self,
        group: RaftGroupId,
        command: Command,
        done: Callable[[Outcome | None], None],
        *,
        attempts_max: int = 1_000,
    ) -> None:
        """Ask until there is an outcome, which `done` gets; None if it is given up, unknown."""
        assert self._call is None, "one call at a time"
        self._call = _Call(group, command, attempts_max, done)
        self._attempt(self._call)

    def receive(self, reply: PublishReply) -> None:
        """Take an answer; only the one to the last attempt counts."""
        call = self._call
        if call is None or reply.number != self._number:
            return
        if isinstance(reply.answer, AngariumError):
            hint = reply.answer.leader if isinstance(reply.answer, NotLeader) else None
            self._suppose(call.group, node_of(ReplicaId(hint)) if hint else None)
            pause = self._rng.randrange(1, 30 * MILLISECOND)
            self._number += 1
            self._world.scheduler.after(pause, self._again, self._number)
            return
        self._suppose(call.group, reply.node)
        self.told = reply.told
        self._finish(call, reply.answer.outcomes[0])

    def _attempt(self, call: _Call) -> None:
        if call.attempts_left == 0:
            self._finish(call, None)
            return
        call.attempts_left -= 1
        self._number += 1
        target = self._leaders.get(call.group) or self._rng.choice(self._world.node_ids)
        request = SubmitRequest(self._name, self._number, call.group, call.command)
        self._world.network.send_once(self._name, f"node-{target}", request)
        self._world.scheduler.after(
            PATIENCE + self._world.settings.slack, self._expire, self._number
        )

    def _expire(self, number: int) -> None:
        if self._call is not None and number == self._number:
            self._suppose(self._call.group, None)
            self._attempt(self._call)

    def _again(self, number: int) -> None:
        if self._call is not None and number == self._number:
            self._attempt(self._call)

    def _finish(self, call: _Call, outcome: Outcome | None) -> None:
        self._call = None
        self._number += 1
        call.done(outcome)

    def _suppose(self, group: RaftGroupId, leader: NodeId | None) -> None:
        if leader is None:
            self._leaders.pop(group, None)
        else:
            self._leaders[group] = leader
