"""What delivery is told about a partition's records, and what is sent of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from angarium.batch import Batch, stamp
from angarium.batch.encoding import encode
from angarium.batch.hashing import key_hash
from angarium.batch.layout import NEVER
from angarium.ids import Micros, Offset, Term
from angarium.lending.lending_limits import PARCEL_BYTES
from angarium.lending.log_records import LogRecords
from angarium.log.memory_disk import MemoryDisk
from angarium.log.segments import PartitionLog, SegmentConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = Micros(1_000_000)


@dataclass
class Holder:
    log: PartitionLog


class Written:
    """A partition's log, filled by the test."""

    def __init__(self, lifetime: int | None = None) -> None:
        self.log = PartitionLog.open(MemoryDisk(), "p", SegmentConfig(segment_bytes=1 << 20))
        self.records = LogRecords(Holder(self.log), lambda: lifetime)
        self._time = 0

    def append(
        self,
        count: int,
        *,
        size: int = 10,
        keys: Sequence[bytes | None] | None = None,
        expires_at: Sequence[int] | int | None = None,
        deliver_at: Sequence[int] | int | None = None,
        keep: Sequence[int] | None = None,
    ) -> None:
        batch = encode(
            [b"x" * size] * count, keys=keys, expires_at=expires_at, deliver_at=deliver_at
        )
        self._time += 1
        stamp(batch, base_offset=self.log.end_offset, term=Term(1), append_time=Micros(self._time))
        self.log.append([batch if keep is None else Batch.trusted(batch).retain(keep)])


def test_plain_records_are_told_of_without_further_ado() -> None:
    written = Written()
    for _ in range(5):
        written.append(10)
    assert written.records.stretch(3, limit=1_000, now=NOW, due=NOW) == (50, (), (), False)
    assert written.records.stretch(3, limit=4, now=NOW, due=NOW).end == 7


def test_gaps_and_what_was_compacted_away_are_absent() -> None:
    written = Written()
    written.append(4)
    written.log.skip_to(Offset(10))
    written.append(5, keep=[1, 2])
    written.log.skip_to(Offset(20))
    stretch = written.records.stretch(2, limit=100, now=NOW, due=NOW)
    end, absent = stretch.end, stretch.absent
    while end < 20:
        more = written.records.stretch(end, limit=100, now=NOW, due=NOW)
        absent += more.absent
        end = more.end
    gone = {one for s, e in zip(absent[::2], absent[1::2], strict=True) for one in range(s, e)}
    assert gone == {4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16, 17, 18, 19}


def test_expired_and_delayed_records_are_told_apart() -> None:
    written = Written()
    written.append(4, expires_at=[NEVER, NOW, NOW + 1, NOW - 5])
    written.append(3, deliver_at=[0, NOW + 9, NOW])
    stretch = written.records.stretch(0, limit=100, now=NOW, due=NOW)
    assert stretch.absent == (1, 2, 3, 4)
    assert stretch.delayed == (5, 6)
    assert stretch.may_expire
    assert written.records.stretch(0, limit=100, now=NOW, due=NOW + 9).delayed == ()
    assert list(written.records.due((0, 0), NOW + 9, floor=0, limit=10)) == [(NOW, 6), (NOW + 9, 5)]
    assert written.records.next_due(NOW, floor=0) == NOW + 9


def test_a_topic_may_let_everything_expire() -> None:
    written = Written(lifetime=10)
    written.append(3)
    stretch = written.records.stretch(0, limit=100, now=Micros(11), due=NOW)
    assert (stretch.absent, stretch.may_expire) == ((0, 3), True)
    assert written.records.stretch(0, limit=100, now=Micros(10), due=NOW).absent == ()


def test_keys_are_told_by_their_hashes() -> None:
    written = Written()
    written.append(3, keys=[b"a", None, b"b"])
    written.append(2)
    written.append(4, keys=[b"c", b"d", b"e", b"f"], keep=[1, 3])
    a, b, d, f = (key_hash(one) for one in (b"a", b"b", b"d", b"f"))
    assert list(written.records.key_hashes(0, 9)) == [a, 0, b, 0, 0, 0, d, 0, f]
    assert list(written.records.key_hashes(2, 7)) == [b, 0, 0, 0, d]


def test_a_parcel_has_the_batches_that_are_needed_and_no_more_than_a_lot() -> None:
    written = Written()
    for _ in range(8):
        written.append(10, size=PARCEL_BYTES // 20)
    parcels = list(written.records.parcels((5, 12, 31, 33, 70, 99)))
    assert len(parcels) > 1
    sent = [
        offset
        for parcel in parcels
        for start, end in zip(parcel.ranges[::2], parcel.ranges[1::2], strict=True)
        for offset in range(start, end)
    ]
    assert sent == [*range(5, 12), *range(31, 33), *range(70, 80)]
    for parcel in parcels:
        assert parcel.bytes == sum(map(len, parcel.batches))
        assert parcel.bytes <= PARCEL_BYTES or len(parcel.batches) == 1
        held = {o for one in parcel.batches for o in range(*_span(one))}
        pairs = zip(parcel.ranges[::2], parcel.ranges[1::2], strict=True)
        assert all(offset in held for s, e in pairs for offset in range(s, e))


def _span(batch: memoryview) -> tuple[int, int]:
    parsed = Batch.trusted(batch)
    return parsed.base_offset, parsed.next_offset


def test_what_was_trimmed_away_is_not_sent() -> None:
    written = Written()
    for _ in range(4):
        written.append(10)
    written.log.trim(Offset(25))
    (parcel,) = written.records.parcels((0, 30))
    assert parcel.ranges == (25, 30)
    assert list(written.records.parcels((0, 20))) == []


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=12),
    st.lists(st.integers(0, 60), unique=True, max_size=10).map(sorted),
)
def test_parcels_hold_exactly_what_was_asked_for(sizes: list[int], bounds: list[int]) -> None:
    written = Written()
    for size in sizes:
        written.append(size)
    ranges = tuple(bounds[: len(bounds) & -2])
    wanted = {
        offset
        for start, end in zip(ranges[::2], ranges[1::2], strict=True)
        for offset in range(start, min(end, written.log.end_offset))
    }
    end = int(written.log.end_offset)
    inside = tuple(min(bound, end) for bound in ranges)
    pairs = [(s, e) for s, e in zip(inside[::2], inside[1::2], strict=True) if s < e]
    flat = tuple(bound for pair in pairs for bound in pair)
    sent = {
        offset
        for parcel in written.records.parcels(flat)
        for s, e in zip(parcel.ranges[::2], parcel.ranges[1::2], strict=True)
        for offset in range(s, e)
    }
    assert sent == wanted
