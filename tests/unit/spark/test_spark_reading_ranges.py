"""Reading a range on an executor: exactly its records, and a loss where some are gone."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, cast

import pytest

from angarium.batch import encode, stamp
from angarium.client.reading.face import FetchedBatches
from angarium.client.records import received
from angarium.errors import NotFound, OffsetOutOfRange
from angarium.ids import Micros, Offset, Term
from angarium.spark.losses import DataLoss, LossPolicy
from angarium.spark.range_batches import range_batches
from angarium.spark.ranges import OffsetRange

if TYPE_CHECKING:
    from angarium.spark.link import Link

STRICT, LENIENT = LossPolicy(must_fail=True), LossPolicy(must_fail=False)
BATCH = 10


class LogBehindALink:
    """A partition in batches of ten, with a link's methods; a test changes it between fetches."""

    def __init__(self, records: int) -> None:
        self.start, self.end = 0, records
        self.gaps: set[int] = set()
        """Base offsets of batches that are gone without a trace."""
        self.id: int | None = 1
        self.lagging = 0
        """So many fetches are answered by a replica that has nothing, unless they must be fresh."""
        self.fetches = 0

    def topic_id(self, topic: str, *, from_nearest: bool) -> int:
        if self.id is None:
            raise NotFound(topic)
        return self.id

    def end_offset(self, topic: str, partition: int) -> int:
        return self.end

    def begin_fetch(
        self, topic: str, partition: int, offset: int, *, fresh: bool = False
    ) -> Future[FetchedBatches]:
        future: Future[FetchedBatches] = Future()
        try:
            future.set_result(self._fetched(offset, fresh=fresh))
        except (NotFound, OffsetOutOfRange) as error:
            future.set_exception(error)
        return future

    def _fetched(self, offset: int, *, fresh: bool) -> FetchedBatches:
        self.fetches += 1
        if self.id is None:
            raise NotFound("orders")
        if self.lagging and not fresh:
            self.lagging -= 1
            return FetchedBatches(after=offset)
        if not self.start <= offset <= self.end:
            raise OffsetOutOfRange(offset=offset, start=self.start, end=self.end)
        base = offset // BATCH * BATCH
        while base in self.gaps and base < self.end:
            base += BATCH
        if base >= self.end:
            return FetchedBatches(after=offset)
        data = encode([b"%d" % (base + at) for at in range(BATCH)])
        stamp(data, base_offset=Offset(base), term=Term(1), append_time=Micros(1))
        batch = received("orders", 0, data, from_offset=offset)
        return FetchedBatches([batch], after=base + BATCH)


def values(log: LogBehindALink, start: int, stop: int, policy: LossPolicy = STRICT) -> list[int]:
    link = cast("Link", log)
    wanted = OffsetRange("orders", 0, start, stop, 1)
    batches = range_batches(link, wanted, policy=policy)
    return [int(value or b"") for batch in batches for value in batch.values()]


@pytest.mark.parametrize(("start", "stop"), [(0, 40), (0, 10), (3, 7), (5, 25), (10, 20), (39, 40)])
def test_exactly_the_records_of_the_range_are_read(start: int, stop: int) -> None:
    log = LogBehindALink(40)
    assert values(log, start, stop) == list(range(start, stop))


def test_nothing_is_fetched_beyond_the_range() -> None:
    log = LogBehindALink(1000)
    values(log, 0, 20)
    assert log.fetches == 2


def test_gaps_are_passed_over_also_at_the_end() -> None:
    log = LogBehindALink(50)
    log.gaps = {10, 40}
    assert values(log, 0, 50) == [*range(10), *range(20, 40)]


def test_a_replica_that_lags_does_not_make_a_hole() -> None:
    log = LogBehindALink(30)
    log.lagging = 1
    assert values(log, 0, 30) == list(range(30))


def test_records_trimmed_while_they_are_read_are_a_loss() -> None:
    log = LogBehindALink(60)
    log.start = 25
    with pytest.raises(DataLoss, match="orders partition 0 begins at 25 by now, and 0 was to be"):
        values(log, 0, 40)
    assert values(log, 0, 40, LENIENT) == list(range(25, 40))


def test_a_task_never_reads_beyond_its_range_to_make_up_for_a_loss() -> None:
    log = LogBehindALink(100)
    log.start = 50
    assert values(log, 0, 40, LENIENT) == []


def test_a_range_that_is_not_there_is_a_loss() -> None:
    log = LogBehindALink(20)
    with pytest.raises(DataLoss, match="was to be read from 20 on, and the partition ends at 20"):
        values(log, 0, 40)
    assert values(log, 0, 40, LENIENT) == list(range(20))


@pytest.mark.parametrize("present", [None, 2])
def test_a_topic_deleted_or_made_anew_is_a_loss(present: int | None) -> None:
    log = LogBehindALink(20)
    log.id = present
    with pytest.raises(DataLoss, match="the topic orders was deleted"):
        values(log, 0, 10)
    assert values(log, 0, 10, LENIENT) == []
