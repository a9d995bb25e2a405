"""A topic is given partitions under load: of no key is a record read before an earlier one."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from angarium.client import Client
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.client import Record

DEADLINE_S = 60.0
KEYS = 16
ADDITIONS = (3, 4, 8)


class Seen:
    """What one reader has seen of each key; a record may come again, but none before its turn."""

    def __init__(self) -> None:
        self.latest: defaultdict[bytes, int] = defaultdict(lambda: -1)
        self.records = 0

    def take(self, record: Record) -> None:
        """Note a record; raises if an earlier one of its key is missing."""
        assert record.key is not None
        assert record.value is not None
        number = int(record.value)
        assert number <= self.latest[record.key] + 1, f"{record.key!r}: {number} came too early"
        if number == self.latest[record.key] + 1:
            self.latest[record.key] = number
            self.records += 1


async def publish_all(client: Client, keys: list[bytes], stop: asyncio.Event) -> dict[bytes, int]:
    """Publish numbered records of some keys until told to stop; return how many of each."""
    counts = dict.fromkeys(keys, 0)
    while not stop.is_set():
        for key in keys:
            # Several of one key are on their way at a time: what is refused must not overtake.
            client.publish_nowait("t", str(counts[key]).encode(), key=key)
            counts[key] += 1
        await asyncio.sleep(0.03)
    await client.flush()
    return counts


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
