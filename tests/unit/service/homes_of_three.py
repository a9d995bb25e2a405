"""Machines of a few groups, and procedures that are run against them, without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from angarium.ids import Epoch, Index, Micros, RaftGroupId, Term
from angarium.machine import PartitionMachine, encode
from angarium.machine.commands import Stage
from angarium.service.transactions import holding
from angarium.service.transactions.procedure import inner, told

if TYPE_CHECKING:
    from angarium.machine.commands import Command, Transacting
    from angarium.machine.outcomes import Outcome
    from angarium.service.transactions.procedure import Named, Procedure
    from angarium.wire.operations.transactions import Told

T = TypeVar("T")
HOME, LEFT, RIGHT = RaftGroupId(1), RaftGroupId(2), RaftGroupId(3)


class CutOff(Exception):
    """The procedure is left alone in the middle."""


class Groups:
    """Three partitions whose every command is applied at once."""

    def __init__(self) -> None:
        self.machines = {group: PartitionMachine() for group in (HOME, LEFT, RIGHT)}
        self._index = 0
        self.now = 1_000_000

    def apply(self, group: RaftGroupId, command: Command) -> Outcome:
        """Apply one command, as if it were committed."""
        self._index += 1
        self.now += 1_000
        timed = type(command)(
            **{
                **{field: getattr(command, field) for field in command.__struct_fields__},
                "time": Micros(self.now),
            }
        )
        machine = self.machines[group]
        return machine.apply(Index(self._index), Term(1), encode(timed)).outcomes[0]

    def ask(self, group: RaftGroupId, command: Transacting) -> Told:
        """Answer as a leader does."""
        machine = self.machines[group]
        if isinstance(command, Stage):
            no = holding.judged(machine, command)
            if no is not None:
                return no
        return told(machine, command.name, self.apply(group, command))

    def follow(self, steps: Procedure[T], *, asks_max: int = 1_000) -> T:
        """Run a procedure, or only so many of its questions: then `CutOff`."""
        asks = next(steps)
        while True:
            answers = []
            for group, command in asks:
                if not asks_max:
                    raise CutOff
                asks_max -= 1
                answers.append(self.ask(group, command))
            try:
                asks = steps.send(tuple(answers))
            except StopIteration as done:
                result: T = done.value
                return result

    def end(self, group: RaftGroupId) -> int:
        """Return how many records are visible in a group."""
        return self.machines[group].next_offset


def named(sequence: int, *, epoch: int = 0, name: str = "n") -> Named:
    """Return which transaction is meant."""
    return {"name": name, "epoch": Epoch(epoch), "sequence": inner(sequence)}
