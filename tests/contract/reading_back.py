"""Publishing to a broker, and reading what came of it: how the contract's suite speaks."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tests.contract.brokers import SOON_S

from angarium.api import FetchRequest, PublishRequest
from angarium.batch import Batch, encode
from angarium.errors import NotLeader
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from angarium.api import Ack, Broker, Delivery, FetchResult, Interest, Subscription
    from angarium.ids import Buffer
    from angarium.modes import DeliveryMode


def batch_of(*values: bytes) -> bytes:
    return bytes(encode(list(values)))


async def published(
    broker: Broker,
    topic: str,
    *batches: Buffer,
    partition: int = 0,
    mode: DeliveryMode | None = None,
) -> tuple[Ack, ...]:
    request = PublishRequest(topic=topic, partition=partition, batches=batches, mode=mode)
    async with asyncio.timeout(SOON_S):
        while True:
            try:
                return await broker.publish(request)
            except NotLeader:  # definite: nothing was stored, and whoever comes again is served
                await asyncio.sleep(0.01)


async def stored(broker: Broker, topic: str, *values: bytes, partition: int = 0) -> Ack:
    """Store one batch of these values."""
    (ack,) = await published(broker, topic, batch_of(*values), partition=partition)
    assert not ack.code, ack.message
    return ack


async def fetched(
    broker: Broker,
    topic: str,
    offset: int = 0,
    *,
    partition: int = 0,
    wait_ms: int = 0,
    bytes_max: int = 1 << 20,
    fresh: bool = False,
) -> FetchResult:
    return await broker.fetch(
        FetchRequest(
            topic=topic,
            partition=partition,
            offset=Offset(offset),
            wait_ms=wait_ms,
            bytes_max=bytes_max,
            fresh=fresh,
        )
    )


async def history(broker: Broker, topic: str) -> list[bytes | None]:
    """Return everything that was stored in a topic's first partition."""
    result = await fetched(broker, topic, fresh=True)
    return values_in(result.batches)


def values_in(batches: Sequence[Buffer], *, from_offset: int = 0) -> list[bytes | None]:
    return [
        record.value
        for one in batches
        for record in Batch.parse(one)
        if record.offset is None or record.offset >= from_offset
    ]


class Taken:
    """A subscription, read by a test."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self._deliveries = aiter(subscription)

    async def next(self) -> Delivery:
        async with asyncio.timeout(SOON_S):
            return await anext(self._deliveries)

    async def values(self, number: int) -> list[bytes | None]:
        """Return the next records' values, exactly so many."""
        found: list[bytes | None] = []
        while len(found) < number:
            delivery = await self.next()
            found += values_in(delivery.batches, from_offset=delivery.from_offset)
        assert len(found) == number, found
        return found

    async def is_over(self) -> bool:
        async with asyncio.timeout(SOON_S):
            return await anext(self._deliveries, None) is None


@asynccontextmanager
async def subscribed(broker: Broker, *interests: Interest) -> AsyncIterator[Taken]:
    subscription = await broker.subscribe(interests)
    try:
        yield Taken(subscription)
    finally:
        await subscription.close()
