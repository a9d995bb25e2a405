"""Compaction on real nodes: what readers see, that replicas agree, and what is refused."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from angarium import Client, TopicConfig
from angarium.batch import Batch
from angarium.errors import InvalidArgument, NotFound
from angarium.node import compaction
from angarium.testing.broker import InProcessBroker, in_process_broker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from angarium.replica.partition import Partition

DEADLINE_S = 60.0
COMPACT = TopicConfig(cleanup="compact", tombstone_ms=0, dirty_percent=1)


@pytest.fixture(autouse=True)
def little_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "DIRTY_BYTES_MIN", 1)


@asynccontextmanager
async def opened(folder: Path, nodes: int) -> AsyncIterator[tuple[InProcessBroker, Client]]:
    async with (
        in_process_broker(folder, nodes=nodes, tick_ms=20) as broker,
        Client(*broker.addresses) as client,
    ):
        yield broker, client


def replicas(broker: InProcessBroker, topic: str) -> list[Partition]:
    found = []
    for node in broker.nodes:
        if node is not None:
            group = node.catalog.partition(topic, 0).group
            found.append(node.partition(group).partition)
    return found


async def compacted(broker: InProcessBroker, topic: str, *, until: int) -> None:
    """Have the leader propose, and wait until every replica has done it."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            for node in broker.nodes:
                if node is not None:
                    compaction.Compaction(node).round()
            here = replicas(broker, topic)
            if all(
                one.machine.compaction[0] >= until and not one.files.is_to_be_compacted
                for one in here
            ):
                return
            await asyncio.sleep(0.02)


def frames(partition: Partition) -> list[bytes]:
    found: list[bytes] = []
    offset = partition.log.start_offset
    while batches := partition.log.read(offset, 1 << 20):
        found += map(bytes, batches)
        offset = Batch.trusted(batches[-1]).next_offset
    return found


def test_the_latest_record_of_each_key_stays_on_every_replica(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path, 3) as (broker, client):
            await client.create_topic("t", config=COMPACT)
            for turn in range(20):
                await client.publish_batch(
                    "t",
                    [f"{turn}.{key}".encode() for key in range(50)],
                    keys=[f"key {key}".encode() for key in range(50)],
                )
            await client.publish("t", None, key=b"key 7")
            await client.publish("t", b"last", key=b"the end")
            await compacted(broker, "t", until=1_002)
            left = [(one.offset, one.key, one.value) async for one in client.read("t")]
            # The tombstone itself went with its time, which is none at all here.
            wanted = [
                (950 + key, f"key {key}".encode(), f"19.{key}".encode())
                for key in range(50)
                if key != 7
            ]
            tombstone = (1_000, b"key 7", None)
            assert [one for one in left if one != tombstone] == [
                *wanted,
                (1_001, b"the end", b"last"),
            ]
            one, two, three = (frames(one) for one in replicas(broker, "t"))
            assert one == two == three
            with pytest.raises(NotFound, match="compaction"):
                await client.fetch_one("t", 0, 3)
            assert (await client.fetch("t", 0, 3))[0].offset == 950

            # It goes on afterwards, and a restarted node is where it was.
            await client.publish("t", b"new", key=b"key 1")
            await broker.stop_node(1)
            await broker.start_node(1)
            await compacted(broker, "t", until=1_003)
            read = {one.key: one.value async for one in client.read("t")}
            assert read[b"key 1"] == b"new"
            assert read[b"key 2"] == b"19.2"
            one, two, three = (frames(one) for one in replicas(broker, "t"))
            assert one == two == three

    asyncio.run(check())


def test_a_record_without_a_key_is_refused(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path, 1) as (_, client):
            made = await client.create_topic("t", config=COMPACT)
            assert made.config.cleanup == "compact"
            with pytest.raises(InvalidArgument, match="needs a key"):
                await client.publish("t", b"no key")
            await client.publish("t", b"a key", key=b"k")
            with pytest.raises(InvalidArgument):
                await client.create_topic("u", config=TopicConfig(dirty_percent=0))

    asyncio.run(check())


def test_a_node_that_comes_late_copies_what_is_left(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path, 3) as (broker, client):
            await client.create_topic("t", config=COMPACT)
            for turn in range(5):
                keys = [f"key {key}".encode() for key in range(40)]
                await client.publish_batch("t", [b"%d" % turn] * 40, keys=keys)
            await broker.stop_node(2)
            for turn in range(5, 10):
                keys = [f"key {key}".encode() for key in range(40)]
                await client.publish_batch("t", [b"%d" % turn] * 40, keys=keys)
            await compacted(broker, "t", until=400)
            await broker.start_node(2)
            await compacted(broker, "t", until=400)
            one, two, three = (frames(one) for one in replicas(broker, "t"))
            assert one == two == three
            assert [record.value async for record in client.read("t")] == [b"9"] * 40

    asyncio.run(check())
