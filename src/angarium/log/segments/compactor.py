"""Bringing a partition's files to what the latest compaction asks for, a part at a time.

Each turn looks at some segments, in order, and rewrites one group of neighbours at the most; the
work that blocks is handed out to threads, and readers go on meanwhile. Only sealed segments are
touched, and only below an offset that a snapshot covers: the write-ahead log never brings again
what was rewritten here. A pass that is interrupted is begun anew; what it has done stays done.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from angarium.batch import Batch
from angarium.errors import CorruptData
from angarium.ids import Offset
from angarium.log.segments.compacted_mark import (
    Pass,
    Stage,
    read_compacted_mark,
    write_compacted_mark,
)
from angarium.log.segments.names import DELAYS, file_name
from angarium.log.segments.rewriting import (
    Draft,
    Rewrite,
    clear_away,
    decide,
    remove_drafts,
    replace_segments,
)
from angarium.log.segments.survivors import PASS_RECORDS_MAX, Survivors, rewritten
from angarium.log.segments.walk import frames_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from angarium.ids import Micros
    from angarium.log.disk import Disk
    from angarium.log.segments.config import SegmentConfig
    from angarium.log.segments.segment import Segment
    from angarium.log.segments.segments import SegmentList

TURN_BYTES: Final = 64 << 20
"""Bytes looked at in one turn, at least a segment: what bounds how much disk and processor a
compaction takes from everything else."""

SMALL_SHARE: Final = 4
"""A segment below this part of the usual size is put together with its neighbours."""


@dataclass(slots=True)
class _Progress:
    """A pass under way."""

    survivors: Survivors
    position: Offset
    """Segments that begin below have been dealt with."""


class Compactor:
    """Compacts one log. Made with it, and forgotten with it."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        config: SegmentConfig,
        segments: SegmentList,
        *,
        forget: Callable[[Segment], None],
        suspect: Callable[[Segment], None],
    ) -> None:
        """`forget` drops what is kept about a segment that is replaced; `suspect` has one verified
        that could not be read."""
        self._disk = disk
        self._folder = folder
        self._config = config
        self._segments = segments
        self._forget = forget
        self._suspect = suspect
        self._progress: _Progress | None = None
        self.stage = read_compacted_mark(disk, folder)
        self.oldest_tombstone: Micros | None = None
        """When the oldest tombstone was appended that the last pass has kept, if it is known."""

    def is_behind(self, goal: Pass) -> bool:
        """Tell whether there is something to do."""
        done = self.stage.done
        # After a restart from an older state the log may be ahead of what it is asked for.
        return goal.until > done.until or (
            goal.until > 0 and goal.tombstones_before > done.tombstones_before
        )

    def turn(self, goal: Pass, *, limit: Offset) -> Generator[Callable[[], None], None, bool]:
        """Yield the work of one turn; return whether segments were replaced.

        Only segments that end at `limit` or below are touched. Raises `DiskFull`, after which
        everything is as it was.
        """
        try:
            return (yield from self._turn(goal, limit))
        except BaseException:
            self._progress = None  # what was under way is looked at once more
            raise

    def _turn(self, goal: Pass, limit: Offset) -> Generator[Callable[[], None], None, bool]:
        progress = self._progress
        if progress is None:
            segments = self._ready(goal, limit)
            if segments is None:
                return False
            progress = yield from self._begun(goal, segments)
            if progress is None:
                return False
        candidates = [
            segment
            for segment in self._segments.holding(progress.position)
            if progress.position <= segment.base_offset < progress.survivors.goal.until
        ]
        # Nothing above the snapshot: there a restart brings the batches again as they were, and
        # they are compared with what is here.
        if any(not segment.is_sealed or segment.next_offset > limit for segment in candidates):
            return False  # damaged since, and being mended
        found: list[Rewrite | Segment | None] = []
        yield lambda: found.append(self._prepared(progress, candidates))
        prepared = found[0]
        if isinstance(prepared, Rewrite):
            return (yield from self._replaced(prepared))
        if prepared is not None:
            self._suspect(prepared)
        elif progress.position >= progress.survivors.goal.until or not candidates:
            yield from self._done(progress)
        return False

    def _ready(self, goal: Pass, limit: Offset) -> list[Segment] | None:
        """Return the segments a new pass has to look at; None if they are not ready for it."""
        if not self.is_behind(goal):
            return None
        until = self._next_goal(goal).until
        segments = [one for one in self._segments if one.base_offset < until]
        if any(not one.is_sealed or one.next_offset > limit for one in segments):
            return None
        return segments

    def _next_goal(self, goal: Pass) -> Pass:
        done = self.stage.done
        # Bounds how many keys are in memory at a time.
        until = min(goal.until, Offset(done.until + PASS_RECORDS_MAX))
        before = max(goal.tombstones_before, done.tombstones_before)
        return Pass(max(until, done.until), before)

    def _begun(
        self, goal: Pass, segments: Sequence[Segment]
    ) -> Generator[Callable[[], None], None, _Progress | None]:
        """Learn the keys that came since the last pass, and write down that one has begun."""
        found: list[Survivors | Segment] = []
        next_goal = self._next_goal(goal)
        new = [one for one in segments if one.next_offset > self.stage.done.until]
        yield lambda: found.append(self._learned(next_goal, goal, new))
        survivors = found[0]
        if not isinstance(survivors, Survivors):
            self._suspect(survivors)
            return None
        stage = Stage(self.stage.done, survivors.goal)
        # Durable before the first segment changes: from here on the files are between two stages,
        # and a peer must not be mended with them.
        yield partial(self._write_down, stage)
        self.stage = stage
        start = segments[0].base_offset if segments else survivors.goal.until
        self._progress = _Progress(survivors, start)
        return self._progress

    def _done(self, progress: _Progress) -> Generator[Callable[[], None], None, None]:
        stage = Stage(progress.survivors.goal, progress.survivors.goal)
        yield partial(write_compacted_mark, self._disk, self._folder, stage)
        self.stage = stage
        self.oldest_tombstone = progress.survivors.oldest_tombstone
        self._progress = None

    def _replaced(self, rewrite: Rewrite) -> Generator[Callable[[], None], None, bool]:
        disk, folder, decision = self._disk, self._folder, rewrite.decision
        # From the decision on the rewritten segment counts, whatever a crash interrupts.
        yield partial(decide, disk, folder, rewrite)
        # From here to the end of the block nobody else runs: files and memory change as one.
        for segment in rewrite.old:
            self._forget(segment)
        replace_segments(disk, folder, decision)
        if not rewrite.new.deliver_at_max:
            disk.remove(file_name(folder, rewrite.new.base_offset, DELAYS))
        self._segments.replace(rewrite.old, rewrite.new)
        rewrite.new.index = None  # its footer has it
        yield partial(clear_away, disk, folder, decision)
        return True

    # --- in a thread ----------------------------------------------------------------------------

    def _write_down(self, stage: Stage) -> None:
        remove_drafts(self._disk, self._folder)
        write_compacted_mark(self._disk, self._folder, stage)

    def _learned(
        self, next_goal: Pass, goal: Pass, segments: Sequence[Segment]
    ) -> Survivors | Segment:
        """Return the judge of a pass, or the segment that could not be read."""
        done = self.stage.done.until
        survivors = Survivors(next_goal)
        until = next_goal.until
        for segment in segments:
            try:
                for frame, data in frames_of(self._disk, self._folder, segment):
                    # Not a record further, even if the segment goes on: how segments are cut
                    # differs between replicas. Planted as compaction-looks-beyond-its-goal.
                    if frame.base_offset >= next_goal.until:
                        break
                    until = max(until, min(frame.next_offset, goal.until))
                    if not frame.is_gap and frame.base_offset >= done:
                        survivors.note(Batch.trusted(data))
            except CorruptData:
                return segment
        survivors.goal = Pass(until, next_goal.tombstones_before)
        return survivors

    def _prepared(
        self, progress: _Progress, candidates: Sequence[Segment]
    ) -> Rewrite | Segment | None:
        """Write the next group of segments anew; None if those looked at may stay as they are.

        Returns the segment that could not be read, if there is one.
        """
        draft: Draft | None = None
        group: list[Segment] = []
        looked_at = 0
        changes = False
        position = progress.position
        try:
            for segment in candidates:
                if group and (
                    draft is None
                    or draft.segment.bytes + segment.bytes > self._config.segment_bytes
                ):
                    break
                try:
                    plan = self._plan(progress.survivors, segment)
                    is_small = segment.bytes * SMALL_SHARE < self._config.segment_bytes
                    if plan or is_small:
                        if draft is None:
                            base = segment.base_offset
                            draft = Draft(self._disk, self._folder, self._config, base)
                        self._write(draft, segment, plan)
                        group.append(segment)
                        changes = changes or bool(plan)
                except CorruptData:
                    return segment
                looked_at += segment.bytes
                position = segment.next_offset
                if looked_at >= TURN_BYTES or (group and not (plan or is_small)):
                    break
            if draft is None or not (changes or len(group) > 1):
                progress.position = position
                return None
            new = draft.finish(group)
            draft = None
            progress.position = position
            return Rewrite(group, new)
        finally:
            if draft is not None:
                draft.discard()

    def _plan(self, survivors: Survivors, segment: Segment) -> dict[Offset, list[int]]:
        """Return the batches of a segment that lose records, with what they keep."""
        plan: dict[Offset, list[int]] = {}
        for frame, data in frames_of(self._disk, self._folder, segment):
            if frame.base_offset >= survivors.goal.until:
                break
            if not frame.is_gap:
                kept = survivors.kept(Batch.trusted(data))
                if kept is not None:
                    plan[frame.base_offset] = kept
        return plan

    def _write(self, draft: Draft, segment: Segment, plan: dict[Offset, list[int]]) -> None:
        for frame, data in frames_of(self._disk, self._folder, segment):
            kept = plan.get(frame.base_offset)
            if frame.is_gap or (kept is not None and not kept):
                draft.leave_out(frame)
            elif kept is None:
                draft.add(frame, data)
            else:
                draft.add(*rewritten(Batch.trusted(data), kept))
