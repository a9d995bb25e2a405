"""What a partition does with its committed entries, and how it admits new ones.

The way of a record: `publish` numbers its batch against the *projected* machine (the committed
state plus this leader's own uncommitted tail) and proposes one entry; when that entry is committed,
`apply` runs it through the real machine, checks that both agree, hands the batch to the segments,
where readers see it, and answers the publisher.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from angarium.batch import stamp
from angarium.errors import AngariumError, CorruptData, LimitExceeded, NotLeader
from angarium.ids import Index, Micros, Offset, Term
from angarium.log.segments import Manifest, PartitionLog
from angarium.log.segments.compacted_mark import Pass
from angarium.log.stages import StageStore
from angarium.machine import Appended, PartitionMachine, Projection, PublishedStage, knows
from angarium.machine.commands import APPEND
from angarium.machine.place import spans
from angarium.modes import DeliveryMode
from angarium.raft.messages import EntryKind
from angarium.replica.acks import Acks, Published

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from angarium.ids import Buffer
    from angarium.log.disk import Disk
    from angarium.log.segments import SegmentConfig, SegmentImport
    from angarium.machine import Applied, Command, Outcome, Prepared
    from angarium.raft.messages import Entry
    from angarium.replica.acks import Publishing, Reply
    from angarium.replica.config import ReplicaConfig
    from angarium.replica.work import Work


UNFLUSHED_BYTES_MAX: Final = 32 << 20
"""Batches in memory that no segment has yet. Above it publishes are refused, retriably, and a
follower takes no more entries, until the disk has caught up."""


class PartitionSnapshot(msgspec.Struct, frozen=True):
    """What a snapshot of a partition holds: small state, and a list of its large files."""

    machine: bytes
    segments: bytes
    """The encoded manifest of the segments as of the snapshot's index."""
    stages: dict[int, list[bytes]]
    """Batches of open transactions, by slot: they are in no segment yet."""


# Made on import: msgspec crashes where two threads are the first to decode a type.
_decode: Final = msgspec.msgpack.Decoder(PartitionSnapshot).decode


class LogEntries(Protocol):
    """The part of a replica that a partition proposes to."""

    @property
    def last_index(self) -> Index:
        """The index of the last entry in the log, committed or not."""

    def propose(self, data: Buffer) -> Index:
        """Append an entry to this leader's log; raises if it was not taken."""

    def unapplied(self) -> Iterable[Entry]:
        """Return the entries of the log that are not applied yet."""


class Partition:
    """One partition on one node: machine, segments, stages, and the publishes that wait."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        *,
        saved: Buffer,
        config: ReplicaConfig,
        segments: SegmentConfig,
    ) -> None:
        """Open the files in `folder` as of the state `saved` here; the log brings the rest."""
        self.machine = PartitionMachine()
        if saved:
            self.machine.restore(_decoded(saved).machine)
        self.acks = Acks()
        self._disk = disk
        self._segments_folder, stages_folder = folders_in(folder)
        self._config = config
        self._segment_config = segments
        self._stages = StageStore(disk, stages_folder)
        self._stages.retain(self.machine.open_stages())
        if lacking := self._stages.lacking(self.machine.open_stages()):
            raise CorruptData(f"the batches of {len(lacking)} open transactions are damaged")
        self._drops: deque[tuple[Index, tuple[int, ...]]] = deque()
        """Stages that nobody needs once a snapshot at this index or later is durable: until then
        the log may bring their transactions again after a restart."""
        self._projection: Projection | None = None
        self._term = Term(0)
        self._applied = Index(0)
        """The last entry taken since opening, a change of membership included."""
        self._log_entries: LogEntries | None = None
        self.on_visible: Callable[[], None] = _ignore
        """Told whenever there are new records to read."""
        self.on_stir: Callable[[], None] = _ignore
        """Told when this replica begins or ceases to lead, and when something other than an append
        was applied: groups may have moved, records may have been trimmed."""
        self.on_damage: Callable[[], None] = _ignore
        """Told whenever damage is found in the segments."""
        self.log = self._open_log()
        self._was_trimmed = True
        self._saved_offset = self.machine.next_offset
        """What lies below is part of a durable snapshot, and never comes from the log again."""
        self._saving_offset = self._saved_offset
        self.is_compacting = False
        """True while segments are being rewritten, so that no copy of them may begin."""

    def attach(self, entries: LogEntries) -> None:
        """Say where new entries go, and where those not yet applied are read from."""
        self._log_entries = entries

    # --- admitting --------------------------------------------------------------------------

    def publish(self, requests: Sequence[Publishing], *, now: Micros) -> None:
        """Number every caller's batches, propose them as one entry, and answer as asked.

        Several callers share an entry, but their batches are never merged. A duplicate is answered
        with the offset of its original, but not before that one is committed.
        """
        projection = self._leading_projection()
        if projection is None or self.is_congested:
            error = NotLeader() if projection is None else _congestion()
            for request in requests:
                request.reply(error)
            return
        batches = [batch for request in requests for batch in request.batches]
        prepared = projection.append(batches, term=self._term, now=now)
        index = self._proposed(prepared, now)
        if isinstance(index, AngariumError):
            for request in requests:
                request.reply(index)
            return
        early = prepared.data is not None and self._may_answer_early(now)
        start = 0
        for request in requests:
            outcomes = prepared.outcomes[start : start + len(request.batches)]
            start += len(request.batches)
            answer = Published(request.mode, self._term, outcomes)
            if early and request.mode is DeliveryMode.EVENTUAL:
                self.acks.answered_early(index, self._term, _records(outcomes))
                request.reply(msgspec.structs.replace(answer, provisional=True))
            else:
                self._answer_at(index, answer, request.reply)

    def submit(self, command: Command, *, now: Micros, reply: Reply) -> None:
        """Propose one command other than an append; it is answered when it is applied."""
        projection = self._leading_projection()
        if projection is None:
            reply(NotLeader())
            return
        prepared = projection.submit(command, term=self._term, now=now)
        index = self._proposed(prepared, now)
        if isinstance(index, AngariumError):
            reply(index)
            return
        answer = Published(DeliveryMode.CONSISTENT, self._term, prepared.outcomes)
        self._answer_at(index, answer, reply)

    def _proposed(self, prepared: Prepared, now: Micros) -> Index | AngariumError:
        """Propose what was prepared; return the index to wait for, or why it was not taken."""
        entries = self._log_entries
        assert entries is not None
        if prepared.data is None:
            # Nothing new to store. The original of a duplicate may itself be uncommitted still,
            # so its answer waits for everything that is in the log by now.
            return entries.last_index
        try:
            index = entries.propose(prepared.data)
        except AngariumError as refused:
            # The projection has run ahead of a log that did not take the entry.
            self._projection = None
            return refused
        self.acks.appended(index, now)
        return index

    def _answer_at(self, index: Index, answer: Published, reply: Reply) -> None:
        if index <= self._applied:
            reply(answer)
        else:
            self.acks.wait(index, answer, reply)

    @property
    def is_congested(self) -> bool:
        """True while segments are written more slowly than batches come."""
        return self.log.unflushed_bytes > UNFLUSHED_BYTES_MAX

    def _may_answer_early(self, now: Micros) -> bool:
        return self.acks.oldest_age(now) <= self._config.eventual_bound_micros

    def _leading_projection(self) -> Projection | None:
        """Return the projection, made anew from the log's tail if the last one went astray."""
        if not self._term or self._log_entries is None:
            return None
        if self._projection is None:
            self._projection = Projection(self.machine)
            for entry in self._log_entries.unapplied():
                if entry.kind is EntryKind.NORMAL:
                    self._projection.replay(entry.term, entry.data)
        return self._projection

    # --- what a replica does with it --------------------------------------------------------

    def lead(self, term: Term) -> None:
        """Begin to number and serve."""
        self._term = term
        self._projection = None
        self.on_stir()

    def follow(self) -> None:
        """Stop serving; nobody can be told what becomes of the tail."""
        self._term = Term(0)
        self._projection = None
        self.acks.abandon()
        self.on_stir()

    def understands(self, data: Buffer) -> bool:
        """Tell whether the machine of this release has a meaning for an entry's data."""
        return knows(data)

    def apply(self, entry: Entry) -> None:
        """Take a committed entry: into the machine, the segments, and to whoever waits for it."""
        self._applied = entry.index
        outcomes: tuple[Outcome, ...] = ()
        if entry.kind is EntryKind.NORMAL:
            applied = self.machine.apply(entry.index, entry.term, entry.data)
            outcomes = applied.outcomes
            if self._projection is not None and entry.data:
                self._projection.confirm(entry.index, applied)
            if outcomes:
                self._write(applied)
                if entry.data[0] != APPEND:
                    self.on_stir()
        self.acks.applied(entry.index, entry.term, outcomes)

    def _write(self, applied: Applied) -> None:
        """Do what the machine wants written."""
        for stage in applied.stage_appends:
            self._stages.append(stage.slot, stage.part, stage.batches)
        batches: list[Buffer] = []
        for visible in applied.visible:
            if isinstance(visible, PublishedStage):
                self.log.append(batches)
                batches = []
                self._publish_stage(visible)
            else:
                batches.append(visible)
        if batches:
            self.log.append(batches)
        for _, end in applied.reserved:
            self.log.skip_to(end)
        if applied.visible or applied.reserved:
            self.on_visible()
        if applied.stage_drops:
            self._drops.append((applied.index, applied.stage_drops))
        if applied.trimmed_to is not None:
            self.log.trim(applied.trimmed_to)
            self._was_trimmed = True

    def _publish_stage(self, published: PublishedStage) -> None:
        # After a restart the entry may come again when the segments have it and the stage is gone.
        # If they have only a part of it, the stage is still there; the log knows what it has.
        if published.base_offset + published.span <= self.log.end_offset:
            return
        offset, time = published.base_offset, published.append_time
        for staged in self._stages.read(published.slot):
            batch = bytearray(staged)
            stamp(batch, base_offset=offset, term=published.term, append_time=time)
            self.log.append([batch])
            offset, time = Offset(offset + sum(spans(staged))), Micros(time + 1)

    # --- reading ----------------------------------------------------------------------------

    def fetch(self, offset: Offset, *, bytes_max: int) -> list[memoryview]:
        """Return committed batches from the one that holds `offset` on."""
        return self.log.read(offset, bytes_max)

    # --- snapshots --------------------------------------------------------------------------

    def save(self) -> Generator[Work, None, bytes]:
        """Yield work that makes durable what the state stands on, then return the state.

        The state is that of the moment this is called. Entries may be applied while the work is
        done; they are not part of it.
        """
        stages = self._stages.contents()
        needed = {slot: stages[slot] for slot in self.machine.open_stages()}
        state = PartitionSnapshot(self.machine.snapshot(), self.log.manifest().encode(), needed)
        until = self._saving_offset = self.log.end_offset
        while self.log.synced_offset < until:
            yield from self._flush(sync=True)
        yield from self._flush_stages()
        return msgspec.msgpack.encode(state)

    def saved(self, index: Index) -> None:
        """Hear that the state as of `index` is durable: let go of stages it does not need."""
        self._saved_offset = self._saving_offset
        while self._drops and self._drops[0][0] <= index:
            for slot in self._drops.popleft()[1]:
                self._stages.drop(slot)

    def restore(self, data: Buffer, index: Index) -> None:
        """Become what another replica saved; `adopt` has brought the segments."""
        snapshot = _decoded(data)
        self.machine.restore(snapshot.machine)
        self._stages.replace(snapshot.stages)
        self._drops.clear()
        self.log.close()
        self.log = self._open_log()
        self._saved_offset = self._saving_offset = self.machine.next_offset
        self.acks.superseded(index)
        self._applied = index
        self.on_visible()

    def adopt(self, importing: SegmentImport) -> None:
        """Switch to segments copied from a peer, which reach beyond those that were here."""
        self.log.close()
        importing.finish()
        self.log = self._open_log()

    def _open_log(self) -> PartitionLog:
        log = PartitionLog.open(
            self._disk,
            self._segments_folder,
            self._segment_config,
            start_offset=self.machine.start_offset,
            durable_until=self.machine.next_offset,
        )
        self._has_looked_for_delays = False
        log.on_damage = self._note_damage
        if log.damage:
            self._note_damage()
        return log

    def _note_damage(self) -> None:
        self.on_damage()

    # --- housekeeping -----------------------------------------------------------------------

    def needs_care(self) -> bool:
        """Tell whether there are batches to write, or segments to remove."""
        return self.log.unflushed_bytes > 0 or self._was_trimmed or self.is_to_be_compacted

    @property
    def is_to_be_compacted(self) -> bool:
        """Whether the files here are not yet what the last compaction asks for."""
        return self.log.compactor.is_behind(self._compaction)

    @property
    def waits_for_snapshot(self) -> bool:
        """Whether a compaction cannot go on because no snapshot covers what it has to rewrite."""
        until = self._compaction.until
        if not self.is_to_be_compacted or until <= self.log.start_offset:
            return False
        return self.log.segments.at(Offset(until - 1)).next_offset > self._saved_offset

    @property
    def _compaction(self) -> Pass:
        return Pass(*self.machine.compaction)

    def maintain(self, *, may_compact: bool = True) -> Generator[Work, None, bool]:
        """Yield the work of writing segments behind, then remove what nobody needs any more.

        Returns whether segments were removed or replaced.
        """
        self._was_trimmed = False
        if self.is_to_be_compacted:
            self.log.close_segment(self._compaction.until)
        yield from self._flush(sync=False)
        if not self._has_looked_for_delays:
            self._has_looked_for_delays = True
            yield from self._make_delays()
        went = yield from self._delete()
        if may_compact and self.is_to_be_compacted:
            went |= yield from self._compact()
        return went

    def _delete(self) -> Generator[Work, None, bool]:
        log = self.log
        doomed = log.give_up()
        if doomed is None:
            return False
        yield lambda: log.delete(doomed)
        log.deleted(doomed)
        return True

    def _compact(self) -> Generator[Work, None, bool]:
        """Do one turn of what the last compaction asks for."""
        self.is_compacting = True
        try:
            limit = min(self._saved_offset, self.log.synced_offset)
            return (yield from self.log.compactor.turn(self._compaction, limit=limit))
        finally:
            self.is_compacting = False

    def _make_delays(self) -> Generator[Work, None, None]:
        """Make lists of delayed records that were lost, or whose segments came from a peer."""
        log = self.log
        for segment in log.delays.lacking():
            # What is damaged is mended first, and then listed when it is asked for.
            with suppress(CorruptData):
                yield partial(log.delays.make, segment)

    def _flush(self, *, sync: bool) -> Generator[Work, None, None]:
        flush = self.log.take(sync=sync)
        if flush is None:
            return
        log = self.log
        try:
            yield lambda: log.write(flush)
        except BaseException:
            log.failed(flush)
            raise
        log.flushed(flush)

    def _flush_stages(self) -> Generator[Work, None, None]:
        flush = self._stages.take()
        if flush is None:
            return
        try:
            yield lambda: self._stages.write(flush)
        except BaseException:
            self._stages.failed(flush)
            raise
        self._stages.flushed(flush)


def _ignore() -> None:
    """Nobody wants to know."""


def _congestion() -> LimitExceeded:
    return LimitExceeded("UNFLUSHED_BYTES_MAX", "the disk does not keep up; try again")


def folders_in(folder: str) -> tuple[str, str]:
    """Return where a partition's segments and its stages lie."""
    return f"{folder}/segments", f"{folder}/stages"


def empty_partition() -> bytes:
    """Return the state of a partition that has never been written to."""
    nothing = PartitionSnapshot(
        PartitionMachine().snapshot(), Manifest(Offset(0), Offset(0)).encode(), {}
    )
    return msgspec.msgpack.encode(nothing)


def manifest_in(data: Buffer) -> Manifest:
    """Return the segments that a partition's snapshot stands on."""
    return Manifest.decode(_decoded(data).segments)


def _decoded(data: Buffer) -> PartitionSnapshot:
    try:
        return _decode(data)
    except msgspec.MsgspecError as error:
        raise CorruptData(f"a partition's snapshot cannot be read: {error}") from error


def _records(outcomes: Sequence[Outcome]) -> int:
    return sum(one.next_offset - one.base_offset for one in outcomes if isinstance(one, Appended))
