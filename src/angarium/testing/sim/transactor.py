"""A simulated client with transactions, which crashes in the middle of them.

One over several partitions goes the whole way: begin at the home group, stage at each partition,
decide at home, carry the decision out at each partition, finish at home. A client that crashes has
lost its memory of how far it came; whoever cleans up after it asks the home group, by proposing an
abort, and carries out whatever it is told.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypedDict

from angarium.batch import encode
from angarium.ids import Epoch, GroupId, Sequence
from angarium.machine import Abort, Begin, Command, Commit, Decide, Decided, Finish, Refused, Stage
from angarium.testing.history import Transaction
from angarium.testing.sim.calls import Caller
from angarium.testing.sim.clock import MILLISECOND

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from angarium.machine import Outcome
    from angarium.testing.sim.requests import PublishReply
    from angarium.testing.sim.world import World


class Ask(NamedTuple):
    """One command to one group; given up, its outcome unknown, after so many attempts."""

    group: GroupId
    command: Command
    attempts_max: int = 1_000


Script: TypeAlias = "Generator[Ask, Outcome | None, None]"


class Transactor:
    """Runs one transaction after the other."""

    def __init__(self, world: World, number: int, seed: int) -> None:
        self.world = world
        self.name = f"transactor-{number}"
        self.active = True
        self.in_flight = 0
        self._rng = random.Random(seed)
        self._caller = Caller(world, self.name, self._rng)
        self._epoch = 0
        self._sequence = 0

    def start(self) -> None:
        """Begin with the first one."""
        self._later()

    def receive(self, reply: PublishReply) -> None:
        """Take an answer."""
        self._caller.receive(reply)

    def _later(self) -> None:
        self.world.scheduler.after(self._rng.randrange(10, 150) * MILLISECOND, self._next)

    def _next(self) -> None:
        if not self.active:
            return
        self._sequence += 1
        one = self._drawn()
        self.world.history.transactions.append(one)
        self.in_flight = 1
        self._go_on(one, self._script(one), None)

    def _go_on(self, one: Transaction, script: Script, outcome: Outcome | None) -> None:
        try:
            ask = script.send(outcome)
        except StopIteration:
            one.completed = self.world.scheduler.now
            self.in_flight = 0
            self.world.note(self.name, one.name, one.epoch, one.sequence, one.committed)
            self._later()
            return
        self._caller.call(
            ask.group,
            ask.command,
            lambda answer: self._go_on(one, script, answer),
            attempts_max=ask.attempts_max,
        )

    # --- what it is about -------------------------------------------------------------------

    def _drawn(self) -> Transaction:
        groups, rng = self.world.groups, self._rng
        here = rng.sample(groups, rng.randrange(1, len(groups) + 1))
        alone = len(here) == 1 and rng.random() < 0.5
        one = Transaction(
            name=self.name,
            epoch=self._epoch,
            sequence=self._sequence,
            home=None if alone else rng.choice(groups),
            values={group: self._values(group, "a") for group in here},
            dropped={},
            invoked=self.world.scheduler.now,
        )
        for group in here:
            if rng.random() < 0.3:
                one.dropped[group] = self._values(group, "b")
        return one

    def _values(self, group: GroupId, stage: str) -> tuple[bytes, ...]:
        place = f"{self.name}.{self._epoch}.{self._sequence}.{group}.{stage}"
        return tuple(f"{place}.{one}".encode() for one in range(self._rng.randrange(1, 6)))

    # --- how it goes ------------------------------------------------------------------------

    def _script(self, one: Transaction) -> Script:
        rng = self._rng
        is_ready = yield from self._prepare(one)
        wants = is_ready and rng.random() < 0.9
        if wants and rng.random() < 0.2:
            # It asks to commit, and is gone before it hears what became of that.
            yield self._decision(one, commit=True, attempts_max=1)
            wants = False
        if not wants:
            self._epoch += 1
        outcome = yield self._decision(one, commit=wants)
        if isinstance(outcome, Refused):
            self._judge(one, outcome, "TRANSACTION_ABORTED", "a decision")
        one.committed = isinstance(outcome, Decided) and outcome.committed
        if one.home is None:
            self._note_place(one, next(iter(one.values)), outcome)
            return
        for group in one.values:
            self._note_place(one, group, (yield self._carried_out(one, group)))
        if one.committed:
            yield Ask(one.home, Finish(**_of(one)))

    def _prepare(self, one: Transaction) -> Generator[Ask, Outcome | None, bool]:
        """Begin and stage; False if it was refused, or crashed on the way."""
        if one.home is not None:
            outcome = yield Ask(one.home, Begin(**_of(one), participants=tuple(one.values)))
            if isinstance(outcome, Refused):
                self._judge(one, outcome, "TRANSACTION_ABORTED", "a beginning")
                return False
        for ask in self._stages(one):
            if self._rng.random() < 0.03:
                return False
            outcome = yield ask
            if isinstance(outcome, Refused):
                self._judge(one, outcome, "TRANSACTION_ABORTED", "a stage")
                return False
        return True

    def _stages(self, one: Transaction) -> Iterator[Ask]:
        for group, values in one.values.items():
            for stage, staged in (("a", values), ("b", one.dropped.get(group, ()))):
                for part, value in enumerate(_parts(staged, self._rng.randrange(1, 4))):
                    yield Ask(
                        group,
                        Stage(
                            **_of(one),
                            home=one.home,
                            stage=stage,
                            part=part,
                            batches=b"".join(bytes(encode([record])) for record in value),
                        ),
                    )

    def _decision(self, one: Transaction, *, commit: bool, attempts_max: int = 1_000) -> Ask:
        if one.home is not None:
            stages = tuple((group, ("a",)) for group in one.values) if commit else ()
            decide = Decide(**_of(one), commit=commit, stages=stages)
            return Ask(one.home, decide, attempts_max)
        (group,) = one.values
        command = Commit(**_of(one), stages=("a",)) if commit else Abort(**_of(one))
        return Ask(group, command, attempts_max)

    def _carried_out(self, one: Transaction, group: GroupId) -> Ask:
        if one.committed:
            return Ask(group, Commit(**_of(one), stages=("a",)))
        return Ask(group, Abort(**_of(one)))

    def _note_place(self, one: Transaction, group: GroupId, outcome: Outcome | None) -> None:
        if isinstance(outcome, Refused):
            self._judge(one, outcome, "", "the decision")
        if not isinstance(outcome, Decided):
            return
        if outcome.committed != one.committed:
            self.world.history.incidents.append(
                f"{one.name} {one.sequence} is committed: {one.committed}; group {group} says "
                f"{outcome.committed}"
            )
        if outcome.base_offset is not None and outcome.next_offset is not None:
            now = self.world.scheduler.now
            one.placed[group] = (outcome.base_offset, outcome.next_offset, now)

    def _judge(self, one: Transaction, refused: Refused, expected: str, what: str) -> None:
        if refused.code != expected:
            self.world.history.incidents.append(
                f"{one.name} {one.sequence}: {what} was refused: {refused.code} {refused.message}"
            )


class _Named(TypedDict):
    name: str
    epoch: Epoch
    sequence: Sequence


def _of(one: Transaction) -> _Named:
    return {"name": one.name, "epoch": Epoch(one.epoch), "sequence": Sequence(one.sequence)}


def _parts(values: tuple[bytes, ...], size: int) -> list[tuple[bytes, ...]]:
    return [values[start : start + size] for start in range(0, len(values), size)]
