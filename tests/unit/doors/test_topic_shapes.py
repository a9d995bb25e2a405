"""Where a record goes when its producer does not say."""

from __future__ import annotations

import asyncio

from tests.unit.doors.grpc.memory_broker import MemoryBroker

from angarium.api import TopicConfig
from angarium.api.layout import Layout
from angarium.batch import key_hash
from angarium.doors.intake import partitions
from angarium.doors.intake.partitions import AGE_MAX_S, TopicShape, TopicShapes


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def prepared(**topics: int) -> tuple[MemoryBroker, Clock, TopicShapes]:
    broker, clock = MemoryBroker(), Clock()
    for name, count in topics.items():
        await broker.create_topic(name, partitions=count, config=TopicConfig())
    broker.calls.clear()
    return broker, clock, TopicShapes(broker, clock=clock)


def shape_of(count: int) -> TopicShape:
    return TopicShape(
        layout=Layout.over(count),
        steady=Layout.over(count),
        batch_bytes_max=1 << 20,
        read_at=0.0,
        turn=0,
    )


def test_a_key_decides_by_its_hash() -> None:
    shape = shape_of(7)
    for number in range(100):
        key = str(number).encode()
        assert shape.partition_for(key) == key_hash(key) % 7


def test_an_empty_key_is_a_key() -> None:
    shape = shape_of(5)
    assert {shape.partition_for(b"") for _ in range(10)} == {key_hash(b"") % 5}


def test_records_without_a_key_take_turns() -> None:
    shape = shape_of(3)
    assert [shape.partition_for(None) for _ in range(7)] == [1, 2, 0, 1, 2, 0, 1]


def test_a_shape_is_asked_for_once_while_it_is_young() -> None:
    async def check() -> None:
        broker, clock, shapes = await prepared(orders=4)
        first = await shapes.of("orders")
        clock.now += AGE_MAX_S - 0.01
        assert await shapes.of("orders") is first
        assert broker.calls == [("describe_topic", "orders")]

    asyncio.run(check())


def test_new_partitions_are_noticed_when_the_shape_has_aged() -> None:
    async def check() -> None:
        broker, clock, shapes = await prepared(orders=1)
        assert (await shapes.of("orders")).partitions == 1
        await broker.alter_topic("orders", partitions=3, config=None)
        clock.now += AGE_MAX_S
        assert shapes.known("orders") is None
        assert (await shapes.of("orders")).partitions == 3

    asyncio.run(check())


def test_turns_go_on_after_a_shape_was_read_again() -> None:
    async def check() -> None:
        _, clock, shapes = await prepared(orders=4)
        before = [(await shapes.of("orders")).partition_for(None) for _ in range(2)]
        clock.now += AGE_MAX_S
        after = [(await shapes.of("orders")).partition_for(None) for _ in range(2)]
        assert before + after == [1, 2, 3, 0]

    asyncio.run(check())


def test_a_topic_that_does_not_exist_looks_like_a_fresh_one_and_is_not_remembered() -> None:
    async def check() -> None:
        broker, _, shapes = await prepared()
        assert (await shapes.of("orders")).partitions == 1
        await broker.create_topic("orders", partitions=9, config=TopicConfig())
        assert (await shapes.of("orders")).partitions == 9

    asyncio.run(check())


def test_a_forgotten_shape_is_asked_for_again() -> None:
    async def check() -> None:
        broker, _, shapes = await prepared(orders=1)
        await shapes.of("orders")
        shapes.forget("orders")
        shapes.forget("never heard of")
        await shapes.of("orders")
        assert len(broker.calls) == 2

    asyncio.run(check())


def test_no_more_topics_are_remembered_than_the_limit_allows(monkeypatch: object) -> None:
    async def check() -> None:
        _, _, shapes = await prepared(a=1, b=1, c=1)
        for name in ("a", "b", "c"):
            await shapes.of(name)
        assert [shapes.known(name) is not None for name in ("a", "b", "c")] == [False, True, True]

    limit = partitions.TOPICS_MAX
    partitions.TOPICS_MAX = 2  # type: ignore[misc]
    try:
        asyncio.run(check())
    finally:
        partitions.TOPICS_MAX = limit  # type: ignore[misc]
