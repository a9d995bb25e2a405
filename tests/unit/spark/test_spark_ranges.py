"""Ranges become tasks: long ones are parted, short ones share, nothing is lost or doubled."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from angarium.spark.allotment import allotted, allotted_bytes
from angarium.spark.ranges import RECORDS_PER_TASK_MIN, OffsetRange, tasks

RANGES = st.lists(
    st.builds(
        lambda partition, start, size: OffsetRange("t", partition, start, start + size, 1),
        st.integers(0, 50),
        st.integers(0, 1000),
        st.integers(0, 50_000),
    ),
    max_size=8,
    unique_by=lambda one: one.partition,
)


@given(RANGES, st.none() | st.integers(1, 40), st.integers(100, 60_000))
def test_tasks_read_every_record_once(
    ranges: list[OffsetRange], min_partitions: int | None, records_max: int
) -> None:
    found = tasks(ranges, min_partitions=min_partitions, records_max=records_max)
    pieces = sorted(piece for task in found for piece in task)
    joined: list[OffsetRange] = []
    for piece in pieces:
        assert 0 < piece.records <= records_max
        last = joined[-1] if joined else None
        if last is not None and (last.partition, last.stop) == (piece.partition, piece.start):
            joined[-1] = OffsetRange("t", piece.partition, last.start, piece.stop, 1)
        else:
            joined.append(piece)
    assert joined == sorted(one for one in ranges if one.records)
    if min_partitions is not None:
        assert len(found) >= min(min_partitions, sum(one.records for one in ranges))


def test_small_ranges_share_a_task_and_large_ones_do_not() -> None:
    small = [OffsetRange("t", number, 0, 100) for number in range(8)]
    large = [OffsetRange("t", number, 0, RECORDS_PER_TASK_MIN) for number in range(8, 10)]
    found = tasks([*small, *large], min_partitions=None, records_max=1_000_000)
    assert [len(task) for task in found] == [8, 1, 1]


def test_asking_for_tasks_gives_each_range_its_own() -> None:
    small = [OffsetRange("t", number, 0, 100) for number in range(2)]
    assert len(tasks(small, min_partitions=2, records_max=1_000_000)) == 2
    assert len(tasks(small, min_partitions=4, records_max=1_000_000)) == 4


@given(
    st.dictionaries(st.tuples(st.just("t"), st.integers(0, 20)), st.integers(0, 10**9)),
    st.integers(1, 10**9),
)
def test_a_limit_is_used_up_and_never_exceeded(
    waiting: dict[tuple[str, int], int], records_max: int
) -> None:
    shares = allotted(waiting, records_max)
    assert sum(shares.values()) == min(sum(waiting.values()), records_max)
    assert all(0 <= shares[place] <= waiting[place] for place in waiting)


def test_a_limit_in_bytes_lets_one_record_through_however_large() -> None:
    assert allotted_bytes({("t", 0): 5}, {("t", 0): 1e9}, 1) == {("t", 0): 1}
    assert allotted_bytes({("t", 0): 5}, {("t", 0): 10.0}, 50) == {("t", 0): 5}
