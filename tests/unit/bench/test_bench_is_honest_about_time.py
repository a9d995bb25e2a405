"""Percentiles, the window, and load without coordinated omission."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from angarium.bench.inbox import Inbox
from angarium.bench.latency import latency, percentile
from angarium.bench.load import Window, Worker
from angarium.bench.plan import Plan, Protocol, Scenario
from angarium.bench.stamps import Stamps
from angarium.errors import AngariumError, InvalidArgument, NotLeader
from angarium.ids import TopicPartition
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Sequence

MS = 1_000_000


def test_percentiles_are_measured_values() -> None:
    ascending = list(range(1, 1001))
    assert percentile(ascending, 0.5) == 500
    assert percentile(ascending, 0.99) == 990
    assert percentile(ascending, 0.999) == 999
    assert percentile([7], 0.999) == 7


def test_latency_is_in_milliseconds_and_none_of_nothing() -> None:
    found = latency([3 * MS, 1 * MS, 2 * MS])
    assert found is not None
    assert (found.count, found.p50_ms, found.max_ms) == (3, 2.0, 3.0)
    assert latency([]) is None


class Clockwork:
    """A publisher whose second call stalls; time is what it says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, stall: int, cost: int) -> None:
        self.now = 0
        self.calls = 0
        self._stall, self._cost = stall, cost
        self.fails_with: AngariumError | None = None
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.now)
        monkeypatch.setattr(asyncio, "sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)

    async def publish(self, partition: TopicPartition, values: Sequence[bytes]) -> None:
        self.calls += 1
        self.now += self._stall if self.calls == 2 else self._cost
        if self.fails_with is not None:
            raise self.fails_with

    async def close(self) -> None: ...


def worker(publisher: Clockwork, **options: object) -> Worker:
    plan = Plan(workers=1, warmup_s=0, duration_s=1, **options)  # type: ignore[arg-type]
    return Worker(0, publisher, plan=plan, partitions=[TopicPartition("t", 0)], stamps=Stamps(100))


def test_a_stall_counts_for_every_record_it_delayed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clockwork(monkeypatch, stall=300 * MS, cost=1 * MS)
    one = worker(clock, rate=100)
    asyncio.run(one.run(Window(0, 1_000 * MS), 0))
    latencies = sorted(one.work.latencies)
    # Thirty records were due during the stall, each of them late by what was left of it.
    assert sum(late > 10 * MS for late in latencies) >= 28
    assert max(latencies) == 300 * MS
    assert one.work.calls == 99


def test_without_a_rate_latency_counts_from_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clockwork(monkeypatch, stall=300 * MS, cost=1 * MS)
    one = worker(clock)
    asyncio.run(one.run(Window(0, 1_000 * MS), 0))
    assert sum(late > 10 * MS for late in one.work.latencies) == 1


def test_only_what_was_answered_in_the_window_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clockwork(monkeypatch, stall=1 * MS, cost=1 * MS)
    one = worker(clock, rate=100)
    asyncio.run(one.run(Window(500 * MS, 1_000 * MS), 0))
    assert one.work.calls == 99
    assert one.work.acknowledged_in_window == len(one.work.latencies) == 50


def test_a_failed_call_is_remembered_and_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clockwork(monkeypatch, stall=1 * MS, cost=1 * MS)
    clock.fails_with = NotLeader("elections")
    one = worker(clock)
    asyncio.run(one.run(Window(0, 1_000 * MS), 0))
    assert set(one.work.failed.values()) == {"NOT_LEADER"}
    assert len(one.work.failed) == one.work.calls
    assert one.work.acknowledged_in_window == 0


def test_end_to_end_latency_is_that_of_records_due_in_the_window() -> None:
    stamps = Stamps(16)
    inbox = Inbox(stamps)
    partition = TopicPartition("t", 0)
    for sent, now in ((100, 150), (200, 260), (300, 400)):
        ids, times = stamps.columns(stamps.records(sent, 2, sent))
        inbox.ids[partition].append(ids)
        inbox._arrivals.append((now, times))
    assert sorted(inbox.latencies(Window(200, 390))) == [60, 60, 100, 100]
    assert inbox.received_in(Window(200, 390)) == 2
    assert list(inbox.column(partition)) == [100, 101, 200, 201, 300, 301]


@pytest.mark.parametrize(
    "wrong",
    [
        {"workers": 0},
        {"workers": 2, "connections": 3},
        {"size": 15},
        {"batch": 0},
        {"rate": 0},
        {"duration_s": 0},
        {"topics": 0},
        {"mode": DeliveryMode.PERFORMANCE, "scenario": Scenario.PUBLISH},
        {"protocol": Protocol.WIRE, "http_targets": ("127.0.0.1:7402",)},
    ],
)
def test_a_plan_that_makes_no_sense_cannot_be_made(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        Plan(**wrong)  # type: ignore[arg-type]
