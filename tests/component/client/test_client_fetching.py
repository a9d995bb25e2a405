"""Fetching by offset, reading a topic to its end, and administration."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.component.client.fake_faults import drop_before, refuse
from tests.component.client.harness import talking

from angarium.api import TopicConfig
from angarium.errors import AlreadyExists, NotFound, NotLeader, OffsetOutOfRange, OutcomeUnknown
from angarium.ids import Offset
from angarium.modes import DeliveryMode
from angarium.wire.operations import FetchAnswer, FetchHeader, Operation

if TYPE_CHECKING:
    from tests.component.client.fake_broker import Node
    from tests.component.wire.running import Runner

    from angarium.wire import Request


def test_an_empty_topic_gives_an_empty_list(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client):
            assert await client.fetch("t") == []
            assert await client.fetch_batches("t", 0, 0) == []
            assert [record async for record in client.read("t")] == []
            with pytest.raises(NotFound):
                await client.fetch("nowhere")

    run(main())


def test_a_fetch_begins_at_its_offset_even_inside_a_batch(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client):
            await client.publish_batch("t", [b"%d" % at for at in range(10)])
            records = await client.fetch("t", 0, 4)
            assert [record.offset for record in records] == [4, 5, 6, 7, 8, 9]
            assert [record.value for record in records] == [b"%d" % at for at in range(4, 10)]
            few = await client.fetch("t", 0, 4, records_max=2)
            assert [record.offset for record in few] == [4, 5]
            batches = await client.fetch_batches("t", 0, 4)
            assert batches[0].values() == [b"%d" % at for at in range(4, 10)]
            assert (len(batches), batches.after) == (1, 10)
            assert (await client.fetch_batches("t", 0, 10)).after == 10
            assert await client.fetch("t", 0, 10) == []
            with pytest.raises(OffsetOutOfRange):
                await client.fetch("t", 0, 11)

    run(main())


def test_a_fetch_may_wait_for_records_to_come(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client):
            waiting = asyncio.create_task(client.fetch("t", wait_s=5.0))
            await client.publish("t", b"at last")
            assert [record.value for record in await waiting] == [b"at last"]
            assert await client.fetch("t", 0, 1, wait_s=0.01) == []

    run(main())


def test_a_fresh_fetch_finds_its_way_to_the_leader(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=3) as (cluster, client):
            await client.publish("t", b"x")
            cluster.topics["t"].partitions[0].leader = 3
            assert len(await client.fetch("t", fresh=True)) == 1

    run(main())


def test_a_read_ends_where_the_topic_ended_when_it_began(run: Runner) -> None:
    async def main() -> None:
        async with talking(partitions=3, batch_bytes=500, fetch_bytes=1_000) as (_, client):
            for partition in range(3):
                values = [b"%d" % at for at in range(200)]
                await client.publish_batch("t", values, partition=partition)
            seen = []
            async for record in client.read("t"):
                seen.append((record.partition, record.offset))
                if len(seen) == 1:
                    await client.publish_batch("t", [b"later"] * 30)
            assert seen == [(partition, at) for partition in range(3) for at in range(200)]
            rest = [record.offset async for record in client.read("t", start=195)]
            assert len(rest) > 15

    run(main())


def test_a_read_goes_to_the_leader_where_a_follower_knows_less(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=3, batch_bytes=500, fetch_bytes=1_000) as (cluster, client):
            values = [b"%d" % at for at in range(200)]
            await client.publish_batch("t", values)
            asked_for_what_is_sure = 0

            async def know_less(_: Node, request: Request) -> bool:
                """Answer as who has heard of 100 records: with nothing beyond those."""
                nonlocal asked_for_what_is_sure
                header = request.read(FetchHeader)
                asked_for_what_is_sure += header.fresh
                if header.fresh or header.offset < 100:
                    return False
                request.answer(FetchAnswer(Offset(0), header.offset), ())
                return True

            cluster.plan(Operation.FETCH, *[know_less] * 100)
            assert [record.value async for record in client.read("t")] == values
            assert asked_for_what_is_sure > 0

    run(main())


def test_offsets_can_be_asked_for(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client):
            await client.publish_batch("t", [b""] * 5)
            assert await client.find_offset("t", 0, "earliest") == 0
            assert await client.find_offset("t", 0, "latest") == 5
            assert await client.find_offset("t", 0, 3) == 3

    run(main())


def test_topics_are_made_described_altered_and_deleted(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=2) as (_, client):
            config = TopicConfig(mode=DeliveryMode.EVENTUAL)
            made = await client.create_topic("u", partitions=2, config=config)
            assert (made.name, len(made.partitions), made.config) == ("u", 2, config)
            with pytest.raises(AlreadyExists):
                await client.create_topic("u")
            assert [info.name for info in await client.list_topics()] == ["t", "u"]
            assert len((await client.alter_topic("u", partitions=5)).partitions) == 5
            assert len((await client.describe_topic("u")).partitions) == 5
            await client.delete_topic("u")
            with pytest.raises(NotFound):
                await client.describe_topic("u")

    run(main())


def test_there_may_be_more_topics_and_partitions_than_fit_into_a_header(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            for number in range(400):
                cluster.add_topic(f"topic-with-a-long-name-{number:05}")
            cluster.add_topic("wide", partitions=1_000)
            assert len(await client.list_topics()) == 402
            assert len((await client.describe_topic("wide")).partitions) == 1_000

    run(main())


def test_what_would_take_effect_twice_is_not_repeated_in_doubt(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            cluster.plan(Operation.CREATE_TOPIC, refuse(NotLeader()), refuse(NotLeader()))
            await client.create_topic("u")
            cluster.plan(Operation.CREATE_TOPIC, drop_before)
            with pytest.raises(OutcomeUnknown):
                await client.create_topic("v")
            cluster.plan(Operation.LIST_TOPICS, drop_before, drop_before)
            assert len(await client.list_topics()) == 2

    run(main())


def test_the_cluster_can_be_looked_at(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=3) as (_, client):
            status = await client.cluster_status()
            assert [node.id for node in status.nodes] == [1, 2, 3]
            one, two = await client.open_producer(), await client.open_producer()
            assert one.id != two.id

    run(main())
