"""Publishers of numbered records by key, and a checker of the order in which a reader gets them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angarium.client import Client, Record


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
