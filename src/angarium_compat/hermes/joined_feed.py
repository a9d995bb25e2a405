"""Two feeds of one reader, read together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from angarium.doors.feeds.feed import Feed, Portion

WAITING_MAX: Final = 16
"""Portions that wait to be taken. At the bound no more is read."""


class JoinedFeed:
    """What comes to one reader from two feeds; acknowledgements go to the first."""

    def __init__(self, first: Feed, second: Feed) -> None:
        self._first = first
        self._second = second

    async def __aiter__(self) -> AsyncGenerator[Portion, None]:
        arrived: asyncio.Queue[Portion | Exception | None] = asyncio.Queue(WAITING_MAX)

        async def take(feed: Feed) -> None:
            try:
                async for portion in feed:
                    await arrived.put(portion)
                await arrived.put(None)
            except Exception as error:  # told to the reader of the queue
                await arrived.put(error)

        tasks = [asyncio.create_task(take(one)) for one in (self._first, self._second)]
        try:
            while (portion := await arrived.get()) is not None:
                if isinstance(portion, Exception):
                    raise portion
                yield portion
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def acknowledge(self, topic: str, partition: int, ranges: tuple[int, ...]) -> None:
        await self._first.acknowledge(topic, partition, ranges)

    async def close(self, *, lost: bool = False) -> None:
        try:
            await self._second.close()
        finally:
            await self._first.close(lost=lost)
