"""Read, transform, write: records of a group acknowledged in the transaction that uses them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.delivery.on_nodes import on_nodes

from angarium import Client
from angarium.testing.cluster import eventually

if TYPE_CHECKING:
    from angarium.testing.broker import InProcessBroker

RECORDS = 300


@on_nodes(3)
async def test_what_a_group_consumes_is_settled_with_what_is_published(
    broker: InProcessBroker,
) -> None:
    async with Client(*broker.addresses) as client:
        await client.create_topic("input", partitions=2)
        await client.create_topic("output", partitions=2)
        expected = [f"{number}".encode() for number in range(RECORDS)]
        await client.publish_batch("input", expected, keys=expected)
        done: set[bytes] = set()
        attempts = 0

        async def work(name: str) -> None:
            nonlocal attempts
            async with (
                Client(*broker.addresses, producer=name) as own,
                own.group("transfer").consume("input") as consumer,
            ):
                async for record in consumer:
                    attempts += 1
                    value = record.value or b""
                    try:
                        async with own.transaction() as tx:
                            await tx.publish("output", b"image of " + value, key=record.key)
                            tx.ack(record)
                            if attempts % 50 == 0:
                                raise ZeroDivisionError
                    except ZeroDivisionError:
                        await record.nack(delay=0)
                        continue
                    done.add(value)

        async def is_done() -> bool:
            for worker in workers:
                if worker.done():
                    worker.result()
            return len(done) == RECORDS and (await client.describe_group("transfer")).lag == 0

        workers = [asyncio.create_task(work(f"worker {one}")) for one in range(3)]
        try:
            await eventually(is_done, within_s=90.0, what="everything is moved and settled")
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
        found = [record.value or b"" async for record in client.read("output")]
        assert sorted(found) == sorted(b"image of " + value for value in expected)
        assert attempts > RECORDS
