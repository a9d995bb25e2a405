"""A broker in the test's own process, and what consumers of groups do with it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tests.on_a_loop import SOON_S

from angarium.api import ConsumeRequest, PublishRequest, Settlement, TopicConfig, Verb
from angarium.batch import Batch
from angarium.batch.builder import BatchBuilder
from angarium.errors import LimitExceeded, NotLeader
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from angarium.api import Handed, Settled
    from angarium.service.broker import Service
    from angarium.service.groups.consumption import LocalConsumption

WAIT_S = SOON_S
"""How long anything here may take on a busy machine."""


@asynccontextmanager
async def services(folder: Path, *, nodes: int = 1) -> AsyncIterator[list[Service]]:
    """Run nodes, and yield what each of them serves."""
    async with in_process_broker(folder, nodes=nodes) as broker:
        yield [service for service in broker.services if service is not None]


@asynccontextmanager
async def one_topic(
    folder: Path, *, partitions: int = 1, config: TopicConfig | None = None
) -> AsyncIterator[Service]:
    """Run one node with the topic `orders`."""
    async with services(folder) as (service,):
        await service.create_topic("orders", partitions=partitions, config=config or TopicConfig())
        yield service


async def publish(
    service: Service,
    values: Sequence[bytes],
    *,
    topic: str = "orders",
    partition: int = 0,
    key: bytes | None = None,
) -> None:
    """Store one batch."""
    builder = BatchBuilder()
    for value in values:
        builder.add(value, key=key)
    request = PublishRequest(topic=topic, partition=partition, batches=(builder.build(),))
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                (ack,) = await service.publish(request)
            except (NotLeader, LimitExceeded) as error:  # definite: nothing was stored
                if not error.retriable:
                    raise
                await asyncio.sleep(0.01)
                continue
            assert not ack.code, ack.message
            return


async def consume(service: Service, group: str = "workers", **more: object) -> LocalConsumption:
    """Take part in a group that consumes `orders`."""
    topics = more.pop("topics", ("orders",))
    request = ConsumeRequest(group=group, topics=topics, **more)  # type: ignore[arg-type]
    return await service.groups.consume(request)


async def next_of(consumption: LocalConsumption) -> Handed:
    """Return the next delivery, which comes soon."""
    async with asyncio.timeout(WAIT_S):
        return await anext(consumption)


async def collect(consumption: LocalConsumption, count: int) -> list[Handed]:
    """Return deliveries of so many records."""
    found: list[Handed] = []
    while sum(len(offsets(one)) for one in found) < count:
        found.append(await next_of(consumption))
    return found


async def is_quiet(consumption: LocalConsumption, seconds: float = 0.3) -> bool:
    """Tell whether nothing comes for a while: what must not come is looked for this long."""
    try:
        async with asyncio.timeout(seconds):
            await anext(consumption)
    except TimeoutError:
        return True
    return False


def offsets(handed: Handed) -> list[int]:
    """Return the offsets of the records handed over."""
    bounds = handed.ranges
    pairs = zip(bounds[::2], bounds[1::2], strict=True)
    return [offset for start, end in pairs for offset in range(start, end)]


def values(handed: Handed) -> list[bytes | None]:
    """Return the values of the records handed over."""
    wanted = set(offsets(handed))
    return [
        record.value
        for batch in handed.batches
        for record in Batch.trusted(batch)
        if record.offset in wanted
    ]


def said(handed: Handed, verb: Verb = Verb.ACK, **more: object) -> Settlement:
    """Return a settlement of everything in a delivery."""
    return Settlement(handed.topic, handed.partition, verb, handed.ranges, **more)  # type: ignore[arg-type]


def about(*found: int, verb: Verb = Verb.ACK, partition: int = 0, **more: object) -> Settlement:
    """Return a settlement of single offsets."""
    ranges = tuple(bound for offset in sorted(found) for bound in (offset, offset + 1))
    return Settlement("orders", partition, verb, ranges, **more)  # type: ignore[arg-type]


async def settle(consumption: LocalConsumption, *settlements: Settlement) -> tuple[Settled, ...]:
    """Settle, which is answered soon."""
    async with asyncio.timeout(WAIT_S):
        return await consumption.settle(settlements)


async def floor_of(service: Service, group: str = "workers", partition: int = 0) -> int:
    """Return where a group stands."""
    info = await service.describe_group(group)
    return next(one.floor for one in info.positions if one.partition == partition)
