"""A leader for tests: prepares entries with a projection and applies them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.batch import encode as encode_batch
from angarium.ids import Epoch, Index, Micros, ProducerId, Sequence, Term
from angarium.machine import (
    Applied,
    Cursors,
    Outcome,
    PartitionLimits,
    PartitionMachine,
    Prepared,
    Projection,
)

if TYPE_CHECKING:
    from angarium.machine import Command
    from angarium.machine.changes import Change

TERM = Term(3)


def batch(records: int = 1, *, producer: int = 0, epoch: int = 0, sequence: int = 0) -> bytearray:
    """Return an unstamped batch."""
    return encode_batch(
        [b"value"] * records,
        producer_id=ProducerId(producer),
        epoch=Epoch(epoch),
        sequence=Sequence(sequence),
    )


class Leader:
    """One machine with its projection; every prepared entry is committed immediately."""

    def __init__(self, limits: PartitionLimits | None = None) -> None:
        self.machine = PartitionMachine(limits)
        self.projection = Projection(self.machine)
        self.index = 0
        self.now = 1_000
        self.applied: list[Applied] = []
        self.log: list[bytes] = []

    def publish(self, *batches: bytearray) -> tuple[Outcome, ...]:
        """Append batches; returns one outcome for each."""
        prepared = self.projection.append(batches, term=TERM, now=Micros(self.now))
        self.commit(prepared.data)
        return prepared.outcomes

    def do(self, command: Command) -> Outcome:
        """Submit a command; returns its outcome."""
        return self.submit(command).outcomes[0]

    def submit(self, command: Command) -> Prepared:
        """Submit a command; returns what the projection made of it."""
        prepared = self.projection.submit(command, term=TERM, now=Micros(self.now))
        self.commit(prepared.data)
        return prepared

    def change(self, *changes: Change) -> tuple[Outcome, ...]:
        """Change groups; returns one outcome for each change."""
        self.submit(Cursors(changes=changes))
        return self.applied[-1].outcomes

    def commit(self, data: bytes | None) -> None:
        """Apply an entry, if there is one."""
        self.now += 10
        if data is None:
            return
        self.index += 1
        self.log.append(data)
        applied = self.machine.apply(Index(self.index), TERM, data)
        self.applied.append(applied)
        self.projection.confirm(Index(self.index), applied)


def assert_refused(outcome: object, code: str, words: str = "") -> None:
    """Check that an outcome is a refusal with this code, and has these words in its message."""
    assert getattr(outcome, "code", outcome) == code
    assert words in getattr(outcome, "message", "")
