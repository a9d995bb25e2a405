"""Stamps, ids, and the check that everything came back once and in order."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from angarium.bench.load import Work, partition_of
from angarium.bench.stamps import (
    PROBE,
    STAMP_BYTES,
    Stamps,
    numbers,
    record_id,
    sequence_of,
    worker_of,
)
from angarium.bench.verify import Verdict, verdict
from angarium.errors import CorruptData

if TYPE_CHECKING:
    from collections.abc import Callable


@given(
    worker=st.integers(0, PROBE),
    sequence=st.integers(0, (1 << 40) - 1),
)
def test_an_id_holds_its_worker_and_its_number(worker: int, sequence: int) -> None:
    identity = record_id(worker, sequence)
    assert (worker_of(identity), sequence_of(identity)) == (worker, sequence)


@settings(max_examples=50)
@given(
    size=st.integers(STAMP_BYTES, 300),
    count=st.integers(0, 40),
    first=st.integers(0, 1 << 50),
    sent=st.integers(0, (1 << 63) - 1),
)
def test_stamps_come_back_from_records_of_any_size(
    size: int, count: int, first: int, sent: int
) -> None:
    stamps = Stamps(size)
    records = stamps.records(first, count, sent)
    assert all(len(record) == size for record in records)
    ids, times = stamps.columns(records)
    assert list(numbers(ids)) == list(range(first, first + count))
    assert list(numbers(times)) == [sent] * count


@pytest.mark.parametrize("strange", [[b"short"], [None], [b"x" * 100, b"y" * 99]])
def test_records_that_no_benchmark_made_are_refused(strange: list[bytes | None]) -> None:
    with pytest.raises(CorruptData):
        Stamps(100).columns(strange)


def worked(worker: int, calls: int, *failed: int) -> Work:
    return Work(worker, calls=calls, failed=dict.fromkeys(failed, "OUTCOME_UNKNOWN"))


def deliveries(works: list[Work], *, partitions: int, batch: int) -> list[array[int]]:
    """Return what comes back if all goes well, the workers taking turns."""
    columns = [array("Q", [record_id(PROBE, number)]) for number in range(partitions)]
    for call in range(max(work.calls for work in works)):
        for work in works:
            if call < work.calls and call not in work.failed:
                ids = range(call * batch, (call + 1) * batch)
                column = columns[partition_of(work.worker, call, partitions)]
                column.extend(record_id(work.worker, one) for one in ids)
    return columns


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("batch", [1, 4])
def test_what_came_back_once_and_in_order_is_clean(partitions: int, batch: int) -> None:
    works = [worked(0, 7), worked(1, 5), worked(2, 0)]
    found = verdict(deliveries(works, partitions=partitions, batch=batch), works, batch=batch)
    assert found == Verdict(acknowledged=12 * batch, delivered=12 * batch)
    assert found.is_clean


def test_a_call_that_failed_may_have_been_stored_or_not() -> None:
    works = [worked(0, 4, 2)]
    columns = deliveries(works, partitions=1, batch=2)
    assert verdict(columns, works, batch=2) == Verdict(acknowledged=6, delivered=6)
    columns[0][5:5] = array("Q", [record_id(0, 4), record_id(0, 5)])
    found = verdict(columns, works, batch=2)
    assert found == Verdict(acknowledged=6, delivered=8, unknown=2)
    assert found.is_clean


def lose(column: array[int]) -> None:
    del column[3]


def invent(column: array[int]) -> None:
    column.append(record_id(0, 1_000))


def invent_a_worker(column: array[int]) -> None:
    column.append(record_id(9, 0))


def repeat(column: array[int]) -> None:
    column.append(column[-1])


def swap(column: array[int]) -> None:
    column[2], column[4] = column[4], column[2]


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        (lose, "lost"),
        (invent, "invented"),
        (invent_a_worker, "invented"),
        (repeat, "repeated"),
        (swap, "reordered"),
    ],
)
def test_each_broken_promise_is_found(spoil: Callable[[array[int]], None], field: str) -> None:
    works = [worked(0, 10)]
    columns = deliveries(works, partitions=2, batch=3)
    spoil(columns[1])
    found = verdict(columns, works, batch=3)
    assert getattr(found, field) >= 1
    assert found.is_clean == (field == "lost")


def test_a_record_in_another_partition_than_its_own_is_invented_there_and_lost_here() -> None:
    works = [worked(0, 4)]
    columns = deliveries(works, partitions=2, batch=1)
    columns[0].append(columns[1].pop())
    found = verdict(columns, works, batch=1)
    assert (found.lost, found.invented) == (1, 1)
