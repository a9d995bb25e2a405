"""Which records of a batch have expired by a given time, and which are not due yet.

Answers are ranges of offsets, laid out flat: first, past the last, first, past the last, ascending,
none of them empty or touching the next. A range may run over offsets that compaction has emptied.

Nearly every batch is answered from its header, whose bounds say "none" or "all". Only one whose
records differ has its column looked at, and that as a whole: one subtraction compares all of them
(`angarium.batch.lanes` says how), and the runs of verdicts are found by searching bytes. So the
cost in Python is one step per run of alike records, never one per record.
"""

from __future__ import annotations

from bisect import bisect_right
from struct import Struct
from typing import TYPE_CHECKING, Final

from angarium.batch.lanes import top_bits
from angarium.batch.layout import HEADER, fixed_columns, unpacked_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from angarium.ids import Buffer, Micros, Offset

Ranges = tuple[int, ...]
"""First offset, past the last offset, and so on, ascending."""

_TIMES: Final = Struct("<qqqq")
_TIMES_START: Final = HEADER.size - _TIMES.size
"""The header ends with the bounds: earliest and latest expiry, earliest and latest delivery."""

_earliest_expiry: Final = Struct("<q").unpack_from
_append_time: Final = Struct("<24xq").unpack_from
_span: Final = Struct("<8xq36xI").unpack_from
"""Base offset, and how many offsets the batch spans."""

_YES: Final = b"\x80"
_NO: Final = b"\x00"


def expired(buffer: Buffer, *, now: Micros, lifetime: int | None = None) -> Ranges:
    """Return the offsets of a stamped batch whose records have expired at `now`.

    A record expires at its own `expires_at`; with a `lifetime`, in µs and counted from the append
    time, at the latest when that is over.
    """
    earliest, latest, _, _ = _TIMES.unpack_from(buffer, _TIMES_START)
    if lifetime is not None and _append_time(buffer)[0] + lifetime <= now:
        return _whole(buffer)
    if earliest > now:
        return ()
    if latest <= now:
        return _whole(buffer)
    header = unpacked_header(buffer)
    column = fixed_columns(header.flags, header.count).expires_at
    return _ranges(buffer, _at_most(buffer, column, header.count, now))


def not_due(buffer: Buffer, *, now: Micros) -> Ranges:
    """Return the offsets of a stamped batch whose records may not be delivered at `now` yet."""
    _, _, earliest, latest = _TIMES.unpack_from(buffer, _TIMES_START)
    if latest <= now:
        return ()
    if earliest > now:
        return _whole(buffer)
    header = unpacked_header(buffer)
    column = fixed_columns(header.flags, header.count).deliver_at
    marks = _at_most(buffer, column, header.count, now)
    return _ranges(buffer, marks.translate(_OPPOSITE))


def expired_among(batches: Iterable[Buffer], *, now: Micros, lifetime: int | None = None) -> Ranges:
    """Return what has expired in batches that follow each other, in one row of ranges."""
    if lifetime is None:
        # What readers pay for everybody's batches: one look into each header.
        batches = [one for one in batches if _earliest_expiry(one, _TIMES_START)[0] <= now]
        if not batches:
            return ()
    return joined(expired(one, now=now, lifetime=lifetime) for one in batches)


def joined(rows: Iterable[Ranges]) -> Ranges:
    """Return rows of ranges, each behind the one before, as one; those that touch merge."""
    bounds: list[int] = []
    for row in rows:
        if row and bounds and row[0] == bounds[-1]:
            bounds.pop()
            bounds += row[1:]
        else:
            bounds += row
    return tuple(bounds)


def ranges_of(offsets: Iterable[int]) -> Ranges:
    """Return ascending offsets as ranges: first, past the last, and so on."""
    flat: list[int] = []
    for offset in offsets:
        if flat and flat[-1] == offset:
            flat[-1] += 1
        else:
            flat += (offset, offset + 1)
    return tuple(flat)


def is_among(ranges: Ranges, offset: Offset) -> bool:
    """Tell whether `offset` lies in one of the ranges."""
    return bisect_right(ranges, offset) % 2 == 1


def outside(ranges: Ranges, *, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of `[start, stop)` that lie in none of the ranges, in order."""
    for at in range(bisect_right(ranges, start) & -2, len(ranges), 2):
        first, past = ranges[at], ranges[at + 1]
        if first >= stop:
            break
        if first > start:
            yield start, first
        start = past
    if start < stop:
        yield start, stop


_OPPOSITE: Final = bytes(0 if byte & 0x80 else 0x80 for byte in range(256))


def _whole(buffer: Buffer) -> Ranges:
    base, span = _span(buffer)
    return (base, base + span)


def _at_most(buffer: Buffer, column: int, count: int, now: Micros) -> bytes:
    """Return one byte per record: 0x80 where its time is `now` or earlier, else 0."""
    assert column, "records whose times differ have a column of them"
    tops = top_bits(64, count)
    lanes = int.from_bytes(memoryview(buffer)[column : column + 8 * count], "little")
    # Every lane of `now` lends itself a top bit, which is left where the record's time fits in.
    verdicts = ((tops >> 63) * now | tops) - lanes & tops
    return verdicts.to_bytes(8 * count, "little")[7::8]


def _ranges(buffer: Buffer, marks: bytes) -> Ranges:
    """Return the offsets of the records that are marked."""
    header = unpacked_header(buffer)
    base = header.base_offset
    deltas: Sequence[int] = range(header.count)
    start = fixed_columns(header.flags, header.count).offset_deltas
    if start:
        deltas = memoryview(buffer)[start : start + 4 * header.count].cast("i")
    bounds: list[int] = []
    first = marks.find(_YES)
    while first >= 0:
        past = marks.find(_NO, first)
        past = len(marks) if past < 0 else past
        bounds += (base + deltas[first], base + deltas[past - 1] + 1)
        first = marks.find(_YES, past)
    return tuple(bounds)
