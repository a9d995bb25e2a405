"""The leader's view of the partition as it will be when everything in its log is committed.

To number a batch when it is appended, a leader must judge it as the machine will: after all that
is in the log already, committed or not. A projection is the machine's rules run over thin overlays
of the machine's own tables, so it is made in microseconds and holds only the uncommitted tail.

Applied must equal projected. `confirm` compares the two after every applied entry and raises
`Diverged` if they differ: a replica that finds so must stop serving rather than go on.

Make one when leadership is established and everything before it is applied (a new leader serves
nothing earlier), and throw it away with the leadership. If the log does not take a prepared entry,
the projection has run ahead of it: make a new one and `replay` the entries not yet applied.
"""

from __future__ import annotations

from collections import deque
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.batch import stamp
from angarium.errors import InvalidCommand, NotFound, TransactionAborted
from angarium.ids import Index, Micros, Offset, Term
from angarium.machine.batch_fields import NUMBERING_FIELDS
from angarium.machine.commands import (
    APPEND,
    Commit,
    Cursors,
    Decide,
    batches_of,
    decode,
    encode,
    encode_append,
)
from angarium.machine.outcomes import (
    Appended,
    Applied,
    Decided,
    Done,
    Outcome,
    Refused,
    Staged,
)
from angarium.machine.overlay import Overlay

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from angarium.ids import Buffer
    from angarium.machine.commands import Command
    from angarium.machine.partition import PartitionMachine


NOTHING_BARRED: Final[Mapping[int, Refused]] = MappingProxyType({})

_ACTED_ON: Final = frozenset((NotFound.code, TransactionAborted.code))
"""A stage that is not there is left out of a commit; stages of what was aborted are dropped."""


class Diverged(AssertionError):
    """What was applied is not what was projected: the machine is not deterministic after all."""


class Prepared(msgspec.Struct, frozen=True):
    """An entry to propose, and what its requests will be answered when it is applied."""

    data: bytes | None
    """Nothing when no request is new: all are duplicates, repeated or refused. A duplicate's
    original may itself still be uncommitted, so an answer that promises durability waits until
    everything prepared before has been applied."""

    outcomes: tuple[Outcome, ...]
    """One for each batch, or for the command; none for `Cursors`, known only when applied."""


class _Step(msgspec.Struct, frozen=True):
    next_offset: int
    clock: int
    outcomes: tuple[Outcome, ...] | None


class Projection:
    """The partition ahead of its commits. Memory is bounded by the uncommitted tail."""

    __slots__ = ("_first", "_now", "_numbering", "_overlays", "_steps")

    def __init__(self, machine: PartitionMachine) -> None:
        numbering = machine.numbering.fork()
        self._numbering = numbering
        self._now: int | None = None
        """The latest time that the leader has said."""
        self._steps: deque[_Step] = deque()
        self._first = 1
        """The number of the step at the left of `_steps`."""
        tables = (
            numbering.producers.rows,
            numbering.producers.named,
            numbering.keys.rows,
            numbering.transactions.series,
            numbering.transactions.stages,
            numbering.decisions.records,
        )
        self._overlays = tuple(table for table in tables if isinstance(table, Overlay))
        # Every table that numbering writes to must be laid over, or the projection would write
        # into the machine.
        assert len(self._overlays) == len(tables)
        self._next_step()

    @property
    def next_offset(self) -> Offset:
        """The offset that the next record will get."""
        return Offset(self._numbering.next_offset)

    @property
    def unconfirmed(self) -> int:
        """How many prepared entries have not been applied yet."""
        return len(self._steps)

    def rows(self) -> int:
        """Return how many rows the overlays hold."""
        return sum(len(overlay) for overlay in self._overlays)

    # --- preparing ---------------------------------------------------------------------------

    @property
    def layout(self) -> int:
        """The newest layout that a fence stands for in the log, committed or not."""
        return self._numbering.layout

    def append(
        self,
        batches: Sequence[bytearray | memoryview],
        *,
        term: Term,
        now: Micros,
        barred: Mapping[int, Refused] = NOTHING_BARRED,
    ) -> Prepared:
        """Number `batches`, stamping those that are new in place, and pack them into one entry.

        Those whose row is in `barred` are refused so, unless they are stored already.
        """
        numbering = self._numbering
        number = numbering.number
        outcomes: list[Outcome] = []
        accepted = []
        accepted_outcomes = []
        now = self._time(now)
        for row, batch in enumerate(batches):
            _, _, _, span, producer, sequence, epoch = NUMBERING_FIELDS.unpack_from(batch)
            if barred and row in barred:
                # Its answer may have been lost. Only who was told that it is not stored may deal
                # it to another partition.
                known = numbering.repeated(
                    span=span,
                    producer=producer,
                    epoch=epoch,
                    sequence=sequence,
                    time=max(now, numbering.clock + 1),
                )
                outcomes.append(barred[row] if known is None else known)
                continue
            clock = numbering.clock
            outcome = number(
                span=span,
                producer=producer,
                epoch=epoch,
                sequence=sequence,
                # Strictly increasing, even when the clock stands still or went back.
                time=now if now > clock else clock + 1,
            )
            outcomes.append(outcome)
            if type(outcome) is Appended:
                stamp(
                    batch,
                    base_offset=outcome.base_offset,
                    term=term,
                    append_time=outcome.append_time,
                )
                accepted.append(batch)
                accepted_outcomes.append(outcome)
        # Nothing new, and so no entry: a client that repeats itself costs the log nothing.
        if not accepted:
            return Prepared(None, tuple(outcomes))
        self._project(tuple(accepted_outcomes))
        return Prepared(encode_append(accepted), tuple(outcomes))

    def submit(self, command: Command, *, term: Term, now: Micros) -> Prepared:
        """Prepare the entry for `command`, unless it would change nothing."""
        numbering = self._numbering
        time = Micros(max(self._time(now), numbering.clock + 1))
        command = msgspec.structs.replace(command, time=time)
        if isinstance(command, Cursors):
            verdict = numbering.tick(command)
            if verdict is not None:
                return Prepared(None, (verdict,))
            self._project(None)
            return Prepared(encode(command), ())
        clock = numbering.clock
        outcome, _ = numbering.perform(command, term=term)
        if _is_idle(outcome) and not _is_acted_on(command, outcome):
            # No entry will carry this time. The next one must follow on the clock that the machine
            # will have.
            numbering.clock = clock
            return Prepared(None, (outcome,))
        self._project((outcome,))
        return Prepared(encode(command), (outcome,))

    def time(self, now: Micros) -> Micros:
        """Return what time it is in the partition when it is `now` for its leader.

        Later than `now` where a former leader's clock was ahead: time cannot go back, and would
        stand still until the others have caught up. It goes half as fast instead.
        """
        clock = self._numbering.clock
        if self._now is None:
            self._now = now
        return now if now > clock else Micros(clock + max(now - self._now, 0) // 2)

    def forget_pace(self) -> None:
        """Hear that the leader's time has leapt: what lies between has not passed.

        Half of it would be added to a time that is ahead anyway. Seed 102657: a clock that was an
        hour behind was put right, and the partition's time went half an hour ahead.
        """
        self._now = None

    def _time(self, now: Micros) -> Micros:
        time = self.time(now)
        # Only when something is numbered: the half speed counts from there.
        self._now = now
        return time

    def replay(self, term: Term, data: Buffer) -> None:
        """Take an entry that is in the log already and not applied yet, in log order."""
        if not data:
            return
        numbering = self._numbering
        outcomes: list[Outcome] = []
        try:
            if data[0] == APPEND:
                outcomes.extend(map(numbering.number_stamped, batches_of(data)))
            else:
                command = decode(data)
                if isinstance(command, Cursors):
                    numbering.tick(command)
                    self._project(None)
                    return
                outcomes.append(numbering.perform(command, term=term)[0])
        except InvalidCommand as error:
            outcomes = [Refused(error.code, str(error))]
        self._project(tuple(outcomes))

    # --- confirming --------------------------------------------------------------------------

    def confirm(self, index: Index, applied: Applied) -> None:
        """Compare what the machine made of the entry at `index` with what was projected.

        To be called after each applied entry, in order. One without outcomes had no data: it was
        Raft's own, and nothing was projected for it.
        """
        if not applied.outcomes:
            return
        # While this replica leads, every entry comes from its own proposals or from the tail that
        # `replay` took in.
        if not self._steps:
            raise Diverged(f"entry {index} was applied but never projected")
        step = self._steps.popleft()
        if (
            step.next_offset != applied.next_offset
            or step.clock != applied.clock
            or (step.outcomes is not None and step.outcomes != applied.outcomes)
        ):
            # Callers have been promised offsets by the projection. If the machine comes to others
            # it is not deterministic, and going on would tell them something untrue.
            raise Diverged(f"entry {index}: projected {step}, applied {applied.outcomes}")
        done = self._first
        self._first += 1
        for overlay in self._overlays:
            # The machine has these rows now. Forgetting them is what bounds the projection by the
            # uncommitted tail.
            overlay.forget(done)

    def _project(self, outcomes: tuple[Outcome, ...] | None) -> None:
        numbering = self._numbering
        self._steps.append(_Step(numbering.next_offset, numbering.clock, outcomes))
        self._next_step()

    def _next_step(self) -> None:
        step = self._first + len(self._steps)
        for overlay in self._overlays:
            overlay.step = step


def _is_acted_on(command: Command, outcome: Outcome) -> bool:
    """Tell whether somebody drops stages because of this refusal.

    It goes through the log like an agreement. A leader that was replaced and does not know it yet
    may lack what was staged, or decided, since.
    """
    return (
        isinstance(command, Commit | Decide)
        and isinstance(outcome, Refused)
        and outcome.code in _ACTED_ON
    )


def _is_idle(outcome: Outcome) -> bool:
    """Tell whether a command with this outcome leaves everything as it was."""
    match outcome:
        case Refused():
            return True
        case Staged() | Decided():
            return outcome.repeated
        case Done():
            return not outcome.changed
    return False
