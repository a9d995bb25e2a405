"""Everybody who uses a topic learns that it was given more partitions, without being restarted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.client import Client, ClientSettings
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.client import Consumer, Subscription

SETTINGS = ClientSettings(refresh_s=3_600.0)
"""Nobody learns it because the hour is over."""

DEADLINE_S = 60.0


async def until_read(source: Subscription | Consumer, values: set[bytes]) -> None:
    """Take records until all of `values` have come."""
    missing = set(values)
    async for record in source:
        missing.discard(record.value or b"")
        if not missing:
            return


def test_everybody_learns_of_partitions_that_somebody_else_added(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(DEADLINE_S),
            in_process_broker(tmp_path) as broker,
            Client(*broker.addresses) as other,
            Client(*broker.addresses, settings=SETTINGS, producer="p") as client,
        ):
            await other.create_topic("t", partitions=1)
            await client.publish("t", b"before")
            async with (
                client.subscribe("t", start="earliest") as reader,
                client.group("g").consume("t", ack="auto") as consumer,
            ):
                await until_read(reader, {b"before"})
                await until_read(consumer, {b"before"})
                await other.alter_topic("t", partitions=2)
                assert (await client.publish("t", b"asked for", partition=1)).partition == 1
                await other.alter_topic("t", partitions=3)
                async with client.transaction() as transaction:
                    await transaction.publish("t", b"staged", partition=2)
                await other.alter_topic("t", partitions=4)
                while (await client.publish("t", b"in turn")).partition != 3:
                    pass
                values = {b"asked for", b"staged", b"in turn"}
                await until_read(reader, values)
                await until_read(consumer, values)

    asyncio.run(main())
