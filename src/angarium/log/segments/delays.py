"""The delayed records of a partition, found by their time of delivery.

A growing segment has its own in memory, a sealed one in a file beside it (`delay_file`), of which
only an index and a block or two are in memory at a time. So the backlog may be as large as the disk
allows. Of each segment it is remembered between which times nothing is due: most questions touch
no file at all.
"""

from __future__ import annotations

from heapq import merge
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final

from angarium.batch import NEVER
from angarium.errors import CorruptData
from angarium.log.segments.delay_file import DamagedDelays, open_delays, write_delays
from angarium.log.segments.delay_runs import DelayRuns, is_delayed
from angarium.log.segments.names import DELAYS, file_name, offsets_named
from angarium.log.segments.walk import frames_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import Offset
    from angarium.log.disk import Disk
    from angarium.log.segments.delay_file import DelayFile
    from angarium.log.segments.files import OpenFiles
    from angarium.log.segments.segment import Segment
    from angarium.log.segments.segments import SegmentList

FILES_MAX: Final = 64
"""Files whose index is kept in memory. At the limit the one opened first is dropped, and will be
opened again."""

_LAST: Final = 1 << 63
"""Behind every offset."""


class Delays:
    """Answers which records of one partition are due when. On the event loop, all of it."""

    def __init__(self, disk: Disk, folder: str, segments: SegmentList, files: OpenFiles) -> None:
        self._disk = disk
        self._folder = folder
        self._segments = segments
        self._files = files
        self._opened: dict[Offset, DelayFile] = {}
        self._quiet: dict[Offset, tuple[int, int]] = {}
        """By segment: after the first time nothing is due before the second, and then something."""
        for base in offsets_named(disk, folder, DELAYS):
            if segments.named(base) is None:
                disk.remove(file_name(folder, base, DELAYS))
        for segment in segments:
            # Until it is sealed a segment has them in memory, where a restart has lost them.
            if segment.deliver_at_max and not segment.is_rolled:
                segment.delays = read_delays(disk, folder, segment)

    def due(
        self, after: tuple[int, int], until: int, *, floor: int, limit: int
    ) -> list[tuple[int, int]]:
        """Return delayed records as (time of delivery, offset), in this order, up to `limit`.

        Those that come after `after` in that order, are due at `until` or before, and have an
        offset of at least `floor`. Raises `CorruptData` while a segment that may hold some cannot
        be read.
        """
        while True:
            try:
                return self._due(after, until, floor, limit)
            except DamagedDelays as damaged:
                self._throw_away(damaged.base)

    def _due(
        self, after: tuple[int, int], until: int, floor: int, limit: int
    ) -> list[tuple[int, int]]:
        time, offset = after
        parts = []
        for segment in self._candidates(time, floor):
            is_between = offset < segment.next_offset - 1 and time > 0
            if is_between or self._next_time(segment, time) <= until:
                parts.append(self._after(segment, after, floor))
        found = takewhile(lambda one: one[0] <= until, merge(*parts))
        return list(islice(found, limit))

    def next_due(self, after: int, *, floor: int) -> int | None:
        """Return the earliest time of delivery later than `after`, of records from `floor` on."""
        while True:
            try:
                return self._next_due(after, floor)
            except DamagedDelays as damaged:
                self._throw_away(damaged.base)

    def _next_due(self, after: int, floor: int) -> int | None:
        earliest = int(NEVER)
        for segment in self._candidates(after, floor):
            first = self._next_time(segment, after)
            if first < earliest and segment.base_offset < floor:
                # Some of the segment does not count: the one remembered may be among them.
                found = next(self._after(segment, (after, _LAST), floor), None)
                first = int(NEVER) if found is None else found[0]
            earliest = min(earliest, first)
        return None if earliest == NEVER else earliest

    # --- making files -------------------------------------------------------------------------

    def lacking(self) -> list[Segment]:
        """Return the sealed segments that should have a file and have none."""
        return [
            segment
            for segment in self._segments
            if segment.is_sealed
            and segment.deliver_at_max
            and not self._disk.exists(file_name(self._folder, segment.base_offset, DELAYS))
        ]

    def make(self, segment: Segment) -> None:
        """Make the file of a sealed segment from its bytes; may run in a thread."""
        runs = read_delays(self._disk, self._folder, segment)
        write_delays(self._disk, self._folder, segment, runs)

    def forget(self, base_offset: Offset) -> None:
        """Drop what is known about a segment that is removed or replaced."""
        self._opened.pop(base_offset, None)
        self._quiet.pop(base_offset, None)
        self._files.forget(file_name(self._folder, base_offset, DELAYS))

    def _throw_away(self, base_offset: Offset) -> None:
        self.forget(base_offset)
        self._disk.remove(file_name(self._folder, base_offset, DELAYS))

    # --- looking --------------------------------------------------------------------------------

    def _candidates(self, time: int, floor: int) -> Iterator[Segment]:
        for segment in self._segments.holding(floor):  # type: ignore[arg-type]
            if segment.deliver_at_max >= max(time, 1) and segment.next_offset > floor:
                yield segment

    def _next_time(self, segment: Segment, after: int) -> int:
        """Return the earliest time later than `after` in a segment, `NEVER` if there is none."""
        if segment.deliver_at_max <= after:
            return int(NEVER)
        quiet = self._quiet.get(segment.base_offset)
        if quiet is not None and quiet[0] <= after < quiet[1]:
            return quiet[1]
        found = next(self._after(segment, (after, _LAST), 0), None)
        first = int(NEVER) if found is None else found[0]
        if segment.is_sealed:  # into another one an earlier time may still come
            self._quiet[segment.base_offset] = (after, first)
        return first

    def _after(
        self, segment: Segment, after: tuple[int, int], floor: int
    ) -> Iterator[tuple[int, int]]:
        if segment.delays is not None:
            return segment.delays.after(after, floor=floor)
        if segment.whole_until is not None:
            raise CorruptData(f"segment {segment.base_offset} is damaged; so are its delays")
        return self._file(segment).after(after, floor=floor)

    def _file(self, segment: Segment) -> DelayFile:
        base = segment.base_offset
        file = self._opened.get(base)
        if file is None:
            file = open_delays(self._disk, self._folder, segment, self._read)
            if file is None:
                self.make(segment)
                self._files.forget(file_name(self._folder, base, DELAYS))
                file = open_delays(self._disk, self._folder, segment, self._read)
                assert file is not None, "it has just been written"
            if len(self._opened) >= FILES_MAX:
                del self._opened[next(iter(self._opened))]
            self._opened[base] = file
        return file

    def _read(self, name: str, length: int, position: int) -> bytes:
        return self._files.get(name).pread(length, position)


def read_delays(disk: Disk, folder: str, segment: Segment) -> DelayRuns:
    """Return the delayed records of a segment, read from its bytes; raises `CorruptData`."""
    runs = DelayRuns(segment.base_offset)
    for frame, data in frames_of(disk, folder, segment):
        if not frame.is_gap and is_delayed(data):
            runs.add(data)
    return runs
