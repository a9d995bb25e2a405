"""What comes to one reader: a topic's records, what a member of a group is lent, or both."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from angarium.doors.feeds.acknowledging import Acknowledgements
from angarium.doors.feeds.batch_records import delivered, lent, portions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from angarium.api import Consumption, Subscription
    from angarium.batch import Record

WAITING_MAX: Final = 16
"""Portions of feeds that come together which wait to be taken. At the bound no more is read."""


class Portion(NamedTuple):
    """Records of one partition that go out together."""

    topic: str
    partition: int
    records: list[Record]
    live: bool = False
    """Whether they pass in PERFORMANCE mode: they have no offsets."""
    attempt: int = 1
    lease_ms: int = 0
    """Of a group: which attempt this is, and how long they are lent."""


class Feed(Protocol):
    """What comes to one reader, without end."""

    def __aiter__(self) -> AsyncIterator[Portion]:
        """Yield what comes; raises what broke it."""

    async def acknowledge(self, topic: str, partition: int, ranges: tuple[int, ...]) -> None:
        """Settle records; outside of a group there is nothing to settle."""

    async def close(self, *, lost: bool = False) -> None:
        """End it; a member leaves its group, in good order unless it was `lost`."""


class TopicFeed:
    """The records of a subscription."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    async def __aiter__(self) -> AsyncIterator[Portion]:
        async for delivery in self._subscription:
            for _, records in delivered(delivery):
                for some in portions(records):
                    yield Portion(delivery.topic, delivery.partition, some, delivery.live)

    async def acknowledge(self, topic: str, partition: int, ranges: tuple[int, ...]) -> None:
        del topic, partition, ranges  # nothing is kept outside of a group

    async def close(self, *, lost: bool = False) -> None:
        del lost
        await self._subscription.close()


class GroupFeed:
    """What one member of a group is lent."""

    def __init__(self, consumption: Consumption) -> None:
        self.consumption = consumption
        self._acknowledgements = Acknowledgements(consumption)

    async def __aiter__(self) -> AsyncIterator[Portion]:
        async for one in self.consumption:
            for some in portions(lent(one)):
                yield Portion(one.topic, one.partition, some, False, one.attempt, one.lease_ms)

    async def acknowledge(self, topic: str, partition: int, ranges: tuple[int, ...]) -> None:
        await self._acknowledgements.say(topic, partition, ranges)

    async def close(self, *, lost: bool = False) -> None:
        """Leave the group, once what was acknowledged is."""
        try:
            await self._acknowledgements.told()
        finally:
            await self.consumption.close(lost=lost)


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
