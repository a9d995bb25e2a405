"""SUBSCRIBE: deliveries outwards, wishes inwards, on one stream."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

from angarium.api import Interest
from angarium.errors import AngariumError, LayoutChanged
from angarium.wire.operations import Delivered, Drop, Ended, Want, Wants, Wish

if TYPE_CHECKING:
    from angarium.api import Broker, Subscription
    from angarium.wire import Stream

Numbers: TypeAlias = dict[tuple[str, int], int]
"""Under which number the client wants each partition, by topic and partition."""


async def subscribe(stream: Stream, broker: Broker) -> None:
    """Serve one subscriber until it goes, or its subscription breaks."""
    numbers: Numbers = {}
    wants = stream.opening.read(Wants).wants
    subscription = await broker.subscribe([_interest(want, numbers) for want in wants])
    wishes = asyncio.create_task(_take_wishes(stream, subscription, numbers))
    try:
        async for delivery in subscription:
            # None: dropped while this was on its way.
            number = numbers.get((delivery.topic, delivery.partition))
            if number is not None and delivery.fenced:
                del numbers[delivery.topic, delivery.partition]
                await stream.send(Ended(number, LayoutChanged.code, "a fence was reached"))
            elif number is not None and delivery.failure is not None:
                del numbers[delivery.topic, delivery.partition]
                await stream.send(Ended(number, delivery.failure.code, str(delivery.failure)))
            elif number is not None:
                told = Delivered(
                    number,
                    delivery.from_offset,
                    delivery.live,
                    delivery.expired,
                    delivery.node,
                    delivery.region,
                    delivery.staleness_ms,
                )
                await stream.send(told, delivery.batches)
    finally:
        wishes.cancel()
        await subscription.close()


async def _take_wishes(stream: Stream, subscription: Subscription, numbers: Numbers) -> None:
    try:
        async for frame in stream:
            wish: Wish = frame.read(Wish)  # type: ignore[arg-type]
            if isinstance(wish, Want):
                await subscription.add([_interest(wish, numbers)])
            elif isinstance(wish, Drop):
                for wanted in [one for one, number in numbers.items() if number == wish.number]:
                    del numbers[wanted]
                    await subscription.drop(*wanted)
    except AngariumError as error:
        stream.cancel(error)
    await subscription.close()


def _interest(want: Want, numbers: Numbers) -> Interest:
    numbers[want.topic, want.partition] = want.number
    return Interest(
        topic=want.topic,
        partition=want.partition,
        start=want.start,
        layout=want.layout,
        max_staleness_ms=want.max_staleness_ms,
        at_least=want.at_least,
        may_fail_alone=True,
    )
