"""One segment as it is known in memory: what it spans, how far it is written, its checksum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.batch.checksum import extend
from angarium.ids import Micros, Offset
from angarium.log.segments.delay_runs import DelayRuns
from angarium.log.segments.index import Point, SparseIndex

if TYPE_CHECKING:
    from angarium.ids import Buffer
    from angarium.log.disk import File
    from angarium.log.segments.frames import Frame


NO_TIME: Final = Micros(0)
"""Before every append time."""


class SegmentDamage(msgspec.Struct, frozen=True):
    """Offsets that should be there and cannot be read. Nothing in the range is served."""

    segment: Offset
    """The segment's first offset, which is its name; of a lost file, the name it had."""
    from_offset: Offset
    to_offset: Offset
    reason: str = ""

    def covers(self, other: SegmentDamage) -> bool:
        """Tell whether `other` lies wholly within this."""
        return (
            self.segment == other.segment
            and self.from_offset <= other.from_offset
            and other.to_offset <= self.to_offset
        )


class Segment:
    """What is known of one segment.

    `bytes`, `crc` and `next_offset` count everything appended; `written` ends where the file
    ends as far as readers may trust it. They differ while batches wait in memory, and in a
    damaged segment, whose good part ends at `whole_until` and where nothing behind is readable.
    """

    __slots__ = (
        "allocated",
        "base_offset",
        "batches",
        "bytes",
        "crc",
        "delays",
        "deliver_at_max",
        "expires_at_max",
        "first_time",
        "index",
        "is_rolled",
        "is_sealed",
        "last_time",
        "next_offset",
        "records",
        "stamps",
        "whole_until",
        "writer",
        "written",
    )

    def __init__(self, base_offset: Offset, *, last_time: Micros = NO_TIME) -> None:
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.whole_until: Offset | None = None
        """In a damaged segment, the first offset that cannot be read; None in a whole one."""
        self.bytes = 0
        self.crc = 0
        self.stamps = 0
        """The checksum of the frames' stamp checksums, one after the other; see `index`."""
        self.written = Point(0, 0)
        self.index: SparseIndex | None = SparseIndex()
        """None where it has not been read from the footer, or has been dropped again."""
        self.delays: DelayRuns | None = None
        """The delayed records of a segment that is not sealed yet, if it has any."""
        self.batches = 0
        self.records = 0
        self.first_time = Micros(0)
        """Append time of the first batch; zero while there is none."""
        self.last_time = last_time
        """Append time of the last batch, or of the one before this segment."""
        self.expires_at_max = Micros(0)
        self.deliver_at_max = Micros(0)
        self.is_rolled = False
        """A later segment takes the appends; this one waits to be sealed."""
        self.is_sealed = False
        self.writer: File | None = None
        self.allocated = 0
        """The length of the file as far as the writer knows it."""

    @property
    def readable_until(self) -> Offset:
        """The offset behind the last one that may be read, from file or memory."""
        return self.next_offset if self.whole_until is None else self.whole_until

    def add(self, frame: Frame, *, crc: int, index_bytes: int) -> None:
        """Account for `frame` behind all others; `crc` is the segment's with it included."""
        if not frame.is_gap:
            if self.batches == 0:
                self.first_time = frame.append_time
            self.last_time = frame.append_time
            self.batches += 1
            self.records += frame.records
        self.point_if_due(offset=frame.base_offset, time=self.last_time, index_bytes=index_bytes)
        self.stamps = extend(self.stamps, frame.stamp_crc.to_bytes(4, "little"))
        self.bytes += frame.length
        self.crc = crc
        self.next_offset = frame.next_offset

    def add_run(
        self,
        *,
        batches: int,
        records: int,
        length: int,
        next_offset: Offset,
        last_time: Micros,
        crc: int,
        stamps: int,
    ) -> None:
        """Account for many batches behind others, without a point of the index among them.

        `crc` and `stamps` are the segment's with all of them included.
        """
        self.batches += batches
        self.records += records
        self.bytes += length
        self.next_offset = next_offset
        self.last_time = last_time
        self.crc = crc
        self.stamps = stamps

    def point_if_due(self, *, offset: Offset, time: Micros, index_bytes: int) -> None:
        """Let a point of the index lie here if the last one is `index_bytes` away."""
        index = self.index
        assert index is not None
        if self.bytes - index.last_position() >= index_bytes:
            index.add(
                offset=offset, time=time, position=self.bytes, crc=self.crc, stamps=self.stamps
            )

    def note_times(self, expires_at: Micros, deliver_at: Micros) -> None:
        """Remember the latest expiry and delivery a batch of this segment asks for."""
        self.expires_at_max = max(self.expires_at_max, expires_at)
        self.deliver_at_max = max(self.deliver_at_max, deliver_at)

    def note_delays(self, batch: Buffer) -> None:
        """Remember which records of a batch of this segment are to be delivered later."""
        if self.delays is None:
            self.delays = DelayRuns(self.base_offset)
        self.delays.add(batch)

    def break_off(self, until: Offset) -> None:
        """Call everything from here to `until` unreadable; the segment takes no more appends."""
        self.whole_until = self.next_offset
        self.next_offset = until
        self.is_rolled = True
        self.is_sealed = False
        self.delays = None
        self.written = Point(self.bytes, self.crc)

    def become(self, other: Segment) -> None:
        """Take over everything known about another account of the same segment."""
        for name in self.__slots__:
            setattr(self, name, getattr(other, name))
