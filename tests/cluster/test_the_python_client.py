"""The Python client against three real nodes: what the fake broker's tests promise holds here too.

The nodes share this test's process, so that a test can stop one or move a leader at any moment;
`angarium.testing.cluster` kills real processes.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.on_a_loop import eventually

from angarium import Client, ClientSettings, DeliveryMode, Loss, TopicConfig
from angarium.errors import NotFound
from angarium.testing.broker import InProcessBroker, in_process_broker
from angarium.testing.cluster.waiting import eventually as eventually_so

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.cluster.running import Run

    from angarium import Record, Subscription

PERFORMANCE = DeliveryMode.PERFORMANCE
WORKERS = 4


@asynccontextmanager
async def three_nodes(
    folder: Path, *, partitions: int = 3, **client: Any
) -> AsyncIterator[tuple[InProcessBroker, Client]]:
    """Three nodes with a topic "t", and a client."""
    async with (
        in_process_broker(folder, nodes=3, tick_ms=20) as broker,
        Client(*broker.addresses, settings=ClientSettings(discover_s=0.5), **client) as client_,
    ):
        await client_.create_topic("t", partitions=partitions)
        yield broker, client_


def ordered(records: list[Record]) -> dict[int, list[int]]:
    """Return the numbers in the values by partition, having checked that offsets are dense."""
    numbers: dict[int, list[int]] = {}
    for record in records:
        mine = numbers.setdefault(record.partition, [])
        assert record.offset == len(mine), f"expected {len(mine)}, got {record.offset}"
        mine.append(int(record.value or b""))
    return numbers


async def load(
    client: Client, partition: int, *, stop: asyncio.Event | None = None, count: int = 0
) -> int:
    """Publish numbers until told to stop, or `count` of them; return how many.

    Each of some workers takes every n-th number, and publishes its own in order.
    """
    taken = [0] * WORKERS

    async def work(first: int) -> None:
        number = first
        while not stop.is_set() if stop is not None else number < count:
            await client.publish("t", b"%d" % number, partition=partition)
            taken[first] += 1
            number += WORKERS

    await asyncio.gather(*map(work, range(WORKERS)))
    return sum(taken)


def check(numbers: list[int], count: int) -> None:
    """Check that each worker's numbers are there once, in the order in which it sent them."""
    assert len(numbers) == count
    for first in range(WORKERS):
        mine = [number for number in numbers if number % WORKERS == first]
        assert mine == list(range(first, first + len(mine) * WORKERS, WORKERS))


async def stored(client: Client) -> dict[int, list[int]]:
    return ordered([record async for record in client.read("t")])


def test_what_is_published_is_read_back_in_every_way(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        async with three_nodes(tmp_path) as (_, client):
            assert await client.is_healthy()
            assert await client.fetch("t") == []
            async with client.subscribe("t") as records:
                for partition in range(3):
                    await load(client, partition, count=50)
                await client.publish_batch(
                    "t", [b"%d" % number for number in range(50, 2_000)], partition=1
                )
                got: list[Record] = []
                async with asyncio.timeout(60):
                    async for record in records:
                        got.append(record)
                        if len(got) == 2_100:
                            break
            numbers = ordered(got)
            check(numbers[0], 50)
            assert numbers[1][50:] == list(range(50, 2_000))
            assert await stored(client) == numbers
            assert [one.offset for one in await client.fetch("t", 1, 1_990, fresh=True)] == list(
                range(1_990, 2_000)
            )
            assert await client.find_offset("t", 1, "latest") == 2_000

    run(main())


def test_a_topic_is_made_by_the_first_publish_and_can_be_deleted(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        async with three_nodes(tmp_path) as (_, client):
            assert (await client.publish("new", b"x", key=b"k")).offset == 0
            assert len((await client.alter_topic("new", partitions=2)).partitions) == 2
            await client.delete_topic("new")

            async def is_gone() -> bool:
                try:
                    await client.fetch("new")
                except NotFound:
                    return True
                return False

            await eventually_so(is_gone, what="whichever node is asked, the topic is gone")

    run(main())


def test_performance_records_reach_subscribers_at_other_nodes(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        async with three_nodes(tmp_path) as (_, client), client.subscribe("t") as records:
            for partition in range(3):

                async def is_known(partition: int = partition) -> bool:
                    receipt = await client.publish("t", b"?", partition=partition, mode=PERFORMANCE)
                    return receipt.ack.subscribers == 1

                await eventually_so(is_known, what="the leader knows of the subscriber")
            sent = {(partition, b"%d" % at) for partition in range(3) for at in range(10)}
            for partition, value in sorted(sent):
                receipt = await client.publish("t", value, partition=partition, mode=PERFORMANCE)
                assert receipt.offset is None
                assert receipt.ack.subscribers == 1
            seen = set()
            async with asyncio.timeout(60):
                async for record in records:
                    assert record.offset is None
                    if record.value != b"?":
                        seen.add((record.partition, record.value))
                    if len(seen) == 30:
                        break
            assert seen == sent

    run(main())


def test_leaders_may_move_under_load(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        async with three_nodes(tmp_path, partitions=1) as (_, client):
            stop = asyncio.Event()
            records = client.subscribe("t")
            async with reading(records) as got:
                loading = asyncio.create_task(load(client, 0, stop=stop))
                moves = 0
                while moves < 8:
                    (partition,) = (await client.describe_topic("t")).partitions
                    if partition.leader is not None:
                        to = next(one for one in partition.replicas if one != partition.leader)
                        await client.transfer_leader("t", 0, to)
                        moves += 1
                    await asyncio.sleep(0.05)
                stop.set()
                count = await loading
                await eventually(lambda: len(got) == count)
                numbers = ordered(got)[0]
                check(numbers, count)
                assert (await stored(client))[0] == numbers

    run(main())


def test_nodes_may_stop_and_come_back_under_load(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        async with three_nodes(tmp_path) as (broker, client):
            stop = asyncio.Event()
            records = client.subscribe("t")
            async with reading(records) as got:
                loading = [asyncio.create_task(load(client, at, stop=stop)) for at in range(3)]
                for at in (1, 2, 0):
                    await broker.stop_node(at)
                    await broker.start_node(at)
                stop.set()
                counts = await asyncio.gather(*loading)
                await eventually(lambda: len(got) == sum(counts))
                numbers = ordered(got)
                for partition, count in enumerate(counts):
                    check(numbers[partition], count)
                assert await stored(client) == numbers

    run(main())


def test_what_is_lost_in_eventual_mode_is_counted(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        losses: list[Loss] = []
        async with three_nodes(tmp_path, on_loss=losses.append) as (broker, client):
            config = TopicConfig(mode=DeliveryMode.EVENTUAL)
            await client.alter_topic("t", config=config)
            stop = asyncio.Event()
            loading = [asyncio.create_task(load(client, at, stop=stop)) for at in range(3)]
            for at in (1, 2, 0):
                await broker.stop_node(at)
                await broker.start_node(at)
            stop.set()
            counts = await asyncio.gather(*loading)
            # A committed record of each partition settles all that came before it.
            for partition in range(3):
                await client.publish("t", b"0", partition=partition, mode=DeliveryMode.CONSISTENT)
            numbers = await stored(client)
            missing = sum(counts) + 3 - sum(map(len, numbers.values()))
            assert missing == client.lost_records == sum(loss.records for loss in losses)

    run(main())


@asynccontextmanager
async def reading(records: Subscription) -> AsyncIterator[list[Record]]:
    """Read stored records into a list for as long as the block lasts."""
    got: list[Record] = []

    async def read() -> None:
        async for record in records:
            if record.offset is not None:
                got.append(record)  # noqa: PERF401 (others look at it meanwhile)

    async with records:
        task = asyncio.create_task(read())
        yield got
    await task
