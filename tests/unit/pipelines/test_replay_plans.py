"""A replay's plan: every offset once, in portions that are the same whoever makes them."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angarium.errors import InvalidArgument
from angarium.pipelines.board import State, Status
from angarium.pipelines.jobs import Replay, replay_in
from angarium.pipelines.replay.pace import Run
from angarium.pipelines.replay.plan import (
    PORTION_BYTES,
    PORTION_RECORDS,
    Plan,
    PlannedRange,
    planned,
)
from angarium.spark.ranges import OffsetRange


def plan(ranges: tuple[PlannedRange, ...], portion: int) -> Plan:
    return Plan(name="x", topic="t", topic_id=3, into="u", ranges=ranges, portion_records=portion)


@given(
    lengths=st.lists(st.integers(0, 500), min_size=1, max_size=6),
    portion=st.integers(1, 200),
)
def test_portions_have_every_offset_once_and_are_no_larger_than_agreed(
    lengths: list[int], portion: int
) -> None:
    parts = tuple(PlannedRange(at, 10 * at, 10 * at + length) for at, length in enumerate(lengths))
    seen: list[tuple[int, int]] = []
    for ranges in plan(parts, portion).portions():
        assert 0 < sum(one.records for one in ranges) <= portion
        seen += [(one.partition, at) for one in ranges for at in range(one.start, one.stop)]
    assert len(seen) == len(set(seen)) == sum(lengths)
    for number in range(len(lengths)):
        mine = [at for partition, at in seen if partition == number]
        assert mine == sorted(mine)
    assert list(plan(parts, portion).portions()) == list(plan(parts, portion).portions())


def test_portions_are_bounded_by_bytes_and_by_the_rate() -> None:
    ranges = [OffsetRange("t", 0, 5, 1_000_000)]
    wish = {"servers": "x:1", "subscribe": "t"}

    def portion(size: float, rate: int | None = None) -> int:
        wanted = Replay(options=wish, into="u", rate=rate)
        plan = planned(wanted, ranges, cluster="c", topic_id=1, record_bytes=size)
        return plan.portion_records

    assert portion(1.0) == PORTION_RECORDS
    assert portion(1 << 20) == PORTION_BYTES >> 20
    assert portion(1e12) == 1
    assert portion(1.0, rate=100) == 200
    assert portion(1 << 20, rate=10_000) == PORTION_BYTES >> 20


def test_a_replay_waits_for_its_rate() -> None:
    now = [100.0]
    told: list[Status] = []
    whole = plan((PlannedRange(0, 0, 1000),), 400)
    run = Run(whole, rate=200, on_progress=told.append, clock=lambda: now[0])
    for portion in whole.portions():
        now[0] += run.ahead_s()
        assert not run.is_ahead()
        run.has_written(portion)
        now[0] += 0.5  # what writing takes is part of the time
    assert now[0] == 104.5
    assert [one.lag for one in told] == [600, 200, 0]
    assert run.ended(3, is_done=True).written == 1000
    assert told[-1].state is State.STOPPED
    assert not Run(whole, rate=None, on_progress=told.append).is_ahead()


def test_the_same_wish_is_the_same_replay() -> None:
    one = replay_in({"subscribe": "orders", "into": "again"})
    assert one.name == replay_in({"into": "again", "subscribe": "orders"}).name
    assert one.name.startswith("orders-into-again-")
    elsewhere = replay_in({"subscribe": "orders", "into": "again", "servers": "b:1,a:1"})
    assert elsewhere.name == one.name
    assert one.name != replay_in({"subscribe": "orders", "into": "again", "lake": "x"}).name
    assert replay_in({"subscribe": "orders", "into": "again", "id": "monday"}).name == "monday"


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ('subscribe = "a"', "replay needs a topic"),
        ('subscribe = "a,b"\ninto = "x"', "a replay is of one topic"),
        ('subscribePattern = "a"\ninto = "x"', "a replay is of one topic"),
        ('subscribe = "a"\ninto = "x"\nrate = "much"', "'much' is no whole number"),
        ('subscribe = "a"\ninto = "x"\nlake = "l"\narchive = "l"', "contradict each other"),
        ('subscribe = "a"\ninto = "x"\nmaxOffsetsPerTrigger = "1"', "not for a batch read"),
        ('subscribe = "a"\ninto = "x"\nkeep_partitions = "1"', "neither 'true' nor 'false'"),
    ],
)
def test_what_is_wrong_with_a_replay_is_named(text: str, refusal: str) -> None:
    with pytest.raises(InvalidArgument, match=refusal):
        replay_in(tomllib.loads(text))
