"""A subscription of the profile: history after the given times, then what comes, in one row.

History is in order, exactly (`history`). What comes live from several partitions, which have
leaders and clocks of their own, waits for `WINDOW_S` to be overtaken by earlier messages that
become readable later: as long as partitions are no further apart than that, the row is in order.
What is later still is delivered when it comes; nothing is held back or lost for the sake of order.
A subscription to a single partition waits for nothing.

Partitions that a topic is given are taken on (`WholeTopics`). Where clocks contradict the fences of
that addition, the fences are right: what lies behind them comes after what lies before.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from angarium.api import Start, StartAt
from angarium.doors import timing
from angarium.doors.feeds.following import EARLIEST, Whole
from angarium.doors.feeds.whole import WholeTopics
from angarium.errors import InvalidArgument, LimitExceeded, NotFound
from angarium_compat.geo.history import before, history
from angarium_compat.geo.sources import Followed
from angarium_compat.subscribing import found

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from angarium.api import Broker, Delivery, Subscription
    from angarium_compat.geo.publishing import GeoPublishing
    from angarium_compat.geo.sources import Sent

WINDOW_S: Final = 0.01
"""How long live messages of several partitions wait for earlier ones. A message waits for twice
this at the most."""

CAUGHT_UP_S: Final = 0.05
"""A row of history that took no longer than this leaves little behind it: the rest comes live. So
does what comes after a row without a message, for to find the ends of many topics alone takes
longer."""

TOPICS_MAX: Final = 1_000
"""Topics in one subscription. More are refused."""

DELIVERIES_MAX: Final = 16
"""Deliveries that wait to be put in order. At the bound nothing more is read until the client has
taken some: a slow client slows down nobody but itself."""

AHEAD_US_MAX: Final = 3_600 * 1_000_000
"""How far a message's timestamp may be ahead of this node's clock. A client that names a later one
has seen no such message, and gets what comes from now on."""


async def begun(broker: Broker, publishing: GeoPublishing, topics: Mapping[str, int]) -> Feed:
    """Begin; a topic that is not there is made, as the profile's broker would."""
    if not topics:
        raise InvalidArgument("a subscription names at least one topic")
    if len(topics) > TOPICS_MAX:
        raise LimitExceeded("topics_max", f"a subscription has up to {TOPICS_MAX} topics")
    topics_followed: list[Followed] = []
    latest_us = timing.now() + AHEAD_US_MAX
    for topic, after_us in sorted(topics.items()):
        if not topic:
            raise InvalidArgument("topic is required")
        info, is_new = await found(broker, topic)
        # A topic that is new has no messages that the client could have seen.
        seen_us = 0 if is_new else max(after_us, 0)
        followed = Followed(info, len(topics_followed), publishing)
        after = seen_us if seen_us <= latest_us else None
        for one in info.partitions:
            source = await followed.source(one.number, after_us=after)
            await source.find_start(broker)
        topics_followed.append(followed)
    return Feed(broker, topics_followed)


class Feed:
    """What comes to one subscriber."""

    def __init__(self, broker: Broker, topics: list[Followed]) -> None:
        self._broker = broker
        self._topics = {one.topic: one for one in topics}
        self._whole = WholeTopics(broker)

    async def messages(self) -> AsyncGenerator[Sent, None]:
        """Yield everything after the times that were seen, and then what comes, without end."""
        while True:
            began = time.monotonic()
            is_empty = True
            async with aclosing(history(self._broker, list(self._topics.values()))) as row:
                async for one in row:
                    is_empty = False
                    yield one
            if is_empty or time.monotonic() - began < CAUGHT_UP_S:
                break
        try:
            await self._whole.want(
                [
                    Whole(
                        one.topic,
                        EARLIEST,
                        {at: Start(StartAt.OFFSET, of.next) for at, of in one.sources.items()},
                    )
                    for one in self._topics.values()
                ]
            )
            async with aclosing(self._in_order(self._whole)) as row:
                async for one in row:
                    yield one
        finally:
            await self._whole.close()

    @property
    def _waits(self) -> bool:
        """Whether there is anything that could be overtaken."""
        return sum(len(one.sources) for one in self._topics.values()) > 1

    async def _in_order(self, subscription: Subscription) -> AsyncGenerator[Sent, None]:
        arrived: asyncio.Queue[list[Sent]] = asyncio.Queue(DELIVERIES_MAX)

        async def take() -> None:
            async for delivery in subscription:
                await arrived.put(await self._read(delivery))

        taking = asyncio.create_task(take())
        held: list[Sent] = []
        try:
            while True:
                if not held:
                    held += await _next(arrived, taking)
                _drain(arrived, held)
                # Everything up to here has waited its time when the window ends.
                waited_us = max((one.time_us for one in held), default=0)
                if self._waits:
                    await asyncio.sleep(WINDOW_S)
                    _drain(arrived, held)
                held.sort()
                count = next(
                    (at for at, one in enumerate(held) if one.time_us > waited_us), len(held)
                )
                ready, held = held[:count], held[count:]
                for one, following in pairwise(ready):
                    yield before(one, following)
                for one in ready[-1:]:
                    yield one
        finally:
            taking.cancel()
            await asyncio.wait((taking,))

    async def _read(self, delivery: Delivery) -> list[Sent]:
        if delivery.live:
            return []  # stored nowhere, so it has no time to resume after
        topic = self._topics[delivery.topic]
        source = await topic.source(delivery.partition)
        topic.go_on_to(self._whole.following(delivery.topic).opened)
        return list(
            source.read(
                delivery.batches, from_offset=delivery.from_offset, expired=delivery.expired
            )
        )


def _drain(arrived: asyncio.Queue[list[Sent]], held: list[Sent]) -> None:
    while not arrived.empty():
        held += arrived.get_nowait()


async def _next(arrived: asyncio.Queue[list[Sent]], taking: asyncio.Task[None]) -> list[Sent]:
    """Return what comes next; raises what broke the subscription."""
    if not arrived.empty():
        return arrived.get_nowait()
    getting = asyncio.create_task(arrived.get())
    try:
        await asyncio.wait((getting, taking), return_when=asyncio.FIRST_COMPLETED)
        if getting.done():
            return getting.result()
        taking.result()
        raise NotFound("the subscription has ended")
    finally:
        getting.cancel()
