"""Staged transactions, as a participating partition sees them.

What is staged waits outside the partition and enters it, with offsets, when its commit applies: a
reader never meets a record that might go away. A commit names exactly the stages it includes; the
others, left behind by failed attempts, are dropped.

A *name* stands for a series of transactions. Within it `(epoch, sequence)` tells them apart:
- the epoch is the owner's run; a newer one fences what an older one still stages;
- sequences of commits only grow; a commit at or below the last one is answered "already done";
- one that was ended cannot be reached again, so a late retry never hits a later transaction.

Who decides? Without a home group, this partition: a commit of a fenced epoch, or after the time
limit, is refused. With one, the home group: it alone knows, so here nothing is dropped or refused
on suspicion; an overdue transaction stays until its home has been asked. Whoever proposes a commit
or abort for such a transaction must have the home's decision. Commits of one name are carried out
in the order of their sequences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from angarium.errors import (
    InvalidArgument,
    InvalidBatch,
    NotFound,
    ProducerFenced,
    SequenceGap,
    TransactionAborted,
    TransactionPending,
)
from angarium.ids import Micros, Offset
from angarium.machine.batch_fields import spans as spans_of
from angarium.machine.changes import StagedAck
from angarium.machine.outcomes import (
    Decided,
    Done,
    PublishedStage,
    Refused,
    StageAppend,
    Staged,
    limited,
    oversized,
    refused,
)
from angarium.machine.overlay import Overlay, Recency, RecencyOverlay
from angarium.machine.partition_limits import NAME_CHARACTERS_MAX
from angarium.machine.series import Attempt, OpenStage, Series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import Term
    from angarium.machine.commands import Abort, Commit, SeriesDelete, Stage
    from angarium.machine.overlay import RecencyTable, Table
    from angarium.machine.partition_limits import PartitionLimits
    from angarium.machine.series import StageKey


class Publication(msgspec.Struct, frozen=True):
    """What a commit brings to light."""

    stages: tuple[PublishedStage, ...] = ()
    acks: tuple[StagedAck, ...] = ()


class Transactions:
    """The transactions of one partition, or a leader's view ahead of them."""

    __slots__ = ("next_slot", "series", "series_count", "staged_bytes", "stages")

    def __init__(self) -> None:
        self.series: RecencyTable[str, Series] = Recency()
        self.stages: Table[StageKey, OpenStage] = {}
        self.series_count = 0
        self.staged_bytes = 0
        self.next_slot = 1

    def fork(self) -> Transactions:
        """Return a view that can be written ahead of this one."""
        other = Transactions.__new__(Transactions)
        assert isinstance(self.series, Recency)
        other.series = RecencyOverlay(self.series)
        other.stages = Overlay(self.stages)
        other.series_count = self.series_count
        other.staged_bytes = self.staged_bytes
        other.next_slot = self.next_slot
        return other

    # --- staging -----------------------------------------------------------------------------

    def stage(
        self, command: Stage, limits: PartitionLimits
    ) -> tuple[Refused | Staged | Decided, StageAppend | None, tuple[int, ...]]:
        """Take one part of a stage. Returns the answer, what to store, and slots to drop."""
        name, here = command.name, (command.epoch, command.sequence)
        series = self.series.get(name)
        known = series or Series()
        # Judged completely before anything is written: a refusal changes nothing, so that a
        # projection which is refused can go on, and so that every replica refuses alike.
        verdict = self._judge_stage(command, known, limits, is_new=series is None)
        if verdict is not None:
            return verdict, None, ()
        attempt = known.attempt(*here) or Attempt(*here, command.home, command.time)
        grown = self._grown(command, attempt, limits)
        if not isinstance(grown, OpenStage):
            return grown, None, ()

        # A newer run gives up what this partition alone would have decided for an older one. Only
        # without a home. A transaction with a home may have been committed there already, and must
        # not be dropped here before the home has been asked.
        left = [one for one in known.attempts if one.home is None and one.epoch < command.epoch]
        drops = tuple(slot for one in left for slot in self._drop(name, one))
        kept = [one for one in known.attempts if one not in left and one != attempt]
        if command.stage not in attempt.stages:
            # Slots are never used again: the side file of a dropped stage may still be on disk,
            # and the log may bring its parts once more after a restart.
            self.next_slot += 1
            attempt = msgspec.structs.replace(attempt, stages=(*attempt.stages, command.stage))
        self.stages[name, *here, command.stage] = grown
        self.staged_bytes += len(command.batches)
        if series is None:
            self._make_room(command.time, limits)
            self.series_count += 1
        self.series[name] = msgspec.structs.replace(
            known,
            epoch=max(known.epoch, command.epoch),
            # So that a late part of the fenced run does not open its transaction again.
            closed=max((known.closed, *((one.epoch, one.sequence) for one in left))),
            attempts=(*kept, attempt),
        )
        stored = StageAppend(grown.slot, command.part, command.batches)
        return Staged(grown.parts), stored, drops

    def _judge_stage(
        self, command: Stage, known: Series, limits: PartitionLimits, *, is_new: bool
    ) -> Refused | Decided | None:
        """Say why nothing can be staged for this transaction, if so."""
        name, here = command.name, (command.epoch, command.sequence)
        attempt = known.attempt(*here)
        verdict: Refused | Decided | None = None
        if is_new:
            verdict = self._judge_new_name(name, command.time, limits)
        # Fencing: the owner has been started anew, and what its earlier run still sends must not
        # mix with it.
        elif command.epoch < known.epoch:
            verdict = refused(ProducerFenced, f"{name} is in epoch {known.epoch} now")
        elif command.sequence <= known.committed:
            # The answer to a commit was lost, and its owner starts over. It is told that all is
            # done.
            verdict = known.answer_again(command.sequence)
        elif attempt is not None:
            if attempt.home != command.home:
                verdict = refused(InvalidArgument, f"{name} is decided by {attempt.home}")
            elif attempt.is_overdue(command.time, limits):
                verdict = refused(TransactionAborted, f"{name} has been open for too long")
        elif here <= known.closed:
            verdict = refused(TransactionAborted, f"{name} {here} has been aborted")
        # One at a time where this partition decides: it commits in the order of sequences.
        elif any(one.home is None and one.epoch == command.epoch for one in known.attempts):
            verdict = refused(TransactionPending, f"{name} has an open transaction")
        elif len(known.attempts) >= limits.attempts_max:
            verdict = limited("attempts_max", f"{name} has too many undecided transactions")
        return verdict

    def _judge_new_name(self, name: str, now: int, limits: PartitionLimits) -> Refused | None:
        if not 0 < len(name) <= NAME_CHARACTERS_MAX:
            return oversized("NAME_CHARACTERS_MAX", "a transaction's name is too long or empty")
        if self.series_count >= limits.series_max and self._forgettable(now, limits) is None:
            return limited("series_max", "the partition knows no more names of transactions")
        return None

    def _make_room(self, now: int, limits: PartitionLimits) -> None:
        """Forget the name unused for longest where there is no room for another one."""
        if self.series_count >= limits.series_max:
            name = self._forgettable(now, limits)
            assert name is not None, "judged before"
            del self.series[name]
            self.series_count -= 1

    def _forgettable(self, now: int, limits: PartitionLimits) -> str | None:
        """Return the name unused for longest of those that a home remembers, if long enough.

        Costs a look at each name that nobody else remembers and that was used before it.
        """
        for name in self.series.in_order():
            series = self.series.get(name)
            assert series is not None, "it was listed"
            # Open, or decided here and nowhere else: forgetting it would let a repeated commit
            # store everything once more. Only what a home remembers may be forgotten.
            if series.attempts or not series.ended_at:
                continue
            return name if now - series.ended_at > limits.series_micros_min else None
        return None

    def _grown(
        self, command: Stage, attempt: Attempt, limits: PartitionLimits
    ) -> OpenStage | Refused | Staged:
        """Return the stage as it is with this part, or why it does not become so."""
        key = (command.name, command.epoch, command.sequence, command.stage)
        old = self.stages.get(key) or OpenStage(self.next_slot)
        verdict = self._judge_part(command, attempt, old, limits)
        if verdict is not None:
            return verdict
        try:
            spans = spans_of(command.batches)
        except InvalidBatch as error:
            return refused(InvalidBatch, str(error))
        return OpenStage(
            old.slot,
            old.parts + 1,
            old.batches + len(spans),
            old.span + sum(spans),
            old.size + len(command.batches),
            old.acks + command.acks,
        )

    def _judge_part(
        self, command: Stage, attempt: Attempt, old: OpenStage, limits: PartitionLimits
    ) -> Refused | Staged | None:
        verdict: Refused | Staged | None = None
        if command.part < 0:
            verdict = refused(InvalidArgument, "parts are counted from 0")
        # Sent again because the answer was lost. What is stored stays as it is.
        elif command.part < old.parts:
            verdict = Staged(old.parts, repeated=True)
        # A part in between is missing. Taking this one would commit a stage with a hole.
        elif command.part > old.parts:
            verdict = refused(SequenceGap, f"expected part {old.parts}, got {command.part}")
        elif not 0 < len(command.stage) <= NAME_CHARACTERS_MAX:
            verdict = oversized("NAME_CHARACTERS_MAX", "a stage's name is too long or empty")
        elif old.parts == 0 and len(attempt.stages) >= limits.stages_max:
            verdict = limited("stages_max", "the transaction has no room for another stage")
        # Staged data cannot be trimmed away while nobody has decided, so it is bounded when it
        # comes in.
        elif self.staged_bytes + len(command.batches) > limits.staged_bytes_max:
            verdict = limited("staged_bytes_max", "too much is staged and not decided")
        elif len(old.acks) + len(command.acks) > limits.staged_acks_max:
            verdict = limited("staged_acks_max", "too many acknowledgements wait in the stage")
        elif any(not 0 <= start < end for _, _, start, end in command.acks):
            verdict = refused(InvalidArgument, "an acknowledged range is empty or reversed")
        return verdict

    # --- deciding ----------------------------------------------------------------------------

    def commit(
        self,
        command: Commit,
        limits: PartitionLimits,
        *,
        next_offset: int,
        term: Term,
        fences: tuple[tuple[int, int], ...] = (),
    ) -> tuple[Refused | Decided, Publication, tuple[int, ...]]:
        """Carry a commit out. Returns the answer, what to publish, and slots to drop."""
        name = command.name
        series = self.series.get(name)
        known = series or Series()
        verdict = self._judge_commit(command, known, limits, is_new=series is None)
        if verdict is not None:
            return verdict, Publication(), ()

        attempt = known.attempt(command.epoch, command.sequence)
        stages: list[PublishedStage] = []
        acks: list[StagedAck] = []
        # Offsets and times are fixed by the machine, in the order in which the commit names its
        # stages, and so alike on every replica; the batches are stamped when they are brought in.
        offset, time = next_offset, int(command.time)
        for stage in command.stages:
            held = self.stages.get((name, command.epoch, command.sequence, stage))
            assert held is not None, "judged above"
            acks += held.acks
            if held.batches:
                stages.append(
                    PublishedStage(
                        held.slot, Offset(offset), term, Micros(time), held.batches, held.span
                    )
                )
                offset += held.span
                time += held.batches
        # Attempts of earlier sequences can only be left over from failed runs; those that a home
        # might have committed were excluded above.
        ended = [one for one in known.attempts if one.sequence <= command.sequence]
        assert attempt is None or attempt in ended
        drops = tuple(slot for one in ended for slot in self._drop(name, one))
        if series is None:
            self._make_room(command.time, limits)
            self.series_count += 1
        here = (command.epoch, command.sequence)
        self.series[name] = Series(
            epoch=max(known.epoch, command.epoch),
            committed=command.sequence,
            base_offset=next_offset,
            next_offset=offset,
            closed=max((known.closed, here, *((one.epoch, one.sequence) for one in ended))),
            attempts=tuple(one for one in known.attempts if one not in ended),
            ended_at=known.ended_since(attempt, command.time, commits=True),
            fenced=known.fenced_by(fences) if command.counts_fences else known.fenced,
        )
        decided = Decided(True, Offset(next_offset), Offset(offset))
        return decided, Publication(tuple(stages), tuple(acks)), drops

    def _judge_commit(
        self, command: Commit, known: Series, limits: PartitionLimits, *, is_new: bool
    ) -> Refused | Decided | None:
        name, here = command.name, (command.epoch, command.sequence)
        attempt = known.attempt(*here)
        verdict: Refused | Decided | None = None
        # First of all, whatever the epoch is: a commit that was carried out is answered with yes,
        # also to a run that has been fenced since.
        if command.sequence <= known.committed:
            verdict = known.answer_again(command.sequence)
        elif is_new and (full := self._judge_new_name(name, command.time, limits)) is not None:
            verdict = full
        elif attempt is None and here <= known.closed:
            verdict = refused(TransactionAborted, f"{name} {here} has been aborted")
        # With a home the epoch does not matter: the home has decided, and fencing came too late.
        elif command.epoch < known.epoch and (attempt is None or attempt.home is None):
            verdict = refused(ProducerFenced, f"{name} is in epoch {known.epoch} now")
        elif (
            attempt is not None
            and attempt.home is None
            and (attempt.is_overdue(command.time, limits))
        ):
            verdict = refused(TransactionAborted, f"{name} has been open for too long")
        elif any(
            one.home is not None and one.sequence < command.sequence for one in known.attempts
        ):
            # It may have been committed at its home: then it has to come first.
            verdict = refused(TransactionPending, f"{name} has an earlier one to be resolved")
        elif len(set(command.stages)) != len(command.stages):
            verdict = refused(NotFound, "a stage is named twice")
        else:
            for stage in command.stages:
                if self.stages.get((name, *here, stage)) is None:
                    verdict = refused(NotFound, f"nothing is staged as {stage}")
                    break
        return verdict

    def abort(
        self, command: Abort, limits: PartitionLimits
    ) -> tuple[Refused | Decided, tuple[int, ...]]:
        """Drop a transaction, and keep late retries from opening it again."""
        name, here = command.name, (command.epoch, command.sequence)
        series = self.series.get(name)
        if series is None:
            verdict = self._judge_new_name(name, command.time, limits)
            if verdict is not None:
                return verdict, ()
        known = series or Series()
        attempt = known.attempt(*here)
        if attempt is None:
            if command.sequence <= known.committed:
                return known.answer_again(command.sequence), ()
            if here <= known.closed:
                return Decided(False, repeated=True), ()
        if series is None:
            self._make_room(command.time, limits)
            self.series_count += 1
        drops = self._drop(name, attempt) if attempt is not None else ()
        self.series[name] = msgspec.structs.replace(
            known,
            # Also if nothing was staged here: a part that is still on its way must not open it
            # again later.
            closed=max(known.closed, here),
            attempts=tuple(one for one in known.attempts if one is not attempt),
            ended_at=known.ended_since(attempt, command.time, commits=False),
        )
        return Decided(False), drops

    def delete(self, command: SeriesDelete) -> Refused | Done:
        """Forget a name that has nothing open."""
        series = self.series.get(command.name)
        if series is None:
            return Done(changed=False)
        if series.attempts:
            return refused(TransactionPending, f"{command.name} has an open transaction")
        del self.series[command.name]
        self.series_count -= 1
        return Done()

    def open_slots(self) -> dict[int, int]:
        """Return each open stage's slot and number of parts. Only of the real tables."""
        assert isinstance(self.stages, dict)
        return {held.slot: held.parts for held in self.stages.values()}

    def overdue(self, now: int, limits: PartitionLimits) -> Iterator[tuple[str, Attempt]]:
        """Yield what has been open for too long: to be aborted here, or asked about at home.

        Only of the real tables. Costs one look at each name that is known.
        """
        for name, attempt in self.open():
            if attempt.is_overdue(now, limits):
                yield name, attempt

    def open(self) -> Iterator[tuple[str, Attempt]]:
        """Yield what is not decided here yet, at the same cost."""
        assert isinstance(self.series, dict)
        for name, series in self.series.items():
            for attempt in series.attempts:
                yield name, attempt

    def acknowledging(self) -> Iterator[tuple[str, Attempt, tuple[StagedAck, ...]]]:
        """Yield the open stages that acknowledge records: whose they are, and what they hold.

        Only of the real tables. Costs one look at each open stage.
        """
        assert isinstance(self.stages, dict)
        for (name, epoch, sequence, _), held in self.stages.items():
            if held.acks:
                series = self.series.get(name)
                attempt = (series or Series()).attempt(epoch, sequence)
                assert attempt is not None, "a stage belongs to an attempt"
                yield name, attempt, held.acks

    def _drop(self, name: str, attempt: Attempt) -> tuple[int, ...]:
        """Remove the stages of `attempt` and return their slots."""
        slots = []
        for stage in attempt.stages:
            key = (name, attempt.epoch, attempt.sequence, stage)
            held = self.stages.get(key)
            assert held is not None, "an attempt lists the stages there are"
            self.staged_bytes -= held.size
            slots.append(held.slot)
            del self.stages[key]
        return tuple(slots)
