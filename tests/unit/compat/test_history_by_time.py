"""Many partitions in one row by time, page by page, and ids made of places."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from tests.unit.doors.grpc.memory_broker import MemoryBroker, MemorySubscription

from angarium.api import FetchRequest, FetchResult, PublishRequest, TopicConfig, TopicInfo
from angarium.batch import encode
from angarium.errors import InvalidArgument, LayoutChanged
from angarium.ids import Offset, TopicId
from angarium_compat.geo import feeds
from angarium_compat.geo import history as page
from angarium_compat.geo.feeds import begun
from angarium_compat.geo.history import before, history
from angarium_compat.geo.message_ids import MessageIds
from angarium_compat.geo.publishing import GeoPublishing
from angarium_compat.geo.sources import Sent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import Interest


async def published(broker: MemoryBroker, topic: str, partition: int, *values: bytes) -> None:
    batch = encode(list(values))
    await broker.publish(PublishRequest(topic=topic, partition=partition, batches=(batch,)))


async def three_topics(broker: MemoryBroker) -> None:
    for name, partitions in (("a", 1), ("b", 2), ("c", 1)):
        await broker.create_topic(name, partitions=partitions, config=TopicConfig())
    for number in range(40):
        topic, partition = (("a", 0), ("b", 0), ("b", 1), ("c", 0))[number * 7 % 4]
        await published(broker, topic, partition, b"%d" % number, b"%d too" % number)


def test_history_is_one_row_by_time_whatever_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "PAGE_BYTES", 1)

    async def story() -> list[Sent]:
        broker = MemoryBroker()
        await three_topics(broker)
        feed = await begun(broker, GeoPublishing(broker), {"a": 0, "b": 0, "c": 0})
        return [one async for one in history(broker, list(feed._topics.values()))]

    row = asyncio.run(story())
    assert len(row) == 80
    assert [one.time_us for one in row] == sorted(one.time_us for one in row)
    for topic in "abc":
        shown = [one.shown_us for one in row if one.topic == topic]
        assert shown == sorted(shown)
    assert len({one.id for one in row}) == 80


def test_resuming_after_any_message_misses_none() -> None:
    async def story() -> None:
        broker = MemoryBroker()
        await broker.create_topic("a", partitions=1, config=TopicConfig())
        for number in range(5):
            await published(broker, "a", 0, *(b"%d.%d" % (number, one) for one in range(4)))
        publishing = GeoPublishing(broker)

        async def after(time_us: int) -> list[Sent]:
            feed = await begun(broker, publishing, {"a": time_us})
            return [one async for one in history(broker, list(feed._topics.values()))]

        whole = await after(0)
        for at, one in enumerate(whole):
            rest = await after(one.shown_us)
            # The last of a batch is exact; inside a batch, the batch comes again.
            begin = at + 1 if at % 4 == 3 else at - at % 4
            assert [that.body for that in rest] == [that.body for that in whole[begin:]]

    asyncio.run(story())


class Behind(MemoryBroker):
    """A replica that has not yet what its leader has: the first look finds nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[int] = []

    async def fetch(self, request: FetchRequest) -> FetchResult:
        self.waits.append(request.wait_ms)
        if len(self.waits) == 1:
            return FetchResult(start_offset=Offset(0), end_offset=Offset(0))
        return await super().fetch(request)


def test_a_page_waits_for_a_replica_that_is_behind() -> None:
    """Asked again without a wait, it would never get the time to catch up."""

    async def story() -> None:
        broker = Behind()
        await broker.create_topic("a", partitions=1, config=TopicConfig())
        await published(broker, "a", 0, b"x")
        feed = await begun(broker, GeoPublishing(broker), {"a": 0})
        assert [one.body async for one in history(broker, list(feed._topics.values()))] == [b"x"]
        assert len(broker.waits) == 2
        assert min(broker.waits) > 0

    asyncio.run(story())


class BadlyInformed(MemoryBroker):
    """A node that has not heard yet how far partitions are, as others than leaders may be."""

    async def describe_topic(self, topic: str) -> TopicInfo:
        info = await super().describe_topic(topic)
        return replace(
            info, partitions=[replace(one, end_offset=Offset(1)) for one in info.partitions]
        )


def test_a_row_has_all_that_leaders_have_whatever_this_node_has_heard() -> None:
    """Left out, the end of one topic came behind later messages of the others."""

    async def story() -> list[Sent]:
        broker = BadlyInformed()
        await three_topics(broker)
        feed = await begun(broker, GeoPublishing(broker), {"a": 0, "b": 0, "c": 0})
        return [one async for one in history(broker, list(feed._topics.values()))]

    assert len(asyncio.run(story())) == 80


class Grown(MemoryBroker):
    """Topic "a" has two partitions, the second of which came with its second layout."""

    fence = Offset(2)

    async def describe_topic(self, topic: str) -> TopicInfo:
        info = await super().describe_topic(topic)
        if topic != "a":
            return info
        first, second = info.partitions
        return replace(
            info, layouts=(1, 2), partitions=[replace(first, fences=(self.fence,)), second]
        )

    async def fetch(self, request: FetchRequest) -> FetchResult:
        is_before = request.topic == "a" and request.layout == 0
        if is_before and (request.partition == 1 or request.offset >= self.fence):
            raise LayoutChanged("behind a fence")
        result = await super().fetch(request)
        if is_before:
            upto = self.fence - request.offset
            return replace(result, batches=result.batches[:upto])
        return result


def test_history_goes_through_the_fences_of_a_topic_in_one_row() -> None:
    """And another topic's messages keep their places among those before and behind."""

    async def story() -> list[Sent]:
        broker = Grown()
        await broker.create_topic("a", partitions=2, config=TopicConfig())
        await broker.create_topic("b", partitions=1, config=TopicConfig())
        # Each partition has a clock of its own, and that of the new one is behind.
        order = [("a", 0, b"1"), ("a", 0, b"2"), ("a", 0, b"behind"), ("a", 1, b"behind, too")]
        order += [("b", 0, b"x"), ("b", 0, b"y"), ("b", 0, b"z")]
        for topic, partition, value in order:
            await published(broker, topic, partition, value)
        feed = await begun(broker, GeoPublishing(broker), {"a": 0, "b": 0})
        return [one async for one in history(broker, list(feed._topics.values()))]

    row = asyncio.run(story())
    told = [one.body for one in row]
    assert told == [b"1", b"x", b"2", b"y", b"behind, too", b"behind", b"z"]
    assert [one.time_us for one in row] == sorted(one.time_us for one in row)


def test_resuming_before_or_behind_a_fence_misses_none_whatever_the_clocks_say() -> None:
    async def story() -> None:
        broker = Grown()
        await broker.create_topic("a", partitions=2, config=TopicConfig())
        for number in range(4):
            await published(broker, "a", 0, b"%d" % number)
        # Each partition has a clock of its own, and that of the new one is behind.
        for number in range(4, 7):
            await published(broker, "a", 1, b"%d" % number)
        publishing = GeoPublishing(broker)

        async def after(time_us: int) -> list[Sent]:
            feed = await begun(broker, publishing, {"a": time_us})
            return [one async for one in history(broker, list(feed._topics.values()))]

        whole = await after(0)
        assert {one.body for one in whole[:2]} == {b"0", b"1"}
        assert len(whole) == 7
        for at, one in enumerate(whole):
            rest = {that.body for that in await after(one.shown_us)}
            assert {that.body for that in whole[at + 1 :]} <= rest
        assert await after(whole[-1].shown_us) == []

    asyncio.run(story())


class Counted(MemoryBroker):
    """Is not to be looked at too often; has a message for who subscribes."""

    looks = 0

    async def describe_topic(self, topic: str) -> TopicInfo:
        self.looks += 1
        assert self.looks < 50, "it looks for ever"
        return await super().describe_topic(topic)

    async def subscribe(self, interests: Sequence[Interest]) -> MemorySubscription:
        subscription = await super().subscribe(interests)
        await published(self, "a", 0, b"live")
        return subscription


def test_many_topics_without_news_are_not_looked_at_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To find the ends of a thousand takes longer than a row that leaves little behind it may."""
    monkeypatch.setattr(feeds, "CAUGHT_UP_S", -1.0)

    async def story() -> None:
        broker = Counted()
        await three_topics(broker)
        feed = await begun(broker, GeoPublishing(broker), {"a": 0, "b": 0, "c": 0})
        async with aclosing(feed.messages()) as row:
            for _ in range(80):
                await anext(row)
            assert (await anext(row)).body == b"live"

    asyncio.run(story())


def test_two_partitions_that_append_in_the_same_microsecond_are_told_apart() -> None:
    one = Sent(10, 10, 0, 5, 10, "x", "a", b"")
    assert before(one, Sent(10, 10, 1, 7, 10, "y", "a", b"")).shown_us == 9
    assert before(one, Sent(11, 11, 1, 7, 11, "y", "a", b"")).shown_us == 10
    assert before(one, Sent(10, 10, 1, 7, 10, "y", "b", b"")).shown_us == 10
    # Behind a fence, where the clock is behind as well.
    assert before(one, Sent(11, 7, 1, 7, 7, "y", "a", b"")).shown_us == 6


def test_a_subscription_names_topics() -> None:
    async def story() -> None:
        broker = MemoryBroker()
        with pytest.raises(InvalidArgument):
            await begun(broker, GeoPublishing(broker), {})
        with pytest.raises(InvalidArgument):
            await begun(broker, GeoPublishing(broker), {"": 0})

    asyncio.run(story())


def test_an_id_is_a_uuid_of_the_place() -> None:
    ids = MessageIds(cluster="c", topic=TopicId(7), partition=2)
    found = [uuid.UUID(ids.at(offset)) for offset in (0, 1, 2**31, 2**61)]
    assert len(set(found)) == 4
    assert all((one.version, one.variant) == (8, uuid.RFC_4122) for one in found)
    assert found[2].int & ((1 << 62) - 1) == 2**31
    others = (
        MessageIds(cluster="d", topic=TopicId(7), partition=2),
        MessageIds(cluster="c", topic=TopicId(8), partition=2),
        MessageIds(cluster="c", topic=TopicId(7), partition=3),
    )
    assert len({ids.at(0), *(one.at(0) for one in others)}) == 4
