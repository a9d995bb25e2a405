"""Reading a stored topic from its beginning, as fast as it goes."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.bench.drivers.port import Driver
    from angarium.client import Client
    from angarium.ids import TopicPartition


async def seconds_to_read(
    client: Client, topics: Sequence[str], count: int, *, as_records: bool
) -> float:
    """Return how long it takes to read `count` records of `topics`.

    As batches, nothing is unpacked but checksums are checked; as records, a Python object is made
    of each.
    """
    left = count
    started = time.perf_counter()
    async with client.subscribe(topics, start="earliest") as subscription:
        async for batch in subscription.batches():
            if as_records:
                deque(batch, maxlen=0)  # makes every record, keeps none
            left -= len(batch)
            if left <= 0:
                break
    return time.perf_counter() - started


async def seconds_to_receive(
    driver: Driver, partitions: Sequence[TopicPartition], count: int
) -> float:
    """Return how long it takes to read `count` records through a protocol's own subscriber."""
    left = count
    started = time.perf_counter()
    subscriber = await driver.subscriber(partitions, from_start=True)
    try:
        while left > 0 and (received := await subscriber.receive()) is not None:
            left -= len(received.values)
    finally:
        await subscriber.close()
    return time.perf_counter() - started
