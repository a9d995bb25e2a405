"""What comes to one reader: portions, acknowledgements, heartbeats, credit."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.on_a_loop import run

from angarium.api import Delivery, Handed, Settled
from angarium.api.stored_records import lent
from angarium.batch import encode, stamp
from angarium.batch.deadlines import ranges_of
from angarium.doors.feeds.beating import beating
from angarium.doors.feeds.credit import Credit
from angarium.doors.feeds.feed import PORTION_RECORDS, GroupFeed, TopicFeed
from angarium.errors import InvalidArgument, NotFound
from angarium.ids import Micros, Offset, Term

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from angarium.api import Settlement


def stored(*values: bytes, base: int = 0) -> bytearray:
    batch = encode(values)
    stamp(batch, base_offset=Offset(base), term=Term(1), append_time=Micros(5))
    return batch


class Coming:
    """A subscription, or a member's part, that yields what it is given and then waits or breaks."""

    def __init__(self, *found: Any, error: Exception | None = None) -> None:
        self.settled: list[Settlement] = []
        self.closed: list[bool] = []
        self._found = found
        self._error = error

    async def __aiter__(self) -> AsyncIterator[Any]:
        for one in self._found:
            yield one
        if self._error is not None:
            raise self._error
        await asyncio.Event().wait()

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        self.settled += settlements
        return tuple(Settled(records=1) for _ in settlements)

    async def close(self, *, lost: bool = False) -> None:
        self.closed.append(lost)


def delivery(*batches: bytearray, live: bool = False, start: int = 0) -> Delivery:
    return Delivery(topic="t", partition=1, batches=batches, from_offset=Offset(start), live=live)


def handed(*ranges: int) -> Handed:
    batches = (stored(b"a", b"b", b"c"), stored(b"d", b"e", base=3))
    return Handed(topic="t", partition=2, batches=batches, ranges=ranges, attempt=3)


def test_a_member_is_shown_what_it_was_handed_and_not_the_neighbours() -> None:
    assert [one.value for one in lent(handed(1, 2, 3, 5))] == [b"b", b"d", b"e"]
    assert [one.offset for one in lent(handed(0, 1, 2, 4))] == [0, 2, 3]
    assert ranges_of([0, 1, 4, 5, 9]) == (0, 2, 4, 6, 9, 10)


def test_a_long_delivery_comes_in_portions_from_where_it_begins() -> None:
    async def check() -> None:
        batch = stored(*[b"v"] * (PORTION_RECORDS + 3))
        feed = TopicFeed(cast("Any", Coming(delivery(batch, start=2))))
        coming = aiter(feed)
        first, second = await anext(coming), await anext(coming)
        assert (first.topic, first.partition, first.live) == ("t", 1, False)
        assert [len(first.records), len(second.records)] == [PORTION_RECORDS, 1]
        assert first.records[0].offset == 2

    run(check())


def test_a_member_acknowledges_and_leaves_and_what_breaks_a_topic_breaks_its_feed() -> None:
    async def check() -> None:
        member = Coming(handed(0, 2))
        feed = GroupFeed(cast("Any", member))
        portion = await anext(aiter(feed))
        assert (portion.live, portion.attempt, len(portion.records)) == (False, 3, 2)
        await feed.acknowledge("t", 2, (0, 2))
        await feed.close()
        assert [(one.topic, one.partition, one.ranges) for one in member.settled] == [
            ("t", 2, (0, 2))
        ]
        assert member.closed == [False]
        passing = aiter(TopicFeed(cast("Any", Coming(delivery(stored(b"x"), live=True)))))
        assert (await anext(passing)).live
        with pytest.raises(NotFound):
            async for _ in TopicFeed(cast("Any", Coming(error=NotFound("gone")))):
                pass

    run(check())


def test_a_silent_stream_beats_and_loses_nothing() -> None:
    async def check() -> None:
        beats = 0
        again = asyncio.Event()

        async def beat() -> None:
            nonlocal beats
            beats += 1
            if beats == 3:
                again.set()

        async def source() -> AsyncIterator[int]:
            yield 1
            await again.wait()
            yield 2

        found = [one async for one in beating(source(), beat, seconds=0.001)]
        assert found == [1, 2]
        assert beats >= 3

    run(check())


def test_credit_may_be_overdrawn_once_and_ends_for_good() -> None:
    async def check() -> None:
        credit = Credit(2)
        assert await credit.some()
        credit.left -= 5
        waiting = asyncio.create_task(credit.some())
        credit.add(4)
        assert await waiting
        credit.left -= 1
        credit.close()
        assert not await credit.some()
        assert await Credit(None).some()
        with pytest.raises(InvalidArgument):
            credit.add(-1)

    run(check())
