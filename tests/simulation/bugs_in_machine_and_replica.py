"""Bugs planted where entries get their meaning, and where clients get their answers."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import msgspec
from tests.simulation.planting import Replaced, bug
from tests.simulation.variants import (
    held_back,
    paced,
    redriving,
    scripted,
    staging,
    staging_anew,
    transacting,
    usual,
)

from angarium.errors import AngariumError, NotLeader
from angarium.ids import Index, Term
from angarium.log.segments import PartitionLog
from angarium.log.stages import StageStore
from angarium.machine import partition_state, producers
from angarium.machine.decisions import Decisions, Phase
from angarium.machine.numbering import Numbering
from angarium.machine.outcomes import Refused
from angarium.machine.producers import Producers
from angarium.machine.snapshots import Part
from angarium.modes import DeliveryMode
from angarium.replica.acks import Acks
from angarium.replica.pacing import Outrun, Pace
from angarium.replica.partition import Partition
from angarium.replica.partition_files import PartitionFiles
from angarium.replica.replica import Replica
from angarium.replica.stage_copy import StageCopy
from angarium.service.transactions import holding

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Iterator, Mapping, Sequence

    from angarium.ids import Buffer, Micros, Offset, RaftGroupId
    from angarium.machine import PartitionMachine, Prepared
    from angarium.machine.commands import Begin, Decide
    from angarium.machine.outcomes import Appended, Duplicate, Outcome
    from angarium.raft.messages import Entry
    from angarium.replica.acks import Published, Publishing, Reply
    from angarium.replica.peers import ChunkRequest


# --- the machine ----------------------------------------------------------------------------


@bug(seeds_max=20, run=usual)
def dedup_lost_at_snapshot() -> Iterator[Replaced]:
    """A snapshot does not hold which producers have sent what."""
    original = partition_state._tables

    def tables(machine: PartitionMachine) -> dict[Part, dict[Any, Any]]:
        return {**original(machine), Part.PRODUCERS: {}}

    yield Replaced(partition_state, "_tables", tables)


@bug(seeds_max=20, run=usual)
def stale_offsets_in_snapshot() -> Iterator[Replaced]:
    """A restored machine numbers on from a place before the one it had reached."""
    original = partition_state._read_header

    def read_header(machine: PartitionMachine, header: Any) -> None:
        original(machine, header)
        machine.numbering.next_offset = max(machine.numbering.next_offset - 1, 0)

    yield Replaced(partition_state, "_read_header", read_header)


@bug(seeds_max=60, run=transacting)
def start_forgotten_at_snapshot() -> Iterator[Replaced]:
    """A restored machine has forgotten what was trimmed away."""
    original = partition_state._read_header

    def read_header(machine: PartitionMachine, header: Any) -> None:
        original(machine, header)
        machine.numbering.start_offset = 0

    yield Replaced(partition_state, "_read_header", read_header)


@bug(seeds_max=20, run=usual)
def duplicates_accepted() -> Iterator[Replaced]:
    """A batch that was stored before is stored again."""
    original = producers._judge_repetition

    def judge_repetition(row: producers.Producer, first: int, past: int) -> Any:
        verdict = original(row, first, past)
        return verdict if isinstance(verdict, Refused) else None

    yield Replaced(producers, "_judge_repetition", judge_repetition)


@bug(seeds_max=20, run=usual)
def sequence_gap_accepted() -> Iterator[Replaced]:
    """A batch is stored although the one before it is missing."""
    original = Producers.admit

    def admit(self: Producers, producer: int, *, epoch: int, first: int, **rest: int) -> Any:
        row = self.find(producer)
        if row is not None and row.epoch == epoch and first > row.next_sequence:
            self.rows[producer] = msgspec.structs.replace(row, next_sequence=first)
        return original(self, producer, epoch=epoch, first=first, **rest)  # type: ignore[arg-type]

    yield Replaced(Producers, "admit", admit)


@bug(seeds_max=20, run=usual)
def machine_throws_dice() -> Iterator[Replaced]:
    """Whether a batch is taken depends on something that is not in the entry."""
    original = Numbering.number
    dice = random.Random(6)

    def number(self: Numbering, **place: int) -> Appended | Duplicate | Refused:
        if dice.random() < 0.001:
            return Refused("RESOURCE_EXHAUSTED", "no luck today")
        return original(self, **place)

    yield Replaced(Numbering, "number", number)


# --- stages ---------------------------------------------------------------------------------


@bug(seeds_max=60, run=transacting)
def stages_left_out_of_snapshots() -> Iterator[Replaced]:
    """A snapshot for a peer lacks what open transactions have staged."""
    original = StageStore.replace

    def replace(self: StageStore, contents: Mapping[int, Sequence[Buffer]]) -> None:
        original(self, {})

    yield Replaced(StageStore, "replace", replace)


@bug(seeds_max=60, run=transacting)
def stages_dropped_before_their_batches_are_safe() -> Iterator[Replaced]:
    """A stage goes when its commit is applied, not when its batches are safe in the segments."""
    original = Partition.apply

    def apply(self: Partition, entry: Entry) -> None:
        original(self, entry)
        self.saved(entry.index)

    yield Replaced(Partition, "apply", apply)


@bug(seeds_max=20, run=staging)
def half_of_a_commit_is_shown() -> Iterator[Replaced]:
    """Readers meet a large commit as it is brought in."""

    def show_until(self: PartitionLog, offset: Offset) -> None:
        pass

    yield Replaced(PartitionLog, "show_until", show_until)


@bug(seeds_max=60, run=staging)
def half_of_a_commit_is_shown_after_a_crash() -> Iterator[Replaced]:
    """A replica that is opened shows what its segments hold beyond its state."""
    original = PartitionFiles._open_log

    def open_log(self: PartitionFiles) -> PartitionLog:
        log = original(self)
        log.show_until(log.next_offset)
        return log

    yield Replaced(PartitionFiles, "_open_log", open_log)


@bug(seeds_max=120, run=staging_anew)
def stages_not_copied_with_a_snapshot() -> Iterator[Replaced]:
    """A replica installs a snapshot without having copied the stages that it lists."""

    def missing(self: StageCopy) -> None:
        return None

    def keep_open_stages(self: PartitionFiles) -> None:
        self.stages.retain(self._machine.open_stages())

    yield Replaced(StageCopy, "missing", missing)
    yield Replaced(PartitionFiles, "_keep_open_stages", keep_open_stages)


@bug(seeds_max=60, run=transacting)
def what_a_commit_was_of_is_left_out_of_snapshots() -> Iterator[Replaced]:
    """A restored home knows which numbers were committed, and not what they were of."""
    original = partition_state._tables

    def tables(machine: PartitionMachine) -> dict[Part, dict[Any, Any]]:
        found = original(machine)
        silent = {
            name: msgspec.structs.replace(one, content="")
            for name, one in found[Part.DECISIONS].items()
        }
        return {**found, Part.DECISIONS: silent}

    yield Replaced(partition_state, "_tables", tables)


@bug(seeds_max=60, run=transacting)
def what_a_commit_was_of_is_lost_with_the_next_one() -> Iterator[Replaced]:
    """A home that opens or aborts a transaction forgets what the last commit was of."""
    original = Decisions._put

    def put(self: Decisions, command: Begin | Decide, *rest: Any, **fields: Any) -> None:
        original(self, command, *rest, **fields)
        record = self.records.get(command.name)
        if record is not None and record.phase in {Phase.OPEN, Phase.ABORTED}:
            self.records[command.name] = msgspec.structs.replace(record, content="")

    yield Replaced(Decisions, "_put", put)


# --- answers --------------------------------------------------------------------------------


@bug(seeds_max=20, run=usual)
def consistent_answered_at_append() -> Iterator[Replaced]:
    """A CONSISTENT publish is answered when only its leader has it."""

    def answer_at(self: Partition, index: Index, answer: Published, reply: Reply) -> None:
        reply(answer)

    yield Replaced(Partition, "_answer_at", answer_at)


@bug(seeds_max=20, run=usual)
def projection_kept_across_leaders() -> Iterator[Replaced]:
    """A leader that was deposed and elected again goes on numbering where it had stopped."""

    def lead(self: Partition, term: Term) -> None:
        self._term = term

    def follow(self: Partition) -> None:
        self._term = Term(0)
        self.acks.abandon()

    yield Replaced(Partition, "lead", lead)
    yield Replaced(Partition, "follow", follow)


@bug(seeds_max=20, run=scripted("late-loser"))
def another_leaders_entry_confirms_mine() -> Iterator[Replaced]:
    """A publish waits on when leadership is lost, and whatever comes at its index confirms it."""

    def applied(self: Acks, index: Index, term: Term, outcomes: tuple[Outcome, ...] = ()) -> None:
        waiting: deque[Any] = self._waiting
        while waiting and waiting[0].index <= index:
            done = waiting.popleft()
            done.reply(done.published)

    def abandon(self: Acks) -> None:
        self._oldest.clear()

    yield Replaced(Acks, "applied", applied)
    yield Replaced(Acks, "abandon", abandon)


@bug(seeds_max=20, run=scripted("deaf-leader"))
def unknown_called_no() -> Iterator[Replaced]:
    """A leader that loses its place says no to publishes of which nobody knows the fate."""

    def abandon(self: Acks) -> None:
        waiting, self._waiting = self._waiting, type(self._waiting)()
        self._oldest.clear()
        for one in waiting:
            one.reply(NotLeader())

    yield Replaced(Acks, "abandon", abandon)


@bug(seeds_max=60, run=usual)
def eventual_answered_before_the_log_took_it() -> Iterator[Replaced]:
    """An EVENTUAL publish is answered although its entry was refused by the leader's own log."""
    original = Partition.publish
    proposed = Partition._proposed
    refusals: list[AngariumError] = []

    def note_refusal(
        self: Partition, prepared: Prepared, now: Micros, *, may_wait: bool = False
    ) -> Index | AngariumError:
        index = proposed(self, prepared, now, may_wait=may_wait)
        if isinstance(index, AngariumError):
            refusals.append(index)
            assert self._log_entries is not None
            return self._log_entries.last_index
        return index

    def publish(
        self: Partition, requests: Sequence[Publishing], *, now: Micros, may_wait: bool = False
    ) -> None:
        refusals.clear()
        original(
            self,
            [request._replace(reply=_honest(request, refusals)) for request in requests],
            now=now,
            may_wait=may_wait,
        )

    def _honest(request: Publishing, refusals: list[AngariumError]) -> Reply:
        def reply(answer: Published | AngariumError) -> None:
            is_eventual = request.mode is DeliveryMode.EVENTUAL
            request.reply(refusals[0] if refusals and not is_eventual else answer)

        return reply

    yield Replaced(Partition, "_proposed", note_refusal)
    yield Replaced(Partition, "publish", publish)


@bug(seeds_max=20, run=held_back)
def held_entries_kept_beside_the_log() -> Iterator[Replaced]:
    """An entry that is held back is not in its leader's log before the next one comes."""
    original = Replica.propose
    beside: dict[Replica, list[Buffer]] = {}

    def propose(self: Replica, data: Buffer, *, may_wait: bool = False) -> Index:
        kept = beside.setdefault(self, [])
        if may_wait:
            kept.append(data)
            return Index(self.raft.last_index + len(kept))
        while kept:
            original(self, kept.pop(0))
        return original(self, data)

    yield Replaced(Replica, "propose", propose)


@bug(seeds_max=20, run=paced)
def copies_that_wait_are_forgotten() -> Iterator[Replaced]:
    """A copy that found nothing left of the pace is never told that it is its turn."""
    original = Pace.due

    def due(self: Pace) -> Iterator[tuple[RaftGroupId, ChunkRequest | None]]:
        self._waiting.clear()
        yield from original(self)

    yield Replaced(Pace, "due", due)


@bug(seeds_max=20, run=scripted("outrun-newcomer"))
def outrun_newcomer_goes_no_faster() -> Iterator[Replaced]:
    """A copy has the same pace however often it was outrun by what is written meanwhile."""
    yield Replaced(Outrun, "copies", lambda _self, _index: None)


# --- transactions, as their leaders judge them ------------------------------------------------


@bug(seeds_max=20, run=redriving)
def redrive_twice() -> Iterator[Replaced]:
    """A leader takes acknowledgements into a stage without looking whether they were made."""
    yield Replaced(holding, "judged", lambda _machine, _command: None)


@bug(seeds_max=20, run=redriving)
def redrive_while_another_does() -> Iterator[Replaced]:
    """A leader looks at what is settled, and not at who else is about to settle it."""
    yield Replaced(holding, "_overlap", lambda _some, _others: False)
