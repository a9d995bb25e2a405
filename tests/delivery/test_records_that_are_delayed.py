"""Delays, from a publish to the log that finds what is due, on a real node."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from angarium import Client, TopicConfig
from angarium.errors import InvalidArgument
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from pathlib import Path

HOUR_MICROS = 3_600_000_000
LAST = 1 << 63


def test_plain_readers_see_delayed_records_at_once_and_the_log_knows_when_they_are_due(
    tmp_path: Path,
) -> None:
    async def check() -> None:
        async with (
            in_process_broker(tmp_path, tick_ms=20) as broker,
            Client(*broker.addresses) as client,
        ):
            await client.create_topic("t")
            now = time.time_ns() // 1_000
            await client.publish("t", b"late", delay=timedelta(hours=2))
            await client.publish("t", b"soon", delay=3_600)
            await client.publish("t", b"at", deliver_at=now + 3 * HOUR_MICROS)
            await client.publish("t", b"now")
            assert [one.value for one in await client.fetch("t")] == [
                *(b"late", b"soon", b"at", b"now")
            ]
            node = broker.nodes[0]
            assert node is not None
            delays = node.partition(node.catalog.partition("t", 0).group).partition.log.delays
            found = delays.due((now, LAST), now + 9 * HOUR_MICROS, floor=0, limit=10)
            assert [offset for _, offset in found] == [1, 0, 2]
            assert delays.next_due(now, floor=0) == found[0][0]
            assert delays.next_due(found[0][0], floor=2) == now + 3 * HOUR_MICROS

    asyncio.run(check())


def test_a_delay_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    async def check() -> None:
        async with (
            in_process_broker(tmp_path, tick_ms=20) as broker,
            Client(*broker.addresses) as client,
        ):
            await client.create_topic("t", config=TopicConfig(retention_ms=60_000))
            with pytest.raises(InvalidArgument, match="retention is 60 s"):
                await client.publish("t", b"x", delay=120)
            with pytest.raises(InvalidArgument, match="not be negative"):
                await client.publish("t", b"x", delay=-1)
            with pytest.raises(InvalidArgument, match="not both"):
                await client.publish("t", b"x", delay=1, deliver_at=timedelta(1))
            await client.publish("t", b"x", delay=30)
            assert len(await client.fetch("t")) == 1

    asyncio.run(check())
