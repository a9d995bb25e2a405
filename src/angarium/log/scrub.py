"""The background check of sealed segments: it finds what has rotted before a reader does.

Each step reads a bounded number of bytes and compares them with the checksums in the segments'
indexes. Nothing is repaired here: damage is reported to the log, and its owner fetches a good copy
from a peer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.ids import Offset
from angarium.log.segments.index import Point
from angarium.log.segments.reader import DamageFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.log.segments import PartitionLog, SegmentDamage
    from angarium.log.segments.segment import Segment

SLICE_BYTES: Final = 1 << 20
"""Bytes verified per step; well under a millisecond from memory, some from a disk."""


class ScrubPosition(NamedTuple):
    """How far a scrub has come; a later one may go on from there."""

    segment: Offset = Offset(-1)
    """The segment being verified; before the first one, -1."""
    position: int = 0
    crc: int = 0
    """The checksum of the segment's bytes before `position`."""
    whole: int = 0
    """The checksum of the whole segment: one of the same name may have taken its place."""


class Scrub:
    """One round over a log's sealed segments, those included that are sealed on the way."""

    def __init__(
        self,
        log: PartitionLog,
        *,
        slice_bytes: int = SLICE_BYTES,
        position: ScrubPosition | None = None,
    ) -> None:
        self.log: Final = log
        self._slice_bytes = slice_bytes
        self.position = ScrubPosition() if position is None else position
        self.is_done = False
        self.verified_bytes = 0

    def step(self) -> SegmentDamage | None:
        """Verify the next slice; return the damage found in it, which the log knows then, too."""
        segment = self._current()
        if segment is None:
            self.is_done = True
            return None
        start = Point(self.position.position, self.position.crc)
        try:
            end, is_good = self.log.reader.verify(segment, start, self._slice_bytes)
            self.verified_bytes += end.position - start.position
            if is_good:
                self.position = ScrubPosition(segment.base_offset, *end, segment.crc)
                return None
            damage = self.log.reader.locate(segment, end.position)
        except DamageFound as found:
            damage = found.damage
        self.log.report(damage)
        self.position = self._behind(segment, damage)
        return damage

    def __iter__(self) -> Iterator[SegmentDamage | None]:
        """Yield what each step finds until the round is complete."""
        while not self.is_done:
            yield self.step()

    def _current(self) -> Segment | None:
        """Return the segment to go on with, at the position to go on from."""
        segment = self.log.segments.named(self.position.segment)
        if segment is not None and segment.is_sealed:
            if self.position.position and self.position.whole != segment.crc:
                self.position = ScrubPosition(segment.base_offset)
            if self.position.position < segment.bytes:
                return segment
        for later in self.log.segments.after(self.position.segment):
            if later.is_sealed:
                self.position = ScrubPosition(later.base_offset)
                return later
        return None

    def _behind(self, segment: Segment, damage: SegmentDamage) -> ScrubPosition:
        """Return the position from which to go on: only a point of the index is sure to be one."""
        if damage.to_offset >= segment.next_offset or not segment.is_sealed:
            return ScrubPosition(segment.base_offset, segment.bytes, segment.crc, segment.crc)
        index = self.log.reader.index(segment)
        point = index[index.row_of_offset(damage.to_offset)]
        return ScrubPosition(segment.base_offset, *point, segment.crc)
