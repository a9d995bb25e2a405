"""Transactions over several partitions, as their home group sees them.

The home group of a transaction is found by hashing its name, and one entry in its log decides:
whatever is applied first, commit or abort, holds. A participant that has waited too long asks by
proposing an abort; if nothing is decided it becomes the decision, otherwise it learns the decision.

One record per name is enough. A name moves on only when its last commit has been carried out by
every participant (`Finish`), so whatever a record does not mention was either carried out
everywhere or never committed: to a question about it the answer is "aborted".
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec

from angarium.errors import ProducerFenced, TransactionAborted, TransactionPending
from angarium.machine import commands
from angarium.machine.outcomes import Decided, Done, Refused, limited, oversized, refused
from angarium.machine.overlay import Recency, RecencyOverlay
from angarium.machine.partition_limits import CONTENT_CHARACTERS_MAX, NAME_CHARACTERS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.machine.commands import Begin, Decide, Finish, SeriesDelete
    from angarium.machine.overlay import RecencyTable
    from angarium.machine.partition_limits import PartitionLimits


class Phase(IntEnum):
    """Where a transaction stands at its home."""

    OPEN = 0
    COMMITTED = 1
    """Decided; participants are being told."""
    ABORTED = 2
    FINISHED = 3
    """Committed, and carried out by every participant."""


class Decision(msgspec.Struct, frozen=True, array_like=True):
    """The newest transaction of a name, and the last one that was committed."""

    epoch: int
    sequence: int
    phase: Phase
    opened_at: int
    participants: tuple[int, ...] = ()
    stages: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """What to publish where, so that any later leader of the home can see it through."""
    committed: tuple[int, int] = (-1, -1)
    """Sequence and epoch of the newest commit."""
    content: str = ""
    """What the newest commit was of, as its owner put it: whoever commits that sequence again is
    told, and can see whether it is the same."""


class Decisions:
    """The decisions of one home group, or a leader's view ahead of them."""

    __slots__ = ("count", "records")

    def __init__(self) -> None:
        self.records: RecencyTable[str, Decision] = Recency()
        self.count = 0

    def fork(self) -> Decisions:
        """Return a view that can be written ahead of this one."""
        other = Decisions.__new__(Decisions)
        assert isinstance(self.records, Recency)
        other.records = RecencyOverlay(self.records)
        other.count = self.count
        return other

    def begin(self, command: Begin, limits: PartitionLimits) -> Refused | Decided | Done:
        """Open a transaction; an undecided one of an older epoch is thereby aborted."""
        record = self.records.get(command.name)
        verdict = self._judge_new(command, record, limits)
        if verdict is not None:
            return verdict
        if len(command.participants) > limits.participants_max:
            return oversized("participants_max", "too many partitions in one transaction")
        if record is not None and _is_at(record, command):
            # The list of participants only becomes longer while the transaction is open.
            joined = tuple(dict.fromkeys((*record.participants, *command.participants)))
            if len(joined) > limits.participants_max:
                return oversized("participants_max", "too many partitions in one transaction")
            if joined == record.participants:
                return Done(changed=False)
            self.records[command.name] = msgspec.structs.replace(record, participants=joined)
            return Done()
        self._put(command, record, Phase.OPEN, limits, participants=command.participants)
        return Done()

    def decide(self, command: Decide, limits: PartitionLimits) -> Refused | Decided:
        """Decide, unless that was done before: then the answer is how."""
        record = self.records.get(command.name)
        # A participant asks how it ended, by proposing to abort. If it was decided that stands; if
        # not, it is aborted now, for good, and a commit that comes later is refused. That is what
        # lets anybody clear up after an owner that is gone.
        if record is not None and not command.commit:
            asked = _known_end(record, command)
            if asked is not None:
                return asked
        verdict = self._judge_new(command, record, limits)
        if verdict is not None:
            return verdict
        if len(command.stages) > limits.participants_max:
            return oversized("participants_max", "too many partitions in one transaction")
        if len(command.content) > CONTENT_CHARACTERS_MAX:
            return oversized("CONTENT_CHARACTERS_MAX", "a commit says too much of what it is of")
        phase = Phase.COMMITTED if command.commit else Phase.ABORTED
        participants: tuple[int, ...] = tuple(group for group, _ in command.stages)
        if record is not None and _is_at(record, command):
            participants = tuple(dict.fromkeys((*record.participants, *participants)))
        # From the moment this is applied the transaction is committed, whatever happens to its
        # owner: the stages to publish are part of the decision, and any leader of this home
        # carries it out.
        self._put(
            command,
            record,
            phase,
            limits,
            participants=participants,
            stages=command.stages,
            content=command.content,
        )
        return Decided(command.commit)

    def finish(self, command: Finish) -> Refused | Done:
        """Note that every participant has carried the decision out."""
        record = self.records.get(command.name)
        if record is None or not _is_at(record, command):
            return Done(changed=False)
        if record.phase is Phase.OPEN:
            return refused(TransactionPending, f"{command.name} is not decided yet")
        # Aborted ones need no finishing: participants drop what they staged when they ask.
        if record.phase is not Phase.COMMITTED:
            return Done(changed=False)
        # Name, sequence and content stay: a repeated commit is answered from them.
        self.records[command.name] = msgspec.structs.replace(
            record, phase=Phase.FINISHED, participants=(), stages=()
        )
        return Done()

    def delete(self, command: SeriesDelete) -> Refused | Done:
        """Forget a name that has nothing under way."""
        record = self.records.get(command.name)
        if record is None:
            return Done(changed=False)
        if record.phase in {Phase.OPEN, Phase.COMMITTED}:
            return refused(TransactionPending, f"{command.name} has an open transaction")
        del self.records[command.name]
        self.count -= 1
        return Done()

    def unfinished(self) -> Iterator[tuple[str, Decision]]:
        """Yield the commits that not every participant is known to have carried out.

        Only of the real tables. Costs one look at each name that is known.
        """
        assert isinstance(self.records, dict)
        for name, record in self.records.items():
            if record.phase is Phase.COMMITTED:
                yield name, record

    def _judge_new(
        self, command: Begin | Decide, record: Decision | None, limits: PartitionLimits
    ) -> Refused | Decided | None:
        """Say why the transaction cannot be opened or decided, if it cannot."""
        name = command.name
        if record is None:
            if not 0 < len(name) <= NAME_CHARACTERS_MAX:
                return oversized("NAME_CHARACTERS_MAX", "a transaction's name is too long or empty")
            if self.count >= limits.series_max and self._forgettable(command.time, limits) is None:
                return limited("series_max", "the home knows no more names of transactions")
            return None
        here, there = (command.epoch, command.sequence), (record.epoch, record.sequence)
        verdict: Refused | Decided | None = None
        if command.epoch < record.epoch:
            verdict = refused(ProducerFenced, f"{name} is in epoch {record.epoch} now")
        # Whoever commits again after a lost answer is told yes, and not that it is too late.
        elif command.sequence <= record.committed[0]:
            verdict = Decided(True, repeated=True)
        elif here < there or (here == there and record.phase is Phase.ABORTED):
            verdict = refused(TransactionAborted, f"{name} {here} has been aborted")
        elif here == there and isinstance(command, commands.Decide):
            age = command.time - record.opened_at
            # By the time in the log, so that every replica refuses it, or none.
            if command.commit and age > limits.transaction_micros_max:
                verdict = refused(TransactionAborted, f"{name} has been open for too long")
        # One after the other: a participant carries out commits in the order of their sequences.
        elif here > there and record.phase is Phase.COMMITTED:
            verdict = refused(TransactionPending, f"{name} {there} is being carried out")
        elif here > there and record.phase is Phase.OPEN and command.epoch == record.epoch:
            verdict = refused(TransactionPending, f"{name} {there} is not decided yet")
        return verdict

    def _make_room(self, now: int, limits: PartitionLimits) -> None:
        """Forget the name unused for longest where there is no room for another one."""
        if self.count >= limits.series_max:
            name = self._forgettable(now, limits)
            assert name is not None, "judged before"
            del self.records[name]
            self.count -= 1

    def _forgettable(self, now: int, limits: PartitionLimits) -> str | None:
        """Return the name unused for longest, if it has been for long enough."""
        for name in self.records.in_order():
            record = self.records.get(name)
            assert record is not None, "it was listed"
            if now - record.opened_at <= limits.decisions_micros_min:
                return None  # those behind it were used later
            if record.phase in {Phase.ABORTED, Phase.FINISHED}:
                return name
        return None

    def _put(
        self,
        command: Begin | Decide,
        record: Decision | None,
        phase: Phase,
        limits: PartitionLimits,
        *,
        participants: tuple[int, ...] = (),
        stages: tuple[tuple[int, tuple[str, ...]], ...] = (),
        content: str = "",
    ) -> None:
        committed = record.committed if record is not None else (-1, -1)
        opened_at = int(command.time)
        if record is None:
            self._make_room(command.time, limits)
            self.count += 1
        elif _is_at(record, command):
            opened_at = record.opened_at
        if phase is Phase.COMMITTED:
            committed = (command.sequence, command.epoch)
        else:
            # What the last commit was of outlives the transactions behind it. Planted as
            # what-a-commit-was-of-is-lost-with-the-next-one.
            content = record.content if record is not None else ""
        self.records[command.name] = Decision(
            epoch=command.epoch,
            sequence=command.sequence,
            phase=phase,
            opened_at=opened_at,
            participants=participants,
            stages=stages,
            committed=committed,
            content=content,
        )


def _is_at(record: Decision, command: Begin | Decide | Finish) -> bool:
    return record.epoch == command.epoch and record.sequence == command.sequence


def _known_end(record: Decision, command: Decide) -> Decided | None:
    """Return how the transaction that a participant asks about ended, if that is settled."""
    here, there = (command.epoch, command.sequence), (record.epoch, record.sequence)
    if (command.sequence, command.epoch) == record.committed:
        return Decided(True, repeated=True)
    # A later one exists, so this one was never committed: commits of a name come in order.
    if here < there or command.sequence <= record.committed[0]:
        return Decided(False, repeated=True)
    if here == there and record.phase is Phase.ABORTED:
        return Decided(False, repeated=True)
    return None
