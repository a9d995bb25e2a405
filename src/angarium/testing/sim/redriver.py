"""A simulated client that sends dead letters back: several of them want the same ones.

The letters are records of one partition; sending one back is a transaction that publishes it to
another partition and acknowledges the letter for a group of the cluster's own. Each letter may be
sent back once, whoever crashes in the middle and whoever else is at it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from angarium.batch import encode
from angarium.errors import (
    AngariumError,
    GroupFenced,
    OffsetOutOfRange,
    TransactionAborted,
    TransactionPending,
)
from angarium.ids import Epoch, Offset, RaftGroupId
from angarium.kinds import GroupKind
from angarium.machine import Cursors, Positioned, Refused, Stage
from angarium.machine.changes import Open
from angarium.service.transactions import procedure
from angarium.service.transactions.procedure import inner
from angarium.testing.history import SENT_BACK, Transaction
from angarium.testing.sim.clock import MILLISECOND
from angarium.testing.sim.scripts import Ask, Crashed, ScriptedClient

if TYPE_CHECKING:
    from angarium.service.transactions.procedure import Named
    from angarium.testing.sim.scripts import Script
    from angarium.testing.sim.world import World

GROUP = "redrive"
LETTERS = 12
"""Records at the beginning of the partition that count as letters: few, so that all want them."""

_EXPECTED = frozenset((GroupFenced.code, OffsetOutOfRange.code, TransactionPending.code))
"""Somebody else was faster, or the letter has not been written yet."""


class Redriver(ScriptedClient):
    """Sends one letter back after the other, and forgets now and then which ones it has sent."""

    def __init__(self, world: World, number: int, seed: int) -> None:
        super().__init__(world, f"redriver-{number}", seed)
        self._epoch = 0
        self._sequence = 0
        self._generation: int | None = None
        self._from = world.groups[0]
        self._to = world.groups[-1]

    def start(self) -> None:
        """Begin."""
        self.ended()

    def ended(self) -> None:
        """Take the next letter a little later."""
        self.world.scheduler.after(self._rng.randrange(10, 200) * MILLISECOND, self._next)

    def _next(self) -> None:
        if self.active:
            self._sequence += 1
            self.play(self._script(self._rng.randrange(LETTERS)))

    def _script(self, letter: int) -> Script[None]:
        if self._generation is None:
            opening = Cursors(changes=(Open(GROUP, GroupKind.QUEUE, Offset(0)),))
            heard = yield Ask(self._from, opening)
            if not isinstance(heard.outcome, Positioned):
                return
            self._generation = int(heard.outcome.generation)
        name = f"{self.name}.{self._epoch}.{self._sequence}"
        value = b"%s.%d.%s" % (SENT_BACK, letter, name.encode())
        one = Transaction(
            name=self.name,
            epoch=self._epoch,
            sequence=self._sequence,
            home=self._rng.choice(self.world.groups),
            values={self._to: (value,)},
            dropped={},
            invoked=self.world.scheduler.now,
        )
        self.world.history.transactions.append(one)
        is_staged = yield from self._stage(one, letter, value)
        yield from self._decide(one, wants=is_staged)
        one.completed = self.world.scheduler.now
        self.world.note(self.name, "sends back", letter, one.committed)

    def _stage(self, one: Transaction, letter: int, value: bytes) -> Script[bool]:
        ack = (GROUP, self._generation or 0, letter, letter + 1)
        stages = [
            (self._from, Stage(**_of(one), home=one.home, stage="a", part=0, acks=(ack,))),
            (
                self._to,
                Stage(**_of(one), home=one.home, stage="b", part=0, batches=bytes(encode([value]))),
            ),
        ]
        self._rng.shuffle(stages)
        for raft_group, command in stages:
            steps = procedure.stage(raft_group, command)
            try:
                told = yield from self.follow(steps, crashes=self._rng.random() < 0.1)
            except Crashed:
                return False
            except AngariumError as error:
                if error.code not in _EXPECTED:
                    self.incident("a stage", error)
                return False
            if isinstance(told.outcome, Refused):
                if told.outcome.code not in (*_EXPECTED, TransactionAborted.code):
                    self.world.history.incidents.append(f"{self.name}: {told.outcome}")
                return False
        return True

    def _decide(self, one: Transaction, *, wants: bool) -> Script[None]:
        home = one.home
        assert home is not None
        stages = ((self._from, ("a",)), (self._to, ("b",)))
        joined: dict[RaftGroupId, tuple[str, ...]] = {}
        for group, names in stages:
            joined[group] = (*joined.get(group, ()), *names)
        if wants:
            steps = procedure.commit(home, _of(one), tuple(joined.items()))
        else:
            steps = procedure.abort(home, _of(one), joined)
        try:
            ended = yield from self.follow(steps, crashes=self._rng.random() < 0.3)
        except TransactionAborted:
            one.committed = False  # whoever wanted the same letter was told to end this one
        except (Crashed, AngariumError) as broken:
            if isinstance(broken, AngariumError):
                self.incident("a decision", broken)
            yield from self._come_back(one, home)
        else:
            one.committed = ended.committed
            if ended.unfinished is not None and self._rng.random() < 0.7:
                # Else nobody tells the home, as if its coordinator had died right then.
                finish = procedure.finish(home, ended.unfinished)
                with suppress(Crashed):
                    yield from self.follow(finish, crashes=False)

    def _come_back(self, one: Transaction, home: RaftGroupId) -> Script[None]:
        self._epoch += 1
        steps = procedure.fence(home, self.name, Epoch(self._epoch))
        try:
            committed = yield from self.follow(steps, crashes=False)
        except (Crashed, AngariumError):
            return  # its fate is not known
        one.committed = committed == inner(one.sequence)


def _of(one: Transaction) -> Named:
    return {"name": one.name, "epoch": Epoch(one.epoch), "sequence": inner(one.sequence)}
