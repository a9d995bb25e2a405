"""A partition's files: its segments, and the stages of open transactions.

What was applied is handed over at once and readers see it from memory; the disk gets it behind the
acknowledgement, for the node's write-ahead log still has it all. Three promises hang on the order:

- before a snapshot counts, everything it stands on is synced (`make_durable`);
- a stage goes only when a durable snapshot does not need it any more (`saved`);
- nothing is rewritten by compaction that the log could still bring again.

A commit whose stages are large is brought into the segments bit by bit (`publish`), while nothing
else is applied; readers see none of it before all of it is there (`show`).

Whatever waits for a disk is handed out as `Work`, so that the event loop need not.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from angarium.batch import split, stamp
from angarium.errors import CorruptData
from angarium.ids import Index, Micros, Offset
from angarium.log.segments import PartitionLog
from angarium.log.segments.compacted_mark import Pass
from angarium.log.stages import StageStore
from angarium.machine import PublishedStage
from angarium.machine.batch_fields import spans
from angarium.replica.work import do_now

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from angarium.ids import Buffer
    from angarium.log.disk import Disk
    from angarium.log.segments import Manifest, SegmentConfig, SegmentDamage, SegmentImport
    from angarium.machine import Applied, PartitionMachine
    from angarium.replica.work import Work


class PartitionFiles:
    """What lies on disk for one partition, as its machine says it should."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        machine: PartitionMachine,
        config: SegmentConfig,
        *,
        step_bytes: int,
        note_damage: Callable[[SegmentDamage], None],
    ) -> None:
        """Open the files in `folder` as of the state of `machine`; the log brings the rest.

        Commits of more than `step_bytes` are brought in by steps of that size. `note_damage` hears
        of damage whenever some is found in the segments.
        """
        self._disk = disk
        self._machine = machine
        self._config = config
        self._step_bytes = step_bytes
        self._publication: deque[PublishedStage] = deque()
        """Stages that the last applied entry publishes and that are not in the segments yet."""
        self._segments_folder, stages_folder = folders_in(folder)
        self.stages = StageStore(disk, stages_folder)
        self._keep_open_stages()
        self._drops: deque[tuple[Index, tuple[int, ...]]] = deque()
        """Stages that nobody needs once a snapshot at this index or later is durable: until then
        the log may bring their transactions again after a restart."""
        self._saved_index = Index(0)
        """As of which entry a durable snapshot was last taken."""
        self.spent_bytes = 0
        """How much these stages hold."""
        self.are_stages_lent = False
        """True while a peer copies stages that a snapshot of ours lists: none of them goes."""
        self._note_damage = note_damage
        self.log = self._open_log()
        self._was_trimmed = True
        self._saved_offset = machine.next_offset
        """What lies below is part of a durable snapshot, and never comes from the log again."""
        self._saving_offset = self._saved_offset
        self.is_compacting = False
        """True while segments are being rewritten, so that no copy of them may begin."""

    def _keep_open_stages(self) -> None:
        """Let go of all stages that are not open, and make sure that the others are here."""
        self.stages.retain(self._machine.open_stages())
        if lacking := self.stages.lacking(self._machine.open_stages()):
            # Staged and acknowledged, and nowhere else on this node: going on would let a commit
            # publish less than was promised. Planted as stages-not-copied-with-a-snapshot.
            raise CorruptData(f"the batches of {len(lacking)} open transactions are damaged")

    def _open_log(self) -> PartitionLog:
        log = PartitionLog.open(
            self._disk,
            self._segments_folder,
            self._config,
            start_offset=self._machine.start_offset,
            durable_until=self._machine.next_offset,
            on_damage=self._note_damage,
        )
        # What the segments hold beyond the state may be half of a commit. Planted as
        # half-of-a-commit-is-shown-after-a-crash.
        log.show_until(self._machine.next_offset)
        self._has_looked_for_delays = False
        for damage in log.damage:
            self._note_damage(damage)
        return log

    # --- what was applied -------------------------------------------------------------------

    def append(self, applied: Applied) -> None:
        """Take what an entry stages or makes visible; `is_publishing` if that is not all yet."""
        for stage in applied.stage_appends:
            # Parts are numbered, so that an entry which comes again after a restart changes
            # nothing.
            self.stages.append(stage.slot, stage.part, stage.batches)
        batches: list[Buffer] = []
        for visible in applied.visible:
            if isinstance(visible, PublishedStage):
                # After a restart the entry may come again when the segments have it and the stage
                # is gone. If they have only a part of it, the stage is still there.
                if visible.base_offset + visible.span > self.log.next_offset:
                    self._publication.append(visible)
            else:
                batches.append(visible)
        if batches:
            self.log.append(batches)
        # A small commit is brought in at once. A large one is left to `publish`, so that the loop
        # is not held up and memory stays bounded.
        if sum(self.stages.size(one.slot) for one in self._publication) <= self._step_bytes:
            do_now(self.publish(flushes=False))
        for _, end in applied.reserved:
            self.log.skip_to(end)

    @property
    def is_publishing(self) -> bool:
        """Whether stages that a commit publishes are still to be brought in."""
        return bool(self._publication)

    def publish(self, *, flushes: bool = True) -> Generator[Work, None, None]:
        """Yield the work of bringing stages into the segments; goes on where it was left off."""
        while self._publication:
            for part in self._publish_stage(self._publication[0]):
                yield part
                if flushes and self.log.unflushed_bytes > self._step_bytes:
                    yield from self._flush(sync=False)
            self._publication.popleft()

    def _publish_stage(self, published: PublishedStage) -> Generator[Work, None, None]:
        offset, time = published.base_offset, published.append_time
        found: list[bytes] = []
        for part in range(max(self.stages.parts(published.slot), 1)):
            # Reads in a thread, one part at a time; done before the loop goes on, so binding late
            # is no harm.
            yield lambda: found.append(self.stages.part(published.slot, part))  # noqa: B023
            for staged in split(found.pop()):
                # A copy: the stage must stay as it was staged, as long as the log may bring its
                # commit again.
                batch = bytearray(staged)
                stamp(batch, base_offset=offset, term=published.term, append_time=time)
                self.log.append([batch])  # which knows what it has
                offset, time = Offset(offset + sum(spans(staged))), Micros(time + 1)

    def show(self) -> None:
        """Let readers see everything up to the state of the machine."""
        self.log.show_until(self._machine.next_offset)

    def let_go(self, applied: Applied) -> None:
        """Give up what an entry drops or trims; the files themselves go later."""
        if applied.stage_drops:
            # Only noted. Until a snapshot at this index is durable, a restart brings the commit
            # again from the log, and it needs the stage then. Planted as
            # stages-dropped-before-their-batches-are-safe.
            self._drops.append((applied.index, applied.stage_drops))
            self.spent_bytes += sum(map(self.stages.size, applied.stage_drops))
        if applied.trimmed_to is not None:
            self.log.trim(applied.trimmed_to)
            self._was_trimmed = True

    # --- snapshots --------------------------------------------------------------------------

    def begin_save(self) -> Manifest:
        """Return the segments that a snapshot of this moment stands on."""
        assert not self.is_publishing, "the state is ahead of the segments"
        # What `make_durable` has to reach. Batches that are appended meanwhile need not wait for
        # it.
        self._saving_offset = self.log.next_offset
        return self.log.manifest()

    def is_open(self, slot: int) -> bool:
        """Tell whether what is staged in `slot` is still to be decided."""
        return slot in self._machine.open_stages()

    def open_contents(self) -> dict[int, list[bytes]]:
        """Return what is staged, by slot, for a snapshot that holds it all."""
        stages = self.stages.contents()
        return {slot: stages[slot] for slot in self._machine.open_stages()}

    def make_durable(self) -> Generator[Work, None, None]:
        """Yield the work of syncing everything that was here when the save began."""
        until = self._saving_offset
        # A flush takes what is there when it begins, and another one may have been under way.
        while self.log.synced_offset < until:
            yield from self._flush(sync=True)
        yield from self._flush_stages()

    def saved(self, index: Index) -> None:
        """Hear that the state as of `index` is durable: let go of stages it does not need."""
        self._saved_offset = self._saving_offset
        self._saved_index = index
        self._drop_spent()

    @property
    def _has_spent(self) -> bool:
        """Whether there are stages that may go by now."""
        is_saved = bool(self._drops) and self._drops[0][0] <= self._saved_index
        return is_saved and not self.are_stages_lent

    def _drop_spent(self) -> None:
        while self._has_spent:
            for slot in self._drops.popleft()[1]:
                self.spent_bytes -= self.stages.size(slot)
                self.stages.drop(slot)

    def adopt(self, importing: SegmentImport) -> None:
        """Switch to segments copied from a peer, which reach beyond those that were here."""
        self.log.close()
        importing.finish()
        self.log = self._open_log()

    def restore(self, stages: Mapping[int, Sequence[Buffer]] | None) -> None:
        """Follow the machine to a state that another replica saved.

        Its open stages came with it, or have been copied before (None).
        """
        if stages is None:
            self._keep_open_stages()
        else:
            self.stages.replace(stages)
        self._drops.clear()
        self.spent_bytes = 0
        self._publication.clear()
        # The state says what is to be seen, and the files have changed under this log, so it is
        # opened anew.
        self.log.close()
        self.log = self._open_log()
        self._saved_offset = self._saving_offset = self._machine.next_offset

    # --- housekeeping -----------------------------------------------------------------------

    def needs_care(self) -> bool:
        """Tell whether there are batches to write, or segments to remove. Cheap."""
        return (
            self.log.unflushed_bytes > 0
            or self._was_trimmed
            or self.are_stages_due
            or self._has_spent
            or self.stages.has_dropped
            or self.is_to_be_compacted
        )

    @property
    def are_stages_due(self) -> bool:
        """Whether so much is staged in memory that it should be written."""
        return self.stages.waiting_bytes > self._step_bytes

    def maintain(self, *, may_compact: bool = True) -> Generator[Work, None, bool]:
        """Yield the work of writing segments behind, then remove what nobody needs any more.

        Returns whether segments were removed or replaced.
        """
        self._was_trimmed = False
        self._drop_spent()
        if self.is_to_be_compacted:
            # Only sealed segments are compacted, and up to the same offset on every replica: what
            # stays must not depend on where a replica happens to cut its files. Planted as
            # compaction-looks-beyond-its-goal.
            self.log.close_segment(self._compaction.until)
        yield from self._flush(sync=False)
        if self.are_stages_due:
            yield from self._flush_stages()
        if self.stages.has_dropped:
            yield partial(self.stages.remove, self.stages.take_dropped())
        if not self._has_looked_for_delays:
            self._has_looked_for_delays = True
            yield from self._make_delays()
        went = yield from self._delete()
        if may_compact and self.is_to_be_compacted:
            went |= yield from self._compact()
        return went

    def _flush(self, *, sync: bool) -> Generator[Work, None, None]:
        flush = self.log.take(sync=sync)
        if flush is None:
            return
        log = self.log
        try:
            yield lambda: log.write(flush)
        except BaseException:
            # The batches are still in memory and are written by the next flush, when there is room
            # again.
            log.failed(flush)
            raise
        log.flushed(flush)

    def _flush_stages(self) -> Generator[Work, None, None]:
        flush = self.stages.take()
        if flush is None:
            return
        try:
            yield lambda: self.stages.write(flush)
        except BaseException:
            self.stages.failed(flush)
            raise
        self.stages.flushed(flush)

    def _make_delays(self) -> Generator[Work, None, None]:
        """Make lists of delayed records that were lost, or whose segments came from a peer."""
        log = self.log
        for segment in log.delays.lacking():
            # What is damaged is mended first, and then listed when it is asked for.
            with suppress(CorruptData):
                yield partial(log.delays.make, segment)

    def _delete(self) -> Generator[Work, None, bool]:
        log = self.log
        doomed = log.give_up()
        if doomed is None:
            return False
        yield lambda: log.delete(doomed)
        log.deleted(doomed)
        return True

    # --- compaction -------------------------------------------------------------------------

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
        return Pass(*self._machine.compaction)

    def _compact(self) -> Generator[Work, None, bool]:
        """Do one turn of what the last compaction asks for."""
        self.is_compacting = True
        try:
            # Above it a restart brings batches again from the log, and they must fit what the
            # segments have.
            limit = min(self._saved_offset, self.log.synced_offset)
            return (yield from self.log.compactor.turn(self._compaction, limit=limit))
        finally:
            self.is_compacting = False


def folders_in(folder: str) -> tuple[str, str]:
    """Return where a partition's segments and its stages lie."""
    return f"{folder}/segments", f"{folder}/stages"
