"""One partition's committed batches, in the order of their offsets: append-only, never rewritten.

The write-ahead log has every batch before it comes here, so an append is visible at once and
written later. The owner gives up a part of the write-ahead log only when `synced_offset` has
passed the batches in it.

What holds: everything below `synced_offset` survives a power cut; readers get whole batches whose
checksums are right, or an error that names what is damaged; nothing is ever served twice under
one offset.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from angarium.errors import CorruptData, InvalidArgument, NotFound, OffsetOutOfRange
from angarium.log.segments.appending import LogEnd
from angarium.log.segments.compactor import Compactor
from angarium.log.segments.config import SegmentConfig
from angarium.log.segments.delays import Delays
from angarium.log.segments.files import OpenFiles
from angarium.log.segments.frames import walk
from angarium.log.segments.importing import CHUNK_BYTES, SegmentImport, complete_import
from angarium.log.segments.manifest import Manifest, SegmentInfo
from angarium.log.segments.names import DELAYS, FIRST_OFFSET, FOOTER, SEGMENT, file_name
from angarium.log.segments.reader import SegmentReader, broken_part
from angarium.log.segments.recovery import Recovery
from angarium.log.segments.repair import extend_broken, patch
from angarium.log.segments.rewriting import complete_compaction
from angarium.log.segments.segments import SegmentList
from angarium.log.segments.start_mark import read_start_mark, write_start_mark

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.ids import Buffer, Micros, Offset
    from angarium.log.disk import Disk
    from angarium.log.segments.compacted_mark import Stage
    from angarium.log.segments.flush import Flush
    from angarium.log.segments.segment import Segment, SegmentDamage


class Doomed(NamedTuple):
    """Segments that nobody needs any more, to be deleted."""

    until: Offset
    """The start of the log: below it nothing is missed."""
    segments: tuple[Offset, ...]


class PartitionLog:
    """The segments of one partition, open for appends and reads. Made by `open`."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        config: SegmentConfig,
        files: OpenFiles,
        found: Recovery,
        on_damage: Callable[[SegmentDamage], None],
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._config = config
        self._files = files
        self._start = found.start_offset
        self._below = found.below
        self._damage = found.damage
        self.segments = SegmentList(found.segments)
        self.delays = Delays(disk, folder, self.segments, files)
        """When which of the delayed records are due."""
        self.reader = SegmentReader(disk, folder, config, files, self.report)
        self.compactor = Compactor(
            disk, folder, config, self.segments, forget=self._replaced, suspect=self._suspected
        )
        """Rewrites segments with fewer records."""
        self._end = LogEnd(disk, folder, config, self.segments, self.reader, found)
        self._shown_until: Offset | None = None
        self.cut_from = found.cut_from
        """Where opening cut off a torn write, which the write-ahead log brings again; or None."""
        self.scanned_bytes = found.scanned_bytes
        """How much opening verified byte by byte."""
        self._on_damage = on_damage

    @classmethod
    def open(
        cls,
        disk: Disk,
        folder: str,
        config: SegmentConfig | None = None,
        *,
        start_offset: Offset = FIRST_OFFSET,
        durable_until: Offset = FIRST_OFFSET,
        files: OpenFiles | None = None,
        on_damage: Callable[[SegmentDamage], None] | None = None,
    ) -> PartitionLog:
        """Open the log in `folder`, which is made if it is not there.

        `start_offset` is where readers may begin, as the owner's snapshot says. Everything from
        there to `durable_until` must be there, because the write-ahead log no longer has it;
        what is not is listed in `damage`; of what is found after opening `on_damage` hears, too. An
        import that was decided is completed first.
        """
        config = SegmentConfig() if config is None else config
        files = OpenFiles(disk, files_max=config.open_files_max) if files is None else files
        disk.make_folder(folder)
        # Before anything is read: a decision that is on disk has happened, however little of it a
        # crash left done.
        complete_compaction(disk, folder)
        complete_import(disk, folder, index_bytes=config.index_bytes)
        # Files may have been deleted since the snapshot: the log brings the trim again, the mark
        # does at once.
        start = max(start_offset, read_start_mark(disk, folder))
        found = Recovery(disk, folder, config, start_offset=start, durable_until=durable_until)
        return cls(disk, folder, config, files, found, on_damage or _ignore)

    def close(self) -> None:
        """Close the files. What was not flushed stays in the write-ahead log."""
        for segment in self.segments:
            self._end.forget(segment)
        self._files.close(within=f"{self._folder}/")

    # --- offsets ----------------------------------------------------------------------------

    @property
    def start_offset(self) -> Offset:
        """The first offset that may be read."""
        return self._start

    @property
    def end_offset(self) -> Offset:
        """Where what readers see ends."""
        shown, end = self._shown_until, self._end.offset
        # Readers never see half of a commit. Planted as half-of-a-commit-is-shown.
        return end if shown is None or end < shown else shown

    @property
    def next_offset(self) -> Offset:
        """Where the next batch goes: behind all that is here, shown or not."""
        return self._end.offset

    def show_until(self, offset: Offset) -> None:
        """Let readers see what lies below `offset`, where a batch begins, and nothing behind it.

        Without it they see everything. So a large commit is brought in bit by bit, and met whole.
        """
        self._shown_until = offset

    @property
    def synced_offset(self) -> Offset:
        """Everything below survives a power cut."""
        return self._end.synced_offset

    @property
    def unflushed_bytes(self) -> int:
        """Bytes that are in memory only; the owner flushes before they become too many."""
        return self._end.tail.bytes

    @property
    def damage(self) -> tuple[SegmentDamage, ...]:
        """What is known to be unreadable, from opening, from reads since, and from the scrub."""
        return tuple(self._damage)

    # --- appending --------------------------------------------------------------------------

    def append(self, batches: Sequence[Buffer]) -> None:
        """Take stamped, committed batches, each starting where the one before ended.

        The buffers are kept, not copied, and must not be changed any more. A batch below
        `end_offset` comes again from the write-ahead log and is skipped, after a comparison with
        what is here wherever that costs nothing.
        """
        self._end.append(batches)

    def skip_to(self, offset: Offset) -> None:
        """Declare `[end_offset, offset)` as reserved and never filled; below the end, nothing."""
        self._end.skip_to(offset)

    def take(self, *, sync: bool = True) -> Flush | None:
        """Return what is to be written now; None if there is nothing, or a flush is under way."""
        return self._end.take(sync=sync)

    def write(self, flush: Flush) -> None:
        """Do the part that blocks; may run in a thread beside appends and reads.

        Raises `DiskFull` (tell `failed`, and take again when there is room; nothing is lost) or
        `SyncFailed`, which is fatal to the node.
        """
        self._end.write(flush)

    def flushed(self, flush: Flush) -> None:
        """Let go of the memory of what has been written."""
        self._end.flushed(flush)

    def failed(self, flush: Flush) -> None:
        """Give up a flush that could not be written; everything in it is still in memory."""
        self._end.failed(flush)

    def sync(self) -> None:
        """Write everything and make it survive a power cut."""
        self._end.sync()

    # --- reading ----------------------------------------------------------------------------

    def read(self, offset: Offset, bytes_max: int, *, gaps: bool = False) -> list[memoryview]:
        """Return whole batches from the one that holds `offset` on, up to `bytes_max`.

        Returns at least one, however large, unless only declared gaps follow. With `gaps`, for a
        peer that repairs itself, it also returns the frames of gaps, and what is below the start
        but not deleted yet: the peer's segment may need it.
        Raises `OffsetOutOfRange`, or `CorruptData` if the batch at `offset` is damaged.
        """
        if gaps:
            self._check_held(offset)
        else:
            self._check_range(offset)
            if self._shown_until is not None and self._shown_until < self._end.offset:
                return self._shown(offset, bytes_max)
        return self._read(offset, bytes_max, gaps=gaps)

    def _shown(self, offset: Offset, bytes_max: int) -> list[memoryview]:
        """Read where something lies behind what is shown."""
        end = self.end_offset
        batches = self._read(offset, bytes_max, gaps=False) if offset < end else []
        return [batch for batch in batches if walk(batch)[0] < end]

    def _read(self, offset: Offset, bytes_max: int, *, gaps: bool) -> list[memoryview]:
        end = self._end
        while offset < end.written_offset:
            segment = self.segments.at(offset)
            batches = self.reader.read(segment, offset, bytes_max, gaps=gaps)
            if batches:
                return batches
            offset = min(segment.readable_until, end.written_offset)
        return end.tail.read(offset, bytes_max, gaps=gaps)

    def offset_at(self, time: Micros) -> Offset:
        """Return the first offset appended at `time` or later; the end if there is none.

        All records of a batch have one append time, so this is exact.
        """
        for segment in self.segments.from_time(time):
            offset = self.reader.first_at_time(segment, time)
            if offset is not None:
                return min(max(offset, self._start), self.end_offset)
        offset = self._end.tail.first_at_time(time)
        return self.end_offset if offset is None else min(max(offset, self._start), self.end_offset)

    def time_at(self, offset: Offset) -> Micros:
        """Return when the record at `offset` was appended; for a gap, what follows it."""
        self._check_range(offset)
        reached, end = offset, self.end_offset
        while reached < min(end, self._end.written_offset):
            segment = self.segments.at(reached)
            time = self.reader.time_at(segment, reached)
            if time is not None:
                return time
            reached = min(segment.readable_until, self._end.written_offset)
        time = self._end.tail.time_at(reached) if reached < end else None
        if time is None:
            raise OffsetOutOfRange(offset=offset, start=self._start, end=self.end_offset)
        return time

    @property
    def _held_from(self) -> Offset:
        """The first offset that still has a file."""
        return next((segment.base_offset for segment in self.segments), self._start)

    def _check_range(self, offset: Offset) -> None:
        if not self._start <= offset <= self.end_offset:
            raise OffsetOutOfRange(offset=offset, start=self._start, end=self.end_offset)

    def _check_held(self, offset: Offset) -> None:
        """Raise unless there is something at `offset`, or it is the end, readers or no readers."""
        if not min(self._held_from, self._start) <= offset <= self._end.offset:
            raise OffsetOutOfRange(offset=offset, start=self._start, end=self._end.offset)

    # --- retention --------------------------------------------------------------------------

    def trim(self, start_offset: Offset) -> None:
        """Let readers begin at `start_offset` at once; a lower start than today's does nothing."""
        if start_offset > self.next_offset:
            raise InvalidArgument(f"a trim to {start_offset} lies behind {self.next_offset}")
        # At once, for readers; the files go later, when nobody reads them any more.
        self._start = max(self._start, start_offset)
        # What is trimmed need not be mended, and could not be: peers have trimmed it too.
        self._damage = [one for one in self._damage if one.to_offset > self._start]

    def collect(self) -> int:
        """Delete segments that lie wholly below the start; return how many were deleted.

        The cost is that of the deleted ones. Nothing that is not yet synced counts as below.
        """
        doomed = self.give_up()
        if doomed is None:
            return 0
        self.delete(doomed)
        self.deleted(doomed)
        return len(doomed.segments)

    def give_up(self) -> Doomed | None:
        """Let go of the segments that lie wholly below the start; None if there are none.

        Readers and peers do not find them any more. `delete` does the part that blocks.
        """
        until = min(self._start, self.synced_offset)
        below = list(takewhile(lambda segment: self._is_below(segment, until), self.segments))
        for segment in below:
            self.reader.forget(segment)
            self.delays.forget(segment.base_offset)
            self._end.forget(segment)
        self._below += [segment.base_offset for segment in below]
        self.segments.drop_first(len(below))
        return Doomed(until, tuple(self._below)) if self._below else None

    def delete(self, doomed: Doomed) -> None:
        """Delete the files of segments given up; may run in a thread beside appends and reads."""
        # Before the first file goes: an opening that finds a hole at the beginning must know that
        # it was meant to be there, and is no damage.
        write_start_mark(self._disk, self._folder, doomed.until)
        for base in doomed.segments:
            for suffix in (DELAYS, FOOTER, SEGMENT):
                self._disk.remove(file_name(self._folder, base, suffix))

    def deleted(self, doomed: Doomed) -> None:
        """Hear that their files are gone; what is not told here is given up once more."""
        self._below = [base for base in self._below if base not in doomed.segments]

    def _is_below(self, segment: Segment, until: Offset) -> bool:
        return segment.next_offset <= until and self._end.is_done_with(segment)

    # --- compaction -------------------------------------------------------------------------

    def close_segment(self, offset: Offset) -> None:
        """See to it that the segment before `offset` takes no more batches."""
        last = self.segments.last
        if last is not None and not last.is_rolled and last.bytes and last.base_offset < offset:
            self._end.roll()

    def _replaced(self, segment: Segment) -> None:
        """Forget a segment that another one takes the place of."""
        self.reader.forget(segment)
        self.delays.forget(segment.base_offset)
        self._damage = [one for one in self._damage if one.segment != segment.base_offset]

    def _suspected(self, segment: Segment) -> None:
        """Find out what is wrong with a segment, so that it is mended."""
        self.verify_segment(segment.base_offset)

    # --- copies for peers -------------------------------------------------------------------

    def manifest(self) -> Manifest:
        """Return the segments that hold everything from the start to the end, as of now.

        Batches that are still in memory count, too: a snapshot that carries the manifest may be
        saved once `synced_offset` has reached its `end_offset`.
        """
        # A peer would copy the damage as if it were the partition's records.
        if self._damage:
            raise CorruptData(f"{self._folder}: damaged segments cannot be copied")
        segments = tuple(
            SegmentInfo(
                segment.base_offset,
                segment.next_offset,
                segment.bytes,
                segment.crc,
                segment.stamps,
            )
            for segment in self.segments
            if segment.bytes and segment.next_offset > self._start
        )
        return Manifest(self._start, self.next_offset, segments, self.compactor.stage)

    def begin_import(self, manifest: Manifest, *, chunk_bytes: int = CHUNK_BYTES) -> SegmentImport:
        """Start copying the segments of a peer into files beside this log, which serves on.

        This log is closed before the import is finished, and opened again after.
        """
        return SegmentImport.begin(self._disk, self._folder, manifest, chunk_bytes=chunk_bytes)

    def read_segment(self, segment: Offset, position: int, length: int) -> bytes:
        """Return bytes of a segment as they are on disk, fewer where what is written ends.

        The peer verifies them against the manifest. `NotFound` says that the segment has been
        deleted since, and that a newer manifest is needed.
        """
        named = self.segments.named(segment)
        if named is None:
            raise NotFound(f"there is no segment {segment}")
        return self.reader.raw(named, position, length)

    # --- damage -----------------------------------------------------------------------------

    def verify_segment(self, segment: Offset) -> None:
        """Read a segment from end to end; what is wrong with it is in `damage` afterwards."""
        named = self.segments.named(segment)
        if named is not None:
            with suppress(CorruptData):
                deque(self.reader.frames(named, 0), maxlen=0)

    def report(self, damage: SegmentDamage) -> None:
        """Remember damage that somebody met."""
        # Told once, however many readers meet it.
        if damage not in self._damage and damage.to_offset > self._start:
            # What was known of it is mended with it, and could not be before.
            self._damage = [one for one in self._damage if not damage.covers(one)]
            self._damage.append(damage)
            self._on_damage(damage)

    def is_comparable(self, damage: SegmentDamage, stage: Stage) -> bool:
        """Tell whether frames of a peer whose segments are at `stage` can mend the damage.

        Of a sealed segment the checksums tell that. Of one whose checksums are lost nothing tells
        whether the peer's records are those that were here but that both are compacted alike: a
        peer that is further may miss the tombstone of a record that is still there.
        """
        if self.segments.at(damage.from_offset).whole_until is None:
            return True
        return stage == self.compactor.stage and not stage.is_between

    def repair(
        self, damage: SegmentDamage, frames: Sequence[Buffer], *, stage: Stage | None = None
    ) -> bool:
        """Put `frames`, read from a peer with `gaps=True`, where this log is damaged.

        They begin at `damage.from_offset` and leave no hole. A broken segment may be completed in
        several calls; the damage in a sealed one is filled at once. False says that more is
        needed: `damage` then lists what. `CorruptData` refuses frames that were not there.

        `stage` says how far the peer's segments are compacted; see `is_comparable`.
        """
        if stage is not None and not self.is_comparable(damage, stage):
            # Its frames may be whole and yet leave out what belongs here.
            raise CorruptData("the peer's segments are not compacted as far as those here")
        segment = self.segments.at(damage.from_offset)
        # Only a file that nobody writes to any more may be patched.
        damage = self._sealed(segment, damage)
        if segment.whole_until is None:
            is_mended = patch(self._disk, self._folder, self.reader, segment, damage, frames)
            if is_mended:
                self._damage = [one for one in self._damage if one != damage]
        else:
            extend_broken(self._disk, self._folder, self._config, segment, frames)
            self._damage = [one for one in self._damage if one.segment != segment.base_offset]
            is_mended = segment.whole_until is None
            if not is_mended:
                self.report(broken_part(segment))
        self.reader.forget(segment)
        return is_mended

    def _sealed(self, segment: Segment, damage: SegmentDamage) -> SegmentDamage:
        """Seal a segment that is still growing, and return what the damage is then."""
        if segment.is_rolled and self._end.is_done_with(segment):
            return damage
        self._end.seal(segment)
        index = self.reader.index(segment)
        row = index.row_of_offset(damage.from_offset)
        found = self.reader.locate(segment, index[row].position)
        self._damage = [found if one == damage else one for one in self._damage]
        return found


def _ignore(_: SegmentDamage) -> None:
    """The default: nobody listens."""
