"""Reading batches from segment files: a large read, one checksum over it, then cut into batches.

Each step of a read begins at a point of the sparse index and ends at one, so the bytes in between
are verified against the two points' checksums in one run. If that fails, the frames are looked at
one by one: whole ones before the damage are still served, and the damage is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.batch.checksum import extend
from angarium.errors import CorruptData
from angarium.log.segments.footer import read_index, write_footer
from angarium.log.segments.frames import GAP_BYTES, Frame, frame_at, is_intact, walk
from angarium.log.segments.index import Point
from angarium.log.segments.names import SEGMENT, file_name
from angarium.log.segments.scan import scan
from angarium.log.segments.segment import Segment, SegmentDamage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from angarium.ids import Micros, Offset
    from angarium.log.disk import Disk, File
    from angarium.log.segments.config import SegmentConfig
    from angarium.log.segments.files import OpenFiles
    from angarium.log.segments.index import SparseIndex


STEP_BYTES: Final = 1 << 20
"""Bytes read and verified at a time, if the index has a point near enough."""

_NAMES_MAX: Final = 64
"""Names of files kept, because a read is shorter than making one. At the limit all are dropped."""


class DamageFound(CorruptData):
    """Damage met while reading; `damage` says where."""

    def __init__(self, damage: SegmentDamage) -> None:
        super().__init__(
            f"segment {damage.segment}: offsets [{damage.from_offset}, {damage.to_offset}) "
            f"cannot be read: {damage.reason}"
        )
        self.damage: Final = damage


class Found(NamedTuple):
    """A frame met by a walk, and where it lies in the file."""

    position: int
    frame: Frame


class SegmentReader:
    """Reads the files of one partition."""

    __slots__ = ("_config", "_disk", "_files", "_folder", "_loaded", "_names", "_report")

    def __init__(
        self,
        disk: Disk,
        folder: str,
        config: SegmentConfig,
        files: OpenFiles,
        report: Callable[[SegmentDamage], None],
    ) -> None:
        self._disk = disk
        self._report = report
        self._folder = folder
        self._config = config
        self._files = files
        self._loaded: dict[Offset, Segment] = {}
        self._names: dict[Offset, str] = {}

    def read(
        self, segment: Segment, offset: Offset, bytes_max: int, *, gaps: bool = False
    ) -> list[memoryview]:
        """Return written batches from the one that holds `offset` on, at least one if any.

        With `gaps`, the frames that declare gaps are among them. An empty list says that the
        segment's file has only a gap from there on.
        """
        if segment.whole_until is not None and offset >= segment.whole_until:
            raise self._found(broken_part(segment))
        index = segment.index if segment.index is not None else self.index(segment)
        file = self._file(segment)
        row = index.row_of_offset(offset)
        batches: list[memoryview] = []
        while True:
            step = min(bytes_max, STEP_BYTES)
            start, crc, end, end_crc, following = index.window(row, step, segment.written)
            chunk = file.pread(end - start, start)
            is_full = None
            # Checked with every read, before a single byte is served: a disk may return other
            # bytes than were written. Planted as corrupt-segment-served.
            if extend(crc, chunk) == end_crc and len(chunk) == end - start:
                is_full = _cut(chunk, index.offset(row), offset, bytes_max, gaps, batches)
            if is_full is None:
                # Damage is told when it is what comes next; what lies before it is served first.
                return batches or self._salvage(segment, row, chunk, offset, bytes_max, gaps)
            bytes_max -= end - start
            # What is left of the last step would rarely hold a whole stretch.
            is_full = is_full or (bytes_max < STEP_BYTES and bool(batches))
            if is_full or following == len(index):
                return batches
            row = following

    def raw(self, segment: Segment, position: int, length: int) -> bytes:
        """Return bytes of a segment's file as they are, up to what has been written."""
        length = min(length, segment.written.position - position)
        return self._file(segment).pread(length, position) if length > 0 else b""

    def frames(self, segment: Segment, row: int) -> Iterator[Found]:
        """Walk along the verified frames from a point of the index to what has been written."""
        index = self.index(segment)
        while row < len(index):
            start = index[row]
            if start.position >= segment.written.position:
                return
            end = index.end_of_stretch(row, segment.written)
            chunk = self._file(segment).pread(end.position - start.position, start.position)
            if extend(start.crc, chunk) != end.crc:
                raise self._found(self._locate(segment, row, chunk)[0])
            position = 0
            while position < len(chunk):
                frame = frame_at(chunk, position)
                assert frame is not None, "verified bytes are frames"
                yield Found(start.position + position, frame)
                position += frame.length
            row += 1

    def first_at_time(self, segment: Segment, time: Micros) -> Offset | None:
        """Return the base offset of the first written batch appended at `time` or later.

        Where a segment is damaged that may be the first offset that cannot be read. A leader that
        took it for older would trim young records, on every replica (seed 62016).
        """
        if segment.written.position:
            for _, frame in self.frames(segment, self.index(segment).row_before_time(time)):
                if not frame.is_gap and frame.append_time >= time:
                    return frame.base_offset
        return segment.whole_until

    def time_at(self, segment: Segment, offset: Offset) -> Micros | None:
        """Return the append time of the first written batch that ends behind `offset`."""
        if segment.whole_until is not None and offset >= segment.whole_until:
            raise self._found(broken_part(segment))
        for _, frame in self.frames(segment, self.index(segment).row_of_offset(offset)):
            if not frame.is_gap and frame.next_offset > offset:
                return frame.append_time
        return None

    def index(self, segment: Segment) -> SparseIndex:
        """Return the segment's index, from memory, its footer, or else its bytes."""
        if segment.index is not None:
            return segment.index
        index = read_index(self._disk, self._folder, segment.base_offset)
        if index is None:
            index = self._rebuilt_index(segment)
        segment.index = index
        self.keep_index(segment)
        return index

    def keep_index(self, segment: Segment) -> None:
        """Count the index of a sealed segment among those that may be dropped again."""
        if len(self._loaded) >= self._config.indexes_max:
            self._loaded.pop(next(iter(self._loaded))).index = None
        self._loaded[segment.base_offset] = segment

    def forget(self, segment: Segment) -> None:
        """Drop what is kept about a segment that is removed or replaced."""
        self._loaded.pop(segment.base_offset, None)
        self._files.forget(file_name(self._folder, segment.base_offset, SEGMENT))

    def verify(self, segment: Segment, start: Point, length: int) -> tuple[Point, bool]:
        """Verify up to `length` bytes from `start`; return where that ended, and the verdict.

        It ends at a point of the index, whose checksum must come out. Only if there is none
        within reach the checksum is carried on, unjudged, to a position between points. A wrong
        verdict comes with the position from which on the bytes are in doubt.
        """
        index, limit = self.index(segment), start.position + length
        end: Point | None = segment.written
        if limit < segment.written.position:
            end = index[index.row_at_or_before(limit)]
            if end.position <= start.position:
                end = None
        until = limit if end is None else end.position
        chunk = self.raw(segment, start.position, until - start.position)
        found = Point(start.position + len(chunk), extend(start.crc, chunk))
        if found.position == until and end in {None, found}:
            return found, True
        return self._first_doubt(segment, start, chunk), False

    def _first_doubt(self, segment: Segment, start: Point, chunk: bytes) -> Point:
        """Return the last position before bytes that contradict the index."""
        index = self.index(segment)
        crc, done = start.crc, start.position
        for row in range(index.row_at_or_before(done) + 1, len(index)):
            point = index[row]
            crc = extend(crc, chunk[done - start.position : point.position - start.position])
            if crc != point.crc:
                break
            done = point.position
        return Point(done, crc)

    def locate(self, segment: Segment, position: int) -> SegmentDamage:
        """Return what is damaged in the stretch of the index in which `position` lies."""
        index = self.index(segment)
        row = index.row_at_or_before(position)
        start, end = index[row], index.end_of_stretch(row, segment.written)
        chunk = self.raw(segment, start.position, end.position - start.position)
        return self._locate(segment, row, chunk)[0]

    def found_at(self, segment: Segment, position: int) -> DamageFound:
        """Report what is damaged in the stretch of the index in which `position` lies."""
        return self._found(self.locate(segment, position))

    def _found(self, damage: SegmentDamage) -> DamageFound:
        self._report(damage)
        return DamageFound(damage)

    def _file(self, segment: Segment) -> File:
        name = self._names.get(segment.base_offset)
        if name is None:
            if len(self._names) >= _NAMES_MAX:
                self._names.clear()
            name = file_name(self._folder, segment.base_offset, SEGMENT)
            self._names[segment.base_offset] = name
        try:
            return self._files.get(name)
        except FileNotFoundError:
            raise self._broken(segment, Segment(segment.base_offset)) from None

    def _rebuilt_index(self, segment: Segment) -> SparseIndex:
        """Return the index made anew from the segment's bytes, if these are as they must be."""
        whole, _, _ = scan(
            self._file(segment),
            segment.base_offset,
            index_bytes=self._config.index_bytes,
            length=segment.bytes,
            until=segment.next_offset,
        )
        # The bytes are not those that were sealed. An index made from them would make the damage
        # look sound.
        if (whole.next_offset, whole.crc) != (segment.next_offset, segment.crc):
            raise self._broken(segment, whole)
        write_footer(self._disk, self._folder, whole)
        assert whole.index is not None
        return whole.index

    def _broken(self, segment: Segment, rest: Segment) -> DamageFound:
        """Let only `rest`, the part that is whole, count as the segment from now on."""
        self.forget(segment)
        rest.break_off(segment.next_offset)
        segment.become(rest)
        return self._found(broken_part(segment))

    def _salvage(
        self,
        segment: Segment,
        row: int,
        chunk: bytes,
        offset: Offset,
        bytes_max: int,
        gaps: bool,
    ) -> list[memoryview]:
        """Return the batches before the damage in `chunk`; raise if none of them is wanted."""
        damage, good = self._locate(segment, row, chunk)
        batches: list[memoryview] = []
        if offset < damage.from_offset:
            first = self.index(segment).offset(row)
            _cut(chunk[:good], first, offset, bytes_max, gaps, batches)
        if not batches:
            raise self._found(damage)
        return batches

    def _locate(self, segment: Segment, row: int, chunk: bytes) -> tuple[SegmentDamage, int]:
        """Return the first damage in bytes that failed, and how many bytes before it are good.

        `chunk` begins at a point of the index. The damage ends at the next point: only there is a
        frame sure to begin.
        """
        index = self.index(segment)
        origin = index[row].position
        while True:
            start, end = index[row], index.end_of_stretch(row, segment.written)
            stretch = chunk[start.position - origin : end.position - origin]
            good, offset = _whole_frames(stretch, index.offset(row))
            is_complete = good == end.position - start.position
            if not is_complete or extend(start.crc, stretch) != end.crc or end == segment.written:
                break
            row += 1
        if is_complete:
            # Every frame is whole and yet the bytes are not those written: distrust them all. A
            # frame can be whole and still be the wrong one, from an earlier life of the sectors or
            # of another file.
            good, offset = 0, index.offset(row)
        # A file that ends too early has nothing to offer behind, either.
        is_last = end == segment.written or len(stretch) < end.position - start.position
        to = segment.next_offset if is_last else index.offset(row + 1)
        damage = SegmentDamage(segment.base_offset, offset, to, "checksum or order is wrong")
        return damage, start.position - origin + good


def broken_part(segment: Segment) -> SegmentDamage:
    """Return the part of a damaged segment that opening could not read."""
    assert segment.whole_until is not None
    return SegmentDamage(
        segment.base_offset,
        segment.whole_until,
        segment.next_offset,
        "what was durable is lost or damaged",
    )


def _cut(
    chunk: bytes,
    first: Offset,
    offset: Offset,
    bytes_max: int,
    gaps: bool,
    batches: list[memoryview],
) -> bool | None:
    """Cut batches out of verified bytes, from the one that holds `offset` on, into `batches`.

    Returns whether the next one would not have fitted any more; None says that the frames, of
    which the one at `first` comes first, are out of order.
    """
    view = memoryview(chunk)
    position, size, expected = 0, len(chunk), int(first)
    if offset <= first and not batches and size <= bytes_max:
        # The common case, a reader that goes on where it stopped: nothing to leave out.
        start = 0
        while start < size:
            base, length, span = walk(chunk, start)
            if base != expected or length == GAP_BYTES:
                break
            expected = base + span
            end = start + length
            batches.append(view[start:end])
            start = end
        position = start
        bytes_max -= start
    while position < size:
        base, length, span = walk(chunk, position)
        if base != expected:
            return None
        expected = base + span
        end = position + length
        if expected > offset and (length != GAP_BYTES or gaps):
            bytes_max -= length
            if bytes_max < 0 and batches:
                return True
            batches.append(view[position:end])
        position = end
    return False


def _whole_frames(chunk: bytes, offset: Offset) -> tuple[int, Offset]:
    """Return where the whole frames from the beginning of `chunk` end, in bytes and offsets."""
    position = 0
    while True:
        frame = frame_at(chunk, position)
        if frame is None or frame.base_offset != offset or not is_intact(chunk, position, frame):
            return position, offset
        position += frame.length
        offset = frame.next_offset
