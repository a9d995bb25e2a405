"""A fake cluster and a client of it, ready to use."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.component.client.fake_broker import fake_cluster

from angarium.client import Client, ClientSettings
from angarium.retrying import Backoff

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.component.client.fake_broker import Cluster

    from angarium.client import ReceivedBatch, Record, Subscription

QUICK = Backoff(first_s=0.001, longest_s=0.01)


def settings(**changes: Any) -> ClientSettings:
    """Settings with short pauses, so that tests need not wait."""
    return ClientSettings(
        **{
            "backoff": QUICK,
            "publish_timeout_s": 30.0,
            "request_timeout_s": 20.0,
            "discover_s": 0.05,
            **changes,
        }
    )


@asynccontextmanager
async def talking(
    *, nodes: int = 1, partitions: int = 1, producer: str | None = None, **changes: Any
) -> AsyncIterator[tuple[Cluster, Client]]:
    """A cluster with a topic "t", and a client connected to it."""
    async with fake_cluster(nodes) as cluster:
        cluster.add_topic("t", partitions=partitions)
        async with Client(
            *cluster.addresses, settings=settings(**changes), producer=producer
        ) as client:
            yield cluster, client


async def taken(subscription: Subscription, count: int, *, within_s: float = 60.0) -> list[Record]:
    """Return the next `count` records."""
    records: list[Record] = []
    async with asyncio.timeout(within_s):
        async for record in subscription:
            records.append(record)
            if len(records) == count:
                break
    return records


async def batches_taken(
    subscription: Subscription, records: int, *, within_s: float = 60.0
) -> list[ReceivedBatch]:
    """Return the next batches, until they hold so many records."""
    batches: list[ReceivedBatch] = []
    async with asyncio.timeout(within_s):
        async for batch in subscription.batches():
            batches.append(batch)
            if sum(map(len, batches)) >= records:
                break
    return batches
