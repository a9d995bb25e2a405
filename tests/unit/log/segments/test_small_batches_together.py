"""Many small batches in one append are the same log as one by one, only sooner."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.stamped_batches import stamped

from angarium.batch import Batch
from angarium.errors import InvalidArgument
from angarium.ids import Offset
from angarium.log.memory_disk import MemoryDisk
from angarium.log.segments import PartitionLog, SegmentConfig

SMALL = SegmentConfig(segment_bytes=8_192, index_bytes=1_024)


def batches(counts: list[int], *, start: int = 0) -> list[bytes]:
    found, offset = [], start
    for count in counts:
        found.append(stamped(offset, count))
        offset += count
    return found


def opened(appends: list[list[bytes]], config: SegmentConfig = SMALL) -> PartitionLog:
    log = PartitionLog.open(MemoryDisk(), "p", config)
    for some in appends:
        log.append(some)
    return log


def described(log: PartitionLog) -> list[tuple[object, ...]]:
    names = ("base_offset", "next_offset", "bytes", "crc", "stamps", "batches", "records")
    more = ("first_time", "last_time", "expires_at_max", "deliver_at_max")
    return [tuple(getattr(one, name) for name in (*names, *more)) for one in log.segments]


def everything(log: PartitionLog, offset: int) -> list[bytes]:
    found: list[bytes] = []
    while offset < log.end_offset:
        some = log.read(Offset(offset), 700)
        found += map(bytes, some)
        offset = Batch.trusted(some[-1]).next_offset
    return found


@given(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=12), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_together_or_one_by_one_the_log_is_the_same(shapes: list[list[int]]) -> None:
    counts = [count for shape in shapes for count in shape]
    whole = batches(counts)
    appends, rest = [], list(whole)
    for shape in shapes:
        appends.append(rest[: len(shape)])
        rest = rest[len(shape) :]
    together, single = opened(appends), opened([[one] for one in whole])
    assert described(together) == described(single)
    for log in (together, single):
        assert everything(log, 0) == whole
        middle = sum(counts) // 2
        assert everything(log, middle)[-1] == whole[-1]
        first = Batch.trusted(log.read(Offset(middle), 1)[0])
        assert first.base_offset <= middle < first.next_offset
    for time in (Batch.trusted(one).append_time for one in whole):
        assert together.offset_at(time) == single.offset_at(time)
    for offset in range(together.end_offset):
        assert together.time_at(Offset(offset)) == single.time_at(Offset(offset))
    together.sync()
    assert everything(together, 0) == whole


def test_what_came_together_and_comes_again_is_recognised() -> None:
    whole = batches([1] * 10)
    log = opened([whole[:1], whole[1:]])
    log.append(whole)
    assert log.end_offset == 10
    assert everything(log, 0) == whole


@pytest.mark.parametrize("at", [0, 3, 6])
def test_one_that_does_not_fit_in_is_refused_as_before(at: int) -> None:
    log = opened([batches([1, 1, 1])])
    some = batches([1] * 7, start=3)
    some[at] = stamped(99, 1)
    with pytest.raises(InvalidArgument, match="leaves a gap"):
        log.append(some)
    assert log.end_offset == 3 + at


def test_a_batch_that_is_cut_short_is_refused_among_others() -> None:
    log = opened([batches([1])])
    some = batches([1] * 3, start=1)
    for cut in (some[1][:-8], some[1][:50]):
        with pytest.raises(InvalidArgument, match="whole"):
            log.append([some[0], cut, some[2]])
        log = opened([batches([1])])


def test_an_old_segment_is_not_joined() -> None:
    config = SegmentConfig(segment_age_micros=1)
    log = opened([batches([1])], config)
    log.append(batches([1] * 3, start=1))
    assert [segment.batches for segment in log.segments] == [1, 1, 1, 1]
