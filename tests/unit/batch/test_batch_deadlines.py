"""Which records of a batch have expired or are not due: the vectorised answer is the plain one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angarium.batch import AT_ONCE, NEVER, TIME_MAX, Batch, encode, stamp
from angarium.batch.deadlines import expired, expired_among, is_among, joined, not_due, outside
from angarium.ids import Micros, Offset, Term

if TYPE_CHECKING:
    from collections.abc import Sequence

BASE = 1_000
APPENDED = Micros(50)

times = st.one_of(st.integers(1, 40), st.integers(1, TIME_MAX))
expiries = st.lists(st.one_of(times, st.just(int(NEVER))), min_size=1, max_size=60)
deliveries = st.lists(st.one_of(times, st.just(int(AT_ONCE))), min_size=1, max_size=60)
clocks = st.one_of(st.integers(0, 45), st.integers(0, TIME_MAX))


def batch_of(
    count: int,
    *,
    expires_at: Sequence[int] | None = None,
    deliver_at: Sequence[int] | None = None,
    kept: Sequence[int] | None = None,
) -> bytearray:
    batch = encode([b"value"] * count, expires_at=expires_at, deliver_at=deliver_at)
    stamp(batch, base_offset=Offset(BASE), term=Term(1), append_time=APPENDED)
    return batch if kept is None else Batch.trusted(batch).retain(kept)


def covered(ranges: tuple[int, ...]) -> set[int]:
    assert list(ranges) == sorted(set(ranges)), "ranges ascend, and none is empty or touches"
    return {
        offset for at in range(0, len(ranges), 2) for offset in range(ranges[at], ranges[at + 1])
    }


@given(expiries, clocks)
def test_expired_is_what_a_look_at_each_record_would_find(column: list[int], now: int) -> None:
    found = expired(batch_of(len(column), expires_at=column), now=Micros(now))
    assert covered(found) == {BASE + at for at, time in enumerate(column) if time <= now}


@given(deliveries, clocks)
def test_not_due_is_what_a_look_at_each_record_would_find(column: list[int], now: int) -> None:
    found = not_due(batch_of(len(column), deliver_at=column), now=Micros(now))
    assert covered(found) == {BASE + at for at, time in enumerate(column) if time > now}


@given(expiries, clocks, st.data())
def test_records_of_a_compacted_batch_keep_their_offsets(
    column: list[int], now: int, data: st.DataObject
) -> None:
    kept = sorted(data.draw(st.sets(st.integers(0, len(column) - 1))))
    batch = batch_of(len(column), expires_at=column, kept=kept)
    found = covered(expired(batch, now=Micros(now)))
    alive = {BASE + at for at in kept if column[at] > now}
    dead = {BASE + at for at in kept if column[at] <= now}
    assert dead <= found
    assert not alive & found


def test_a_lifetime_ends_a_whole_batch_at_once() -> None:
    batch = batch_of(3)
    assert expired(batch, now=Micros(APPENDED + 9), lifetime=10) == ()
    assert expired(batch, now=Micros(APPENDED + 10), lifetime=10) == (BASE, BASE + 3)


def test_a_record_may_expire_before_its_topics_lifetime_is_over() -> None:
    batch = batch_of(3, expires_at=[60, int(NEVER), 60])
    found = expired(batch, now=Micros(60), lifetime=1_000)
    assert found == (BASE, BASE + 1, BASE + 2, BASE + 3)


def test_batches_without_expiry_say_nothing() -> None:
    assert expired_among([batch_of(2), batch_of(3)], now=Micros(TIME_MAX)) == ()


def test_ranges_of_neighbouring_batches_become_one() -> None:
    first = batch_of(2, expires_at=[5, 5])
    second = batch_of(3, expires_at=[5, 5, int(NEVER)])
    stamp(second, base_offset=Offset(BASE + 2), term=Term(1), append_time=Micros(51))
    assert expired_among([first, second], now=Micros(5)) == (BASE, BASE + 4)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4))), st.integers(0, 40))
def test_what_lies_outside_and_what_lies_inside_make_the_whole(
    steps: list[tuple[int, int]], start: int
) -> None:
    rows, at = [], 0
    for gap, length in steps:
        rows.append((at + gap, at + gap + length))
        at += gap + length
    ranges = joined(rows)
    inside = covered(ranges)
    stop = start + 20
    rest = [
        offset
        for first, past in outside(ranges, start=start, stop=stop)
        for offset in range(first, past)
    ]
    assert rest == [offset for offset in range(start, stop) if offset not in inside]
    assert all(is_among(ranges, Offset(one)) == (one in inside) for one in range(start, stop))


@pytest.mark.parametrize("count", [1, 4_096, 4_097, 10_000])
def test_long_columns_are_judged_alike(count: int) -> None:
    column = [10 if at % 3 else 20 for at in range(count)]
    column[0] = 30
    found = expired(batch_of(count, expires_at=column), now=Micros(10))
    assert covered(found) == {BASE + at for at, time in enumerate(column) if time <= 10}
