"""The records of a partition as delivery wants to know them, and as consumers get them.

Everything is told from the headers of batches; columns are looked at only in batches whose records
differ, and as a whole. What was read to decide is kept for a moment, for it is sent next.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from angarium.batch.deadlines import expired, joined, not_due
from angarium.batch.layout import KEY_HASHES, OFFSET_DELTAS, fixed_columns
from angarium.delivery.source import Stretch
from angarium.ids import Micros, Offset
from angarium.lending.lending_limits import PARCEL_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from angarium.log.segments import PartitionLog

WINDOWS_MAX: Final = 32
"""Stretches of batches kept for those who read the same records next; then the oldest goes."""

_LOOK: Final = Struct("<8xq8xq12xIII48xqqqq").unpack_from
"""Base offset, append time, flags, count, span, and the bounds of expiry and of delivery times."""


class HoldsLog(Protocol):
    """A partition, as far as its records are concerned."""

    @property
    def log(self) -> PartitionLog:
        """Its committed batches; another log after a snapshot was installed."""


class Parcel(NamedTuple):
    """Batches to send, and which of their records are meant."""

    ranges: tuple[int, ...]
    batches: tuple[memoryview, ...]
    bytes: int


class _Batch(NamedTuple):
    base: int
    end: int
    append_time: int
    flags: int
    records: int
    expires_min: int
    expires_max: int
    due_max: int
    data: memoryview


class _Window(NamedTuple):
    """Batches that follow each other, gaps between them apart."""

    start: int
    end: int
    """Everything in [start, end) is in one of the batches, or in a gap."""
    batches: list[_Batch]
    bases: list[int]


class LogRecords:
    """One partition's committed records: implements `delivery.source.RecordSource`."""

    def __init__(self, partition: HoldsLog, lifetime: Callable[[], int | None]) -> None:
        """Read `partition`; `lifetime` tells after how many µs the topic lets records expire."""
        self._partition = partition
        self._lifetime = lifetime
        self._windows: OrderedDict[int, _Window] = OrderedDict()
        self.record_bytes = 0
        """How large a record is, by what was read last; 0 if nothing was."""

    @property
    def start_offset(self) -> int:
        """The lowest offset that has not been trimmed away."""
        return self._partition.log.start_offset

    @property
    def end_offset(self) -> int:
        """The offset after the last record that may be read."""
        return self._partition.log.end_offset

    # --- deciding -----------------------------------------------------------------------------

    @property
    def lendable_end(self) -> int:
        """The same: nothing is in the way."""
        return self.end_offset

    def stretch(self, start: int, *, limit: int, now: Micros, due: int) -> Stretch:
        """Tell about some offsets from `start` on; see `RecordSource`."""
        window = self._window(start)
        end = min(window.end, start + limit)
        lifetime = self._lifetime()
        absent: list[tuple[int, ...]] = []
        delayed: list[tuple[int, ...]] = []
        may_expire = False
        at = start
        for batch in self._from(window, start):
            if batch.base >= end:
                break
            if batch.base > at:
                absent.append((at, batch.base))
            at = batch.end
            if lifetime is not None or batch.expires_min <= now:
                gone = expired(batch.data, now=now, lifetime=lifetime)
                if gone:
                    absent.append(gone)
            may_expire = may_expire or lifetime is not None or batch.expires_min != _NEVER
            if batch.flags & OFFSET_DELTAS:
                absent.append(_holes(batch))
            if batch.due_max > due:
                delayed.append(not_due(batch.data, now=Micros(due)))
        if at < end:
            absent.append((at, end))
        return Stretch(
            end,
            _within(_merged(absent), start, end) if absent else (),
            _within(joined(delayed), start, end) if delayed else (),
            may_expire,
        )

    def key_hashes(self, start: int, end: int) -> Sequence[int]:
        """Return the key hash of each offset in `[start, end)`; 0: no key, or no record."""
        hashes = [0] * (end - start)
        at = start
        while at < end:
            window = self._window(at)
            for batch in self._from(window, at):
                if batch.base >= end:
                    break
                if batch.flags & KEY_HASHES:
                    _fill(hashes, batch, start, end)
            at = window.end
        return hashes

    def due(
        self, after: tuple[int, int], until: int, *, floor: int, limit: int
    ) -> Sequence[tuple[int, int]]:
        """Return delayed records as (time of delivery, offset), in this order, up to `limit`."""
        log = self._partition.log
        found = log.delays.due(after, until, floor=floor, limit=limit)
        # What is not to be seen yet is met, and waited for, when it is.
        return [one for one in found if one[1] < log.end_offset]

    def next_due(self, after: int, *, floor: int) -> int | None:
        """Return the earliest time of delivery later than `after`, of records from `floor` on."""
        return self._partition.log.delays.next_due(after, floor=floor)

    def measure(self, offset: int) -> None:
        """Find out how large the records from `offset` on are, if there are any."""
        at = max(offset, self.start_offset)
        if at < self.end_offset:
            self._window(at)

    def forget(self) -> None:
        """Let go of what was read: nobody has wanted it for a while."""
        self._windows.clear()

    # --- sending ------------------------------------------------------------------------------

    def parcels(self, ranges: Sequence[int]) -> Iterator[Parcel]:
        """Yield the batches that hold the records in `ranges`, a reasonable lot at a time.

        What has been trimmed away meanwhile is left out.
        """
        batches: list[memoryview] = []
        parts: list[int] = []
        size = 0
        for start, end in zip(ranges[::2], ranges[1::2], strict=True):
            at, end = max(start, self.start_offset), min(end, self.end_offset)  # noqa: PLW2901
            while at < end:
                window = self._window(at)
                for batch in self._from(window, at):
                    if batch.base >= end:
                        break
                    at = max(at, batch.base)
                    if not batches or batches[-1] is not batch.data:
                        if batches and size + len(batch.data) > PARCEL_BYTES:
                            yield Parcel(tuple(parts), tuple(batches), size)
                            batches, parts, size = [], [], 0
                        batches.append(batch.data)
                        size += len(batch.data)
                    past = min(end, batch.end)
                    if parts and parts[-1] == at:
                        parts[-1] = past
                    else:
                        parts += (at, past)
                    at = past
                at = max(at, min(window.end, end))
        if batches:
            yield Parcel(tuple(parts), tuple(batches), size)

    # --- reading ------------------------------------------------------------------------------

    def _window(self, offset: int) -> _Window:
        """Return batches read from the log; the first one ends above `offset`."""
        windows = self._windows
        for start in reversed(windows):
            window = windows[start]
            if window.start <= offset < window.end:
                windows.move_to_end(start)
                return window
        log = self._partition.log
        batches = [
            _Batch(base, base + span, time, flags, count, first, last, due, data)
            for data in log.read(Offset(offset), PARCEL_BYTES)
            for base, time, flags, count, span, first, last, _, due in (_LOOK(data),)
        ]
        records = sum(batch.records for batch in batches)
        if records:
            self.record_bytes = sum(len(batch.data) for batch in batches) // records
        end = batches[-1].end if batches else int(log.end_offset)
        start = min(offset, batches[0].base) if batches else offset
        window = _Window(start, end, batches, [batch.base for batch in batches])
        windows[start] = window
        windows.move_to_end(start)
        if len(windows) > WINDOWS_MAX:
            windows.popitem(last=False)
        return window

    @staticmethod
    def _from(window: _Window, offset: int) -> Iterator[_Batch]:
        """Yield the batches of a window that end above `offset`."""
        first = max(bisect_right(window.bases, offset) - 1, 0)
        for at in range(first, len(window.batches)):
            batch = window.batches[at]
            if batch.end > offset:
                yield batch


_NEVER: Final = (1 << 63) - 1


def _holes(batch: _Batch) -> tuple[int, ...]:
    """Return the offsets that compaction has emptied."""
    column = fixed_columns(batch.flags, batch.records).offset_deltas
    deltas = batch.data[column : column + 4 * batch.records].cast("i")
    bounds: list[int] = []
    at = batch.base
    for delta in deltas:
        if batch.base + delta > at:
            bounds += (at, batch.base + delta)
        at = batch.base + delta + 1
    if at < batch.end:
        bounds += (at, batch.end)
    return tuple(bounds)


def _fill(hashes: list[int], batch: _Batch, start: int, end: int) -> None:
    columns = fixed_columns(batch.flags, batch.records)
    column = batch.data[columns.key_hashes : columns.key_hashes + 4 * batch.records].cast("I")
    if not batch.flags & OFFSET_DELTAS:
        first, past = max(start, batch.base), min(end, batch.end)
        hashes[first - start : past - start] = column[first - batch.base : past - batch.base]
        return
    deltas = batch.data[columns.offset_deltas : columns.offset_deltas + 4 * batch.records].cast("i")
    for delta, one in zip(deltas, column, strict=True):
        if start <= batch.base + delta < end:
            hashes[batch.base + delta - start] = one


def _merged(rows: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return rows of ranges, which may overlap, as one ascending row."""
    if len(rows) == 1:
        return rows[0]
    pairs = sorted(pair for row in rows for pair in zip(row[::2], row[1::2], strict=True))
    bounds: list[int] = []
    for first, past in pairs:
        if bounds and first <= bounds[-1]:
            bounds[-1] = max(bounds[-1], past)
        else:
            bounds += (first, past)
    return tuple(bounds)


def _within(row: tuple[int, ...], start: int, end: int) -> tuple[int, ...]:
    """Return the parts of ranges that lie in `[start, end)`."""
    if not row or (row[0] >= start and row[-1] <= end):
        return row
    bounds: list[int] = []
    for first, past in zip(row[::2], row[1::2], strict=True):
        if past > start and first < end:
            bounds += (max(first, start), min(past, end))
    return tuple(bounds)
