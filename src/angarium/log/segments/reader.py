"""Reading batches from segment files: one large read, one checksum over it, then cut into batches.

A read begins at a point of the sparse index and ends at one, so the bytes in between are verified
against the two points' checksums in one run. If that fails, the frames are looked at one by one:
whole ones before the damage are still served, and the damage is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.batch.checksum import extend
from angarium.batch.layout import MAGIC
from angarium.errors import CorruptData
from angarium.log.segments.footer import read_index, write_footer
from angarium.log.segments.frames import Frame, frame_at, is_intact, walk
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

    __slots__ = ("_config", "_disk", "_files", "_folder", "_loaded", "_report")

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

    def read(
        self, segment: Segment, offset: Offset, bytes_max: int, *, gaps: bool = False
    ) -> list[memoryview]:
        """Return written batches from the one that holds `offset` on, at least one if any.

        With `gaps`, the frames that declare gaps are among them. An empty list says that the
        segment's file has only a gap from there on.
        """
        if segment.whole_until is not None and offset >= segment.whole_until:
            raise self._found(broken_part(segment))
        index = self.index(segment)
        place = index.place_of_offset(offset)
        while True:
            start = index[place]
            end = _end_of_read(segment, index, place, bytes_max)
            chunk = self._file(segment).pread(end.position - start.position, start.position)
            batches = None
            if len(chunk) == end.position - start.position and extend(start.crc, chunk) == end.crc:
                batches = _batches(chunk, index.offset(place), offset, bytes_max, gaps=gaps)
            if batches is None:
                good = self._good_part(segment, place, chunk, offset)
                batches = _batches(good, index.offset(place), offset, bytes_max, gaps=gaps)
            if batches or end == segment.written:
                return batches or []
            # This stretch had nothing but a gap left; go on behind it.
            place = index.place_at_or_before(end.position)

    def raw(self, segment: Segment, position: int, length: int) -> bytes:
        """Return bytes of a segment's file as they are, up to what has been written."""
        length = min(length, segment.written.position - position)
        return self._file(segment).pread(length, position) if length > 0 else b""

    def frames(self, segment: Segment, place: int) -> Iterator[Found]:
        """Walk along the verified frames from a point of the index to what has been written."""
        index = self.index(segment)
        while place < len(index):
            start = index[place]
            if start.position >= segment.written.position:
                return
            end = _end_of_read(segment, index, place, 1)
            chunk = self._file(segment).pread(end.position - start.position, start.position)
            if extend(start.crc, chunk) != end.crc:
                raise self._found(self._locate(segment, place, chunk)[0])
            position = 0
            while position < len(chunk):
                frame = frame_at(chunk, position)
                assert frame is not None, "verified bytes are frames"
                yield Found(start.position + position, frame)
                position += frame.length
            place += 1

    def first_at_time(self, segment: Segment, time: Micros) -> Offset | None:
        """Return the base offset of the first written batch appended at `time` or later."""
        if segment.written.position == 0:
            return None
        for _, frame in self.frames(segment, self.index(segment).place_before_time(time)):
            if not frame.is_gap and frame.append_time >= time:
                return frame.base_offset
        return None

    def time_at(self, segment: Segment, offset: Offset) -> Micros | None:
        """Return the append time of the first written batch that ends behind `offset`."""
        if segment.whole_until is not None and offset >= segment.whole_until:
            raise self._found(broken_part(segment))
        for _, frame in self.frames(segment, self.index(segment).place_of_offset(offset)):
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
        """Verify about `length` bytes from `start`; return where that ended, and the verdict.

        The bytes are right if no point of the index that was passed contradicts them. What was
        read behind the last point is carried on in the checksum of the place returned. A wrong
        verdict comes with the place from which on the bytes are in doubt.
        """
        index = self.index(segment)
        until = min(start.position + length, segment.written.position)
        chunk = self.raw(segment, start.position, until - start.position)
        crc, done = start.crc, start.position
        for place in range(index.place_at_or_before(done) + 1, len(index) + 1):
            point = index[place] if place < len(index) else segment.written
            if point.position > until:
                break
            crc = extend(crc, chunk[done - start.position : point.position - start.position])
            if crc != point.crc:
                return Point(done, crc), False
            done = point.position
        if len(chunk) != until - start.position:
            return Point(done, crc), False
        return Point(until, extend(crc, chunk[done - start.position :])), True

    def locate(self, segment: Segment, position: int) -> SegmentDamage:
        """Return what is damaged in the stretch of the index in which `position` lies."""
        index = self.index(segment)
        place = index.place_at_or_before(position)
        start, end = index[place], _end_of_read(segment, index, place, 1)
        chunk = self.raw(segment, start.position, end.position - start.position)
        return self._locate(segment, place, chunk)[0]

    def _found(self, damage: SegmentDamage) -> DamageFound:
        self._report(damage)
        return DamageFound(damage)

    def _file(self, segment: Segment) -> File:
        try:
            return self._files.get(file_name(self._folder, segment.base_offset, SEGMENT))
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

    def _good_part(self, segment: Segment, place: int, chunk: bytes, offset: Offset) -> bytes:
        """Return what is good before the damage; raise if nothing in it is wanted."""
        damage, good = self._locate(segment, place, chunk)
        first = self.index(segment).offset(place)
        # A gap right before the damage would yield nothing: then the damage is what is next.
        if offset >= damage.from_offset or not _batches(chunk[:good], first, offset, 1, gaps=False):
            raise self._found(damage)
        return chunk[:good]

    def _locate(self, segment: Segment, place: int, chunk: bytes) -> tuple[SegmentDamage, int]:
        """Return the first damage in bytes that failed, and how many bytes before it are good.

        `chunk` begins at a point of the index. The damage ends at the next point: only there is a
        frame sure to begin.
        """
        index = self.index(segment)
        origin = index[place].position
        while True:
            start, end = index[place], _end_of_read(segment, index, place, 1)
            stretch = chunk[start.position - origin : end.position - origin]
            good, offset = _whole_frames(stretch, index.offset(place))
            is_complete = good == end.position - start.position
            if not is_complete or extend(start.crc, stretch) != end.crc or end == segment.written:
                break
            place += 1
        if is_complete:
            # Every frame is whole and yet the bytes are not those written: distrust them all.
            good, offset = 0, index.offset(place)
        # A file that ends too early has nothing to offer behind, either.
        is_last = end == segment.written or len(stretch) < end.position - start.position
        to = segment.next_offset if is_last else index.offset(place + 1)
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


def _end_of_read(segment: Segment, index: SparseIndex, place: int, bytes_max: int) -> Point:
    """Return the last point within `bytes_max` of a point, or the next one if that is farther."""
    start = index[place]
    if start.position + bytes_max >= segment.written.position:
        return segment.written
    last = max(index.place_at_or_before(start.position + bytes_max), place + 1)
    # Points of batches that still wait in memory lie behind what has been written.
    if last >= len(index) or index[last].position > segment.written.position:
        return segment.written
    return index[last]


def _batches(
    chunk: bytes, first: Offset, offset: Offset, bytes_max: int, *, gaps: bool
) -> list[memoryview] | None:
    """Cut whole batches out of verified bytes, from the one that holds `offset` on.

    None says that the frames, of which the one at `first` comes first, are out of order.
    """
    view = memoryview(chunk)
    batches: list[memoryview] = []
    position = total = 0
    size, expected = len(chunk), int(first)
    while position < size:
        magic, base, length, span = walk(chunk, position)
        if base != expected:
            return None
        expected = base + span
        end = position + length
        if expected > offset and (magic == MAGIC or gaps):
            total += length
            if total > bytes_max and batches:
                break
            batches.append(view[position:end])
        position = end
    return batches


def _whole_frames(chunk: bytes, offset: Offset) -> tuple[int, Offset]:
    """Return where the whole frames from the beginning of `chunk` end, in bytes and offsets."""
    position = 0
    while True:
        frame = frame_at(chunk, position)
        if frame is None or frame.base_offset != offset or not is_intact(chunk, position, frame):
            return position, offset
        position += frame.length
        offset = frame.next_offset
