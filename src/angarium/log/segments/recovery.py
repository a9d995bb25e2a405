"""Opening a partition's segments: which are whole, which are damaged, and what may be cut.

The owner says up to where everything must be there (`durable_until`: the write-ahead log below it
has been given up). What is missing or broken below that offset is damage: it is reported, its
bytes stay where they are, and later appends go to a new segment. From that offset on the
write-ahead log brings everything again, so a last file that does not end whole is cut behind its
last whole frame. Only the last: a segment is durable before the next one is made, so anything
wrong further up is a disk that broke its promise, and is reported wherever it lies.

Sealed segments are believed by their footers, once the lengths agree: their bytes are verified
when they are read, and by the scrub. Whatever has no good footer is verified from end to end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import DiskFull
from angarium.log.segments.footer import read_footer, write_footer
from angarium.log.segments.names import DRAFT, FOOTER, SEGMENT, file_name, offsets_named
from angarium.log.segments.reader import broken_part
from angarium.log.segments.scan import Tail, scan
from angarium.log.segments.segment import Segment, SegmentDamage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.ids import Offset
    from angarium.log.disk import Disk
    from angarium.log.segments.config import SegmentConfig


class Recovery:
    """What opening found. `segments` adjoin each other; the last may go on taking appends."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        config: SegmentConfig,
        *,
        start_offset: Offset,
        durable_until: Offset,
    ) -> None:
        self.segments: list[Segment] = []
        self.below: list[Offset] = []
        """Segments that lie wholly below the start; they wait to be deleted."""
        self.damage: list[SegmentDamage] = []
        self.stamps: dict[Offset, int] = {}
        """Checksums of stamps that the write-ahead log may bring again, by base offset."""
        self.cut_from: Offset | None = None
        """Where something that was not whole was cut off, for the write-ahead log to bring."""
        self.scanned_bytes = 0
        self._disk = disk
        self._folder = folder
        self._config = config
        self.start_offset = start_offset
        self._durable_until = max(durable_until, start_offset)
        self._remove_drafts()
        self.end_offset = self._recover(offsets_named(disk, folder, SEGMENT))
        last = self.segments[-1].base_offset if self.segments else self.end_offset
        self.synced_offset = max(last, min(self._durable_until, self.end_offset))
        """Below this everything is known to be durable; above, it may only be in a cache."""

    def _recover(self, bases: Sequence[Offset]) -> Offset:
        """Load every segment from the one that holds the start on; return the log's end."""
        end: Offset | None = None
        for base, following in _with_following(bases):
            # The next segment begins at or below the start, so nothing in this one is needed.
            if following is not None and following <= self.start_offset:
                self.below.append(base)
                continue
            if end is None:
                end = min(base, self.start_offset)
            if base > end:
                self._lose(end, base)
            segment, tail = self._load(base, following)
            if self.segments:
                # One without a batch, found by its bytes alone, does not know its time.
                segment.last_time = max(segment.last_time, self.segments[-1].last_time)
            self.segments.append(segment)
            end = segment.next_offset
            if following is not None and end != following:
                end = self._break(segment, following)
            # Behind `durable_until` nothing was promised: it is a torn write, and the write-ahead
            # log brings it again. Below it the same bytes would be damage.
            elif tail is Tail.BROKEN and end >= self._durable_until:
                self._cut(segment)
        return self._checked_end(self.start_offset if end is None else end)

    def _checked_end(self, end: Offset) -> Offset:
        """Report what is missing between the last frame found and `durable_until`."""
        if end >= self._durable_until:
            return end
        if self._durable_until == self.start_offset:
            # Nothing above the start was ever durable, and nothing below it is needed.
            self.below += [segment.base_offset for segment in self.segments]
            self.segments.clear()
            self.damage.clear()
        elif self.segments and not self.segments[-1].is_rolled:
            self._break(self.segments[-1], self._durable_until)
        else:
            self._lose(end, self._durable_until)
        return self._durable_until

    def _lose(self, start: Offset, end: Offset) -> None:
        """Report a segment that is not there at all."""
        segment = Segment(start)
        self.segments.append(segment)
        self._break(segment, end)

    def _break(self, segment: Segment, until: Offset) -> Offset:
        """Report everything in `segment` behind its last whole frame."""
        segment.break_off(until)
        self.damage.append(broken_part(segment))
        return until

    def _cut(self, segment: Segment) -> None:
        """Cut the last file behind its last whole frame; it takes appends again."""
        self.cut_from = segment.next_offset
        # First the footer, durably: with it a shorter file would look damaged at the next opening.
        self._disk.remove(file_name(self._folder, segment.base_offset, FOOTER))
        self._disk.sync_directory(self._folder)
        file = self._disk.open(file_name(self._folder, segment.base_offset, SEGMENT))
        try:
            file.truncate(segment.bytes)
            file.datasync()
        finally:
            file.close()
        segment.allocated = segment.bytes

    def _load(self, base: Offset, following: Offset | None) -> tuple[Segment, Tail]:
        """Return a segment by its footer if that can be believed, else by its bytes."""
        file = self._disk.open(file_name(self._folder, base, SEGMENT))
        try:
            sealed = read_footer(self._disk, self._folder, base)
            if (
                sealed is not None
                # A footer is written after its segment was synced, so it can be believed without
                # reading the bytes; reads and the scrub verify those.
                and sealed.bytes <= file.size()
                and following in {None, sealed.next_offset}
            ):
                return sealed, Tail.END
            segment, tail, stamps = scan(
                file,
                base,
                index_bytes=self._config.index_bytes,
                until=following,
                remember_from=self._durable_until,
            )
        finally:
            file.close()
        self.stamps.update(stamps)
        self.scanned_bytes += segment.bytes
        if segment.next_offset == following:
            self._seal(segment)
        elif following is None and sealed is not None:
            tail = Tail.BROKEN  # the footer promised more bytes than there are
        return segment, tail

    def _seal(self, segment: Segment) -> None:
        """Give a whole segment the footer it has lost."""
        segment.is_rolled = segment.is_sealed = True
        try:
            write_footer(self._disk, self._folder, segment)
        except DiskFull:
            # It stays without one and is verified from end to end at the next opening, too.
            return

    def _remove_drafts(self) -> None:
        for name in self._disk.list(self._folder):
            if name.endswith(DRAFT):
                self._disk.remove(f"{self._folder}/{name}")


def _with_following(bases: Sequence[Offset]) -> Iterator[tuple[Offset, Offset | None]]:
    for at, base in enumerate(bases):
        yield base, bases[at + 1] if at + 1 < len(bases) else None
