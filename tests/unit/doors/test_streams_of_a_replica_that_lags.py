"""Streams at a node whose replica does not have everything yet: nothing is passed over."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.doors.grpc.memory_broker import MemoryBroker

from angarium.api import (
    FetchRequest,
    FetchResult,
    PublishRequest,
    Start,
    StartAt,
    TopicConfig,
    TopicInfo,
)
from angarium.batch import Batch, encode
from angarium.doors.feeds.positions import found_start, known_in
from angarium.doors.feeds.tails import Tail, TailKey
from angarium.errors import InvalidArgument, NotLeader
from angarium.ids import Offset

HAS = 3


class Lagging(MemoryBroker):
    """A node whose replica has three records, and who asks the leader only if it has to."""

    async def fetch(self, request: FetchRequest) -> FetchResult:
        if (request.at_least or 0) >= HAS or request.offset < HAS:
            return await super().fetch(request)
        return FetchResult(start_offset=Offset(0), end_offset=Offset(HAS))


def test_who_catches_up_with_a_tail_gets_what_the_nearest_replica_lacks() -> None:
    def written(record: Any, **_: object) -> bytes:
        return bytes(record.value or b"")

    async def story() -> bytes:
        broker = Lagging()
        await broker.create_topic("t", partitions=1, config=TopicConfig())
        for number in range(2 * HAS):
            batch = encode([b"%d" % number])
            await broker.publish(PublishRequest(topic="t", partition=0, batches=(batch,)))
        tail = Tail(broker, TailKey("t", None, "text"), written)
        await tail.opened()
        assert tail.positions == [2 * HAS]  # as the leader says
        got: list[bytes] = []

        async def write(chunk: bytes) -> None:
            got.append(chunk)

        await tail.catch_up([0], write)
        await tail.close()
        return b"".join(got)

    assert asyncio.run(story()) == b"012345"


class HomeLost(MemoryBroker):
    """A node without a replica, whose neighbour has a copy of what nobody leads any more."""

    async def find_offset(self, topic: str, partition: int, start: Start) -> Offset:
        del topic, partition, start
        raise NotLeader

    async def describe_topic(self, name: str) -> TopicInfo:
        info = await super().describe_topic(name)
        return replace(info, partitions=tuple(replace(one, home="eu") for one in info.partitions))


def test_a_stream_since_a_time_begins_there_while_a_home_is_lost() -> None:
    """It began at the end of the copy: all between was left out."""

    async def story() -> None:
        broker = HomeLost()
        await broker.create_topic("t", partitions=1, config=TopicConfig())
        for number in range(7):
            batch = encode([b"%d" % number] * 3)
            await broker.publish(PublishRequest(topic="t", partition=0, batches=(batch,)))
        times = [Batch.trusted(one).append_time for one in broker.partition("t", 0).batches]
        since = {0: 0, times[-1] + 1: 21} | {time: 3 * at for at, time in enumerate(times)}
        for time, offset in since.items():
            start = Start(StartAt.TIMESTAMP, time)
            assert await found_start(broker, "t", 0, start) == offset
        assert await found_start(broker, "t", 0, Start(StartAt.EARLIEST)) == 0
        assert await found_start(broker, "t", 0, Start(StartAt.LATEST)) == 21

    asyncio.run(story())


@pytest.mark.parametrize(
    ("text", "partition", "known"),
    [
        (None, None, {}),
        ("57", 2, {2: 57}),
        ("2:57", 2, {2: 57}),
        ("2:57,0:9", None, {2: 57, 0: 9}),
        ("2:57, 2:60,2:58", None, {2: 60}),
    ],
)
def test_what_a_reader_knows_of_is_told_by_partition(
    text: str | None, partition: int | None, known: dict[int, int]
) -> None:
    assert known_in(text, partition) == known


@pytest.mark.parametrize(("text", "partition"), [("57", None), ("1:57", 2), ("", None), ("a:1", 0)])
def test_an_offset_of_no_partition_that_is_read_is_refused(
    text: str, partition: int | None
) -> None:
    with pytest.raises(InvalidArgument, match="PARTITION:OFFSET"):
        known_in(text, partition)
