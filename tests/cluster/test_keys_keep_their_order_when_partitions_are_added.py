"""A topic is given partitions under load: of no key is a record read before an earlier one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.cluster.keyed_order import Seen, publish_all

from angarium.client import Client
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from pathlib import Path

DEADLINE_S = 60.0
KEYS = 16
ADDITIONS = (3, 4, 8)


@pytest.mark.parametrize("kind", ["queue", "key", "stream"])
def test_no_key_is_read_out_of_order_by_groups(kind: str, tmp_path: Path) -> None:
    _run(tmp_path, kind)


def _run(tmp_path: Path, kind: str) -> None:
    async def main() -> None:
        stop = asyncio.Event()
        async with (
            asyncio.timeout(DEADLINE_S),
            in_process_broker(tmp_path) as broker,
            Client(*broker.addresses) as one,
            Client(*broker.addresses) as two,
            Client(*broker.addresses) as reading,
        ):
            await one.create_topic("t", partitions=2)
            keys = [f"key-{number}".encode() for number in range(KEYS)]
            plain, grouped = Seen(), Seen()

            async def read_plainly() -> None:
                async with reading.subscribe("t", start="earliest") as subscription:
                    async for record in subscription:
                        plain.take(record)

            async def read_in_a_group() -> None:
                group = reading.group("g", kind=kind)
                async with group.consume("t") as consumer:
                    async for record in consumer:
                        grouped.take(record)
                        record.ack_nowait()

            async with asyncio.TaskGroup() as tasks:
                publishing = [
                    tasks.create_task(publish_all(one, keys[::2], stop)),
                    tasks.create_task(publish_all(two, keys[1::2], stop)),
                ]
                readers = [
                    tasks.create_task(read_plainly()),
                    tasks.create_task(read_in_a_group()),
                ]
                for partitions in ADDITIONS:
                    await asyncio.sleep(0.7)
                    await reading.alter_topic("t", partitions=partitions)
                await asyncio.sleep(0.7)
                stop.set()
                total = sum([sum((await task).values()) for task in publishing])
                while plain.records < total or grouped.records < total:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
                for task in readers:
                    task.cancel()
            info = await reading.describe_topic("t")
            assert info.layouts == (2, *ADDITIONS)
            assert info.layout == len(ADDITIONS)
            assert all(one.end_offset for one in info.partitions)

    asyncio.run(main())
