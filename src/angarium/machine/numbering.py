"""The half of a partition's state that a leader must know ahead of the commit.

Offsets, the clock, producers and transactions: whoever numbers batches at the time of the append
needs them as they will be after everything that is already in the log. Consumer groups are not
among them: an acknowledgement is answered when it is committed, and numbers nothing.

One set of rules serves both sides. The machine runs it over its tables, a projection over overlays
of the same tables, so the two cannot drift apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import msgspec

from angarium.batch import TIME_MAX
from angarium.errors import (
    InvalidArgument,
    InvalidBatch,
    InvalidCommand,
    LayoutChanged,
    OffsetOutOfRange,
    TransactionAborted,
    TransactionPending,
)
from angarium.ids import Micros, Offset, Term
from angarium.machine import commands
from angarium.machine.batch_fields import NUMBERING_FIELDS
from angarium.machine.changes import StagedAck
from angarium.machine.decisions import Decisions
from angarium.machine.keys import KEYED_FROM, Keys
from angarium.machine.outcomes import (
    Appended,
    Decided,
    Done,
    Misnumbered,
    PublishedStage,
    Refused,
    Reserved,
    StageAppend,
    Trimmed,
    oversized,
    refused,
)
from angarium.machine.partition_limits import OFFSET_MAX, PartitionLimits
from angarium.machine.producers import Producers
from angarium.machine.restoring import restorable
from angarium.machine.series import NOTHING_COMMITTED, UNKNOWN_COMMITTED
from angarium.machine.transactions import Transactions

if TYPE_CHECKING:
    from angarium.machine.commands import Command, Transacting
    from angarium.machine.outcomes import Duplicate, Outcome


class Effects(msgspec.Struct):
    """What one command asks of the log and of the groups."""

    published: tuple[PublishedStage, ...] = ()
    stored: StageAppend | None = None
    drops: tuple[int, ...] = ()
    acks: tuple[StagedAck, ...] = ()
    reserved: tuple[Offset, Offset] | None = None
    trimmed_to: Offset | None = None
    is_compacted: bool = False
    restored: tuple[memoryview, ...] = ()
    latest_time: int = 0
    """Of what is restored: the clock does not stay behind it."""


class Numbering:
    """Where the next batch goes, and whether it may. A refusal changes nothing."""

    __slots__ = (
        "clock",
        "compact_until",
        "decisions",
        "fences",
        "keys",
        "limits",
        "next_offset",
        "producers",
        "start_offset",
        "tombstones_before",
        "transactions",
    )

    def __init__(self, limits: PartitionLimits) -> None:
        self.limits = limits
        self.start_offset = 0
        self.next_offset = 0
        self.clock = 0
        self.compact_until = 0
        self.tombstones_before = 0
        self.fences: tuple[tuple[int, int], ...] = ()
        """Layouts of the topic, upward, and at which offset each of them begins here."""
        self.producers = Producers()
        self.keys = Keys()
        self.transactions = Transactions()
        self.decisions = Decisions()

    def fork(self) -> Numbering:
        """Return a view that can be written ahead of this one, at once."""
        other = Numbering.__new__(Numbering)
        other.limits = self.limits
        other.start_offset, other.next_offset = self.start_offset, self.next_offset
        other.clock = self.clock
        other.compact_until = self.compact_until
        other.tombstones_before = self.tombstones_before
        other.fences = self.fences
        other.producers = self.producers.fork()
        other.keys = self.keys.fork()
        other.transactions = self.transactions.fork()
        other.decisions = self.decisions.fork()
        return other

    @property
    def layout(self) -> int:
        """The newest layout that a fence stands here for; 0: there is none."""
        return self.fences[-1][0] if self.fences else 0

    def number(
        self, *, span: int, producer: int, epoch: int, sequence: int, time: int
    ) -> Appended | Duplicate | Refused:
        """Give a batch its offset, unless it has one already or may have none."""
        base = self.next_offset
        past = base + span
        if span <= 0:
            return refused(InvalidBatch, "a batch without records cannot be numbered")
        # Refused and not wrapped round: an offset that comes twice would break every reader and
        # group.
        if past > OFFSET_MAX:
            return oversized("OFFSET_MAX", "the partition is full for ever")
        if producer:
            verdict: Duplicate | Refused | None
            if producer >= KEYED_FROM:
                verdict = self.keys.admit(
                    producer,
                    content=sequence,
                    base_offset=base,
                    next_offset=past,
                    time=time,
                    limits=self.limits,
                )
            else:
                verdict = self.producers.admit(
                    producer,
                    epoch=epoch,
                    first=sequence,
                    past=sequence + span,
                    base_offset=base,
                    next_offset=past,
                    time=time,
                    limits=self.limits,
                )
            if verdict is not None:
                return verdict
        # Only here, when everything has agreed: a refusal leaves no trace.
        self.next_offset = past
        self.clock = time
        return Appended(Offset(base), Offset(past), Micros(time))

    def repeated(
        self, *, span: int, producer: int, epoch: int, sequence: int, time: int
    ) -> Duplicate | Refused | None:
        """Judge a batch that may not be stored now; `None`: it is not, and was not before."""
        if not producer:
            return None
        if producer >= KEYED_FROM:
            return self.keys.repeated(producer, content=sequence, time=time, limits=self.limits)
        return self.producers.repeated(producer, epoch=epoch, first=sequence, past=sequence + span)

    def number_stamped(self, batch: memoryview) -> Appended | Duplicate | Refused:
        """Give a batch from the log the offset that its leader has stamped on it."""
        base, time, _, span, producer, sequence, epoch = NUMBERING_FIELDS.unpack_from(batch)
        # The leader has stamped offset and time before it proposed. The machine checks, since an
        # entry that does not fit would overwrite offsets that others have read.
        if base != self.next_offset or not self.clock < time <= TIME_MAX:
            # Either the leader is faulty, or this replica lacks records (`misnumbered`).
            return refused(InvalidCommand, f"{base} at {time} is not what comes next")
        return self.number(span=span, producer=producer, epoch=epoch, sequence=sequence, time=time)

    def misnumbered(self, batch: memoryview) -> Misnumbered | None:
        """Return how the stamp of a batch that was refused just now is wrong; None if it is not."""
        base, time, *_ = NUMBERING_FIELDS.unpack_from(batch)
        if base > self.next_offset:
            return Misnumbered.ABOVE
        if base < self.next_offset or not self.clock < time <= TIME_MAX:
            return Misnumbered.NOT_ABOVE
        return None

    def tick(self, command: commands.Cursors) -> Refused | None:
        """Let the clock go on with changes of groups, which number nothing."""
        if not command.changes:
            return refused(InvalidCommand, "an entry for groups holds no change")
        if not self.clock < command.time <= TIME_MAX:
            return refused(InvalidCommand, "the leader's clock went back")
        self.clock = command.time
        return None

    def perform(self, command: Command, *, term: Term) -> tuple[Outcome, Effects]:
        """Carry out a command that is neither an append nor about groups."""
        effects = Effects()
        # Time comes from the entry, never from a clock here: every replica must come to the same
        # state from the same log. Planted as machine-throws-dice.
        if not self.clock < command.time <= TIME_MAX:
            return refused(InvalidCommand, "the leader's clock went back"), effects
        outcome = self._perform(command, term, effects)
        if not isinstance(outcome, Refused):
            batches = sum(stage.batches for stage in effects.published)
            # Every batch of a commit gets a time of its own, a microsecond after the one before.
            self.clock = max(command.time + max(batches - 1, 0), effects.latest_time)
        return outcome, effects

    def _perform(self, command: Command, term: Term, effects: Effects) -> Outcome:
        outcome: Outcome
        match command:
            case commands.Trim():
                outcome = self._trim(command, effects)
            case commands.Reserve():
                outcome = self._reserve(command, effects)
            case commands.ProducerDelete():
                outcome = Done(self.producers.delete(command.producer, self.limits))
            case commands.Configure():
                outcome = self._configure(command)
            case commands.Clock():
                outcome = Done()
            case commands.Compact():
                outcome = self._compact(command, effects)
            case commands.Restore():
                outcome = self._restore(command, effects)
            case commands.Fence():
                outcome = self._fence(command)
            case commands.Cursors():
                raise AssertionError("groups are not numbered")
            case _:
                outcome = self._transact(command, term, effects)
        return outcome

    def _transact(self, command: Transacting, term: Term, effects: Effects) -> Outcome:
        limits = self.limits
        outcome: Outcome
        match command:
            case commands.Stage() if command.layout is not None and command.layout < self.layout:
                # A commit would bring them in behind the fence.
                outcome = self._behind_a_fence(command)
            case commands.Stage() if command.is_question:
                # That layout goes on here, so what there is says nothing; and nothing is staged.
                outcome = refused(LayoutChanged, f"layout {command.layout} has not ended here")
            case commands.Stage():
                outcome, effects.stored, effects.drops = self.transactions.stage(command, limits)
            case commands.Commit():
                outcome = self._commit(command, term, effects)
            case commands.Abort():
                outcome, effects.drops = self.transactions.abort(command, limits)
            case commands.Begin():
                outcome = self.decisions.begin(command, limits)
            case commands.Decide():
                outcome = self.decisions.decide(command, limits)
            case commands.Finish():
                outcome = self.decisions.finish(command)
            case commands.SeriesDelete():
                outcome = self._forget(command)
            case _:
                assert_never(command)
        return outcome

    def _commit(self, command: commands.Commit, term: Term, effects: Effects) -> Outcome:
        outcome, publication, effects.drops = self.transactions.commit(
            command, self.limits, next_offset=self.next_offset, term=term, fences=self.fences
        )
        effects.published, effects.acks = publication.stages, publication.acks
        self.next_offset += sum(stage.span for stage in publication.stages)
        return outcome

    def _behind_a_fence(self, command: commands.Stage) -> Decided | Refused:
        """Judge a stage that was dealt by an older layout than the partition's.

        A number of its producer's own may have been stored while that layout was in force. What
        came before or after it is of keys that other layouts have sent here, and its numbers may be
        higher than one that was never stored.
        """
        if command.home is not None or command.layout is None:
            # What of it is staged by the new layout elsewhere cannot be told from here: the whole
            # has to be done again.
            return refused(
                TransactionAborted, "the topic was given partitions meanwhile; run it again"
            )
        series = self.transactions.series.get(command.name)
        if series is not None:
            began = [one for one in self.fences if one[0] <= command.layout]
            first = series.committed_before(began[-1]) if began else NOTHING_COMMITTED
            last = series.committed_before(self.fences[len(began)])
            is_known = UNKNOWN_COMMITTED not in (first, last)
            if is_known and first < command.sequence <= last:
                return series.answer_again(command.sequence)
        return refused(
            LayoutChanged, f"dealt by layout {command.layout}; the topic's is {self.layout} by now"
        )

    def _trim(self, command: commands.Trim, effects: Effects) -> Outcome:
        wanted = command.start_offset
        if not 0 <= wanted <= self.next_offset:
            return refused(OffsetOutOfRange, f"{wanted} is not in [0, {self.next_offset}]")
        # The start never goes back: what is trimmed is gone.
        if wanted > self.start_offset:
            self.start_offset = effects.trimmed_to = wanted
        return Trimmed(Offset(self.start_offset))

    def _compact(self, command: commands.Compact, effects: Effects) -> Outcome:
        until, before = command.until, command.tombstones_before
        if not 0 <= until <= self.next_offset:
            return refused(OffsetOutOfRange, f"{until} is not in [0, {self.next_offset}]")
        # Tombstones go by the time in the log, so that no replica keeps one that another has
        # dropped.
        if before > command.time:
            return refused(InvalidArgument, "tombstones of the future are not known yet")
        # Both only ever grow: what is gone cannot be brought back.
        reached = (max(until, self.compact_until), max(before, self.tombstones_before))
        changed = reached != (self.compact_until, self.tombstones_before)
        self.compact_until, self.tombstones_before = reached
        effects.is_compacted = changed
        return Done(changed)

    def _configure(self, command: commands.Configure) -> Outcome:
        if min(msgspec.structs.astuple(command.limits)) < 0:
            return refused(InvalidArgument, "a limit is not negative")
        changed = self.limits != command.limits
        # Through the log, at the same index on every replica: limits decide what is refused, and a
        # refusal is part of the state.
        self.limits = command.limits
        return Done(changed)

    def _reserve(self, command: commands.Reserve, effects: Effects) -> Outcome:
        if not 0 < command.count <= self.limits.reserve_max:
            return oversized("reserve_max", f"{command.count} offsets cannot be reserved")
        base, past = self.next_offset, self.next_offset + command.count
        if past > OFFSET_MAX:
            return oversized("OFFSET_MAX", "the partition is full for ever")
        self.next_offset = past
        effects.reserved = (Offset(base), Offset(past))
        return Reserved(Offset(base), Offset(past))

    def _restore(self, command: commands.Restore, effects: Effects) -> Outcome:
        base, past, start = self.next_offset, command.next_offset, command.start_offset
        found = restorable(command, base=base)
        if isinstance(found, Refused):
            return found
        if past == base and start <= self.start_offset:
            return Done(changed=False)
        self.next_offset = past
        effects.restored, effects.latest_time = found.batches, found.latest_time
        if past > found.end:
            effects.reserved = (Offset(found.end), Offset(past))
        if start > self.start_offset:
            self.start_offset = effects.trimmed_to = start
        return Appended(Offset(base), Offset(past), Micros(max(command.time, found.latest_time)))

    def _fence(self, command: commands.Fence) -> Outcome:
        if command.layout <= self.layout:
            return Done(changed=False)
        # What is staged was dealt by an older layout. A commit would bring it in behind the fence,
        # where readers take it for newer than what other partitions hold before theirs.
        if self.transactions.staged_bytes:
            return refused(TransactionPending, "records are staged that a fence would overtake")
        self.fences = (*self.fences, (command.layout, self.next_offset))
        return Done()

    def _forget(self, command: commands.SeriesDelete) -> Outcome:
        """A name may be known here as a participant, as a home, or as both: all or nothing."""
        series = self.transactions.series.get(command.name)
        if series is not None and series.attempts:
            return self.transactions.delete(command)
        at_home = self.decisions.delete(command)
        if isinstance(at_home, Refused):
            return at_home
        here = self.transactions.delete(command)
        return here if isinstance(here, Refused) else Done(here.changed or at_home.changed)
