"""A topic that keeps records until every group has them, on a real node."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium import Client, TopicConfig
from angarium.node.retention import Retention
from angarium.testing.broker import InProcessBroker, in_process_broker

if TYPE_CHECKING:
    from pathlib import Path

DEADLINE_S = 60.0


async def settle(client: Client, group: str, records: int) -> None:
    """Take and acknowledge so many records."""
    consumer = client.group(group).consume("t")
    left = records
    async for record in consumer:
        await record.ack()
        left -= 1
        if not left:
            break
    await consumer.close()


async def trimmed_to(broker: InProcessBroker, client: Client) -> int:
    """Let the leader look, and return where the topic starts then."""
    node = broker.nodes[0]
    assert node is not None
    Retention(node).round()
    await client.publish("other", b"so that the entry before is applied")
    start = (await client.describe_topic("t")).partitions[0].start_offset
    assert start is not None
    return start


async def once_trimmed(broker: InProcessBroker, client: Client, start: int) -> int:
    """Wait until the topic starts at `start`, or later; return where it does."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            found = await trimmed_to(broker, client)
            if found >= start:
                return found
            await asyncio.sleep(0.01)


def test_what_every_group_has_settled_goes_and_nothing_else(tmp_path: Path) -> None:
    async def check() -> None:
        async with (
            in_process_broker(tmp_path, tick_ms=20) as broker,
            Client(*broker.addresses) as client,
        ):
            await client.create_topic("t", config=TopicConfig(retention_groups=True))
            await client.create_topic("other")
            for number in range(10):
                await client.publish("t", b"%d" % number)
            assert await trimmed_to(broker, client) == 0, "nobody has consumed anything yet"
            await settle(client, "slow", 3)
            await settle(client, "quick", 8)
            assert await once_trimmed(broker, client, 3) == 3
            await settle(client, "slow", 7)
            assert await once_trimmed(broker, client, 8) == 8
            assert [one.value for one in await client.fetch("t", 0, 8)] == [b"8", b"9"]

    asyncio.run(check())
