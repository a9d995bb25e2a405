"""Expiry, from a publish to every way of reading, on a real node."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from angarium import Client, TopicConfig
from angarium.api import FetchRequest
from angarium.errors import Expired, InvalidArgument, OffsetOutOfRange
from angarium.ids import Offset
from angarium.service.broker import Service
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from angarium import Record

DEADLINE_S = 60.0


@asynccontextmanager
async def one_node(folder: Path, *, nodes: int = 1) -> AsyncIterator[Client]:
    async with (
        in_process_broker(folder, nodes=nodes, tick_ms=20) as broker,
        Client(*broker.addresses) as client,
    ):
        yield client


def micros(seconds: float) -> int:
    return time.time_ns() // 1_000 + int(seconds * 1_000_000)


async def until(client: Client, *, is_empty: bool) -> list[Record]:
    """Fetch until nothing comes, or something."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            found = await client.fetch("t")
            if is_empty is not bool(found):
                return found
            await asyncio.sleep(0.002)


def test_expired_records_are_left_out_by_every_way_of_reading(tmp_path: Path) -> None:
    async def check() -> None:
        async with one_node(tmp_path) as client:
            await client.create_topic("t")
            past, future = micros(-5), micros(3_600)
            times = [future, past, past, future, past, future]
            values = [f"{at}".encode() for at in range(6)]
            await client.publish_batch("t", values, partition=0, expires_at=times)
            await client.publish_batch("t", [b"6", b"7"], partition=0, expires_at=past)
            await client.publish_batch("t", [b"8"], partition=0)
            alive = [(0, b"0"), (3, b"3"), (5, b"5"), (8, b"8")]

            fetched = await client.fetch("t")
            assert [(one.offset, one.value) for one in fetched] == alive
            from_4 = await client.fetch("t", 0, 4)
            assert [one.offset for one in from_4] == [5, 8]
            read = [(one.offset, one.value) async for one in client.read("t")]
            assert read == alive
            # A fetch so small that the first answer holds nothing but expired records goes on.
            small = await client.fetch("t", 0, 6, bytes_max=1)
            assert [one.offset for one in small] == [8]
            async with client.subscribe("t", start="earliest") as records:
                seen = [await anext(aiter(records)) for _ in alive]
            assert [(one.offset, one.value) for one in seen] == alive

    asyncio.run(check())


def test_a_fetch_of_one_record_says_why_it_is_not_there(tmp_path: Path) -> None:
    async def check() -> None:
        async with one_node(tmp_path) as client:
            await client.create_topic("t")
            await client.publish("t", b"gone", expires_at=micros(-1))
            await client.publish("t", b"here", expires_at=timedelta(hours=1))
            with pytest.raises(Expired) as expired:
                await client.fetch_one("t", 0, 0)
            assert expired.value.offset == 0
            assert (await client.fetch_one("t", 0, 1)).value == b"here"
            with pytest.raises(OffsetOutOfRange):
                await client.fetch_one("t", 0, 2)

    asyncio.run(check())


def test_a_topic_may_let_its_records_expire_by_their_age(tmp_path: Path) -> None:
    async def check() -> None:
        async with one_node(tmp_path, nodes=3) as client:
            made = await client.create_topic("t", config=TopicConfig(expiry_ms=1))
            assert made.config.expiry_ms == 1
            await client.publish("t", b"short-lived")
            await until(client, is_empty=True)
            with pytest.raises(Expired):
                await client.fetch_one("t", 0, 0)
            await client.alter_topic("t", config=TopicConfig(expiry_ms=None, replication=3))
            found = await until(client, is_empty=False)  # a node hears of it in its own time
            assert [one.value for one in found] == [b"short-lived"]
            with pytest.raises(InvalidArgument):
                await client.create_topic("u", config=TopicConfig(expiry_ms=0))

    asyncio.run(check())


def test_a_node_that_passes_a_fetch_on_passes_on_what_has_expired(tmp_path: Path) -> None:
    async def check() -> None:
        async with (
            in_process_broker(tmp_path, nodes=2, tick_ms=20) as broker,
            Client(*broker.addresses) as client,
        ):
            await client.create_topic("t", config=TopicConfig(replication=1))
            await client.publish("t", b"gone", expires_at=micros(-1))
            request = FetchRequest(topic="t", partition=0, offset=Offset(0))
            for node in broker.nodes:
                assert node is not None
                result = await Service(node).fetch(request)
                assert (result.end_offset, result.expired) == (1, (0, 1))

    asyncio.run(check())
