"""A subscription to whole topics: it goes on with partitions that are added, in the order of keys.

Every feed of a door that is not of a single partition reads through this. A node stops each
partition at the fence of a new layout; when all older ones have come to theirs, they are asked for
again, together with the new ones (docs/decisions/0025). Interests that name a partition go through
as they are.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.api import Start, StartAt
from angarium.doors.feeds.following import EARLIEST, Following, Whole
from angarium.doors.feeds.positions import found_start
from angarium.errors import AngariumError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from typing import TypeAlias

    from angarium.api import Broker, Delivery, Interest, Subscription

    Opening: TypeAlias = Callable[[Sequence[Interest]], Awaitable[Subscription]]

HELD_SECONDS: Final = 0.1
"""How often it is looked whether a partition that waits at a gate may go on."""

LOOK_SECONDS: Final = 5.0
"""How often a topic is looked at for partitions that were added without anything else coming."""


async def whole_topic(broker: Broker, wish: Whole) -> WholeTopics:
    """Subscribe to a topic with whatever partitions it has and will have; raises `NotFound`."""
    subscription = WholeTopics(broker)
    await subscription.want([wish])
    return subscription


class WholeTopics:
    """Topics that are followed whole, and partitions beside them."""

    def __init__(self, broker: Broker, opening: Opening | None = None) -> None:
        """Prepare; `opening` makes the subscription behind it, the broker's own if not given."""
        self._broker = broker
        self._opening = broker.subscribe if opening is None else opening
        self._inner: Subscription | None = None
        self._topics: dict[str, Following] = {}
        self._changing = asyncio.Lock()
        """Held while what is wanted changes."""
        self._news = asyncio.Event()
        self._steering: asyncio.Task[None] | None = None
        self._looked_at = time.monotonic()
        self._error: AngariumError | None = None

    def following(self, topic: str) -> Following:
        """Return how far it is in a topic that it follows."""
        return self._topics[topic]

    async def want(self, wholes: Sequence[Whole], named: Sequence[Interest] = ()) -> None:
        """Deliver these topics and partitions, too. Nothing is missed once it has returned."""
        begun = {one.topic: await self._begun(one) for one in wholes}
        async with self._changing:
            await self._want(begun, named)
        if self._topics and self._steering is None:
            self._steering = asyncio.get_running_loop().create_task(self._steer())

    async def _want(self, begun: dict[str, Following], named: Sequence[Interest]) -> None:
        for one in named:
            following = begun.get(one.topic) or self._topics.get(one.topic)
            if following is not None:
                # Who names a partition has its order, and no other.
                following.leave(one.partition)
        for topic, following in begun.items():
            await self._drop_topic(topic)
            self._topics[topic] = following
        due = [one for following in begun.values() for one in following.due()]
        await self._deliver([*due, *named])

    async def add(self, interests: Sequence[Interest]) -> None:
        """Deliver these partitions, too."""
        await self.want((), interests)

    async def drop(self, topic: str, partition: int) -> None:
        """Deliver nothing more of a partition."""
        async with self._changing:
            following = self._topics.get(topic)
            if following is not None:
                following.leave(partition)
                self._news.set()
            if self._inner is not None:
                await self._inner.drop(topic, partition)

    async def drop_topic(self, topic: str) -> None:
        """Deliver nothing more of a topic that is followed."""
        async with self._changing:
            await self._drop_topic(topic)

    async def _drop_topic(self, topic: str) -> None:
        following = self._topics.pop(topic, None)
        if following is not None and self._inner is not None:
            for partition in filter(following.has, following.starts):
                await self._inner.drop(topic, partition)

    async def look(self) -> None:
        """Find out at once whether topics have more partitions."""
        self._looked_at = time.monotonic()
        for following in list(self._topics.values()):
            following.learn(await self._broker.describe_topic(following.wish.topic))
            await self._begin(following, lambda _: EARLIEST)

    async def close(self) -> None:
        """End it."""
        if self._steering is not None:
            self._steering.cancel()
            await asyncio.wait((self._steering,))
        if self._inner is not None:
            await self._inner.close()

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        """Yield what comes, in the order of keys; raises what broke it."""
        assert self._inner is not None, "something is wanted first"
        async for delivery in self._inner:
            following = self._topics.get(delivery.topic)
            if delivery.live or following is None or not following.has(delivery.partition):
                yield delivery
            elif delivery.fenced:
                following.stopped(delivery.partition)
                self._news.set()
            else:
                new = following.new_in(delivery)
                if new is not None:
                    yield new
        if self._error is not None:
            raise self._error

    # --- going on -------------------------------------------------------------------------------

    async def _begun(self, wish: Whole) -> Following:
        following = Following(wish, await self._broker.describe_topic(wish.topic))
        await self._begin(following, wish.start_in)
        return following

    async def _begin(self, following: Following, start_in: Callable[[int], Start]) -> None:
        topic = following.wish.topic
        for number in following.unbegun:
            start = start_in(number)
            at: int = start.value
            if start.at is not StartAt.OFFSET:
                at = await found_start(self._broker, topic, number, start)
            if number in following.unbegun:  # nobody was faster
                following.begin(number, at)

    async def _deliver(self, interests: Sequence[Interest]) -> None:
        if self._inner is None:
            self._inner = await self._opening(interests)
        elif interests:
            await self._inner.add(interests)

    async def _steer(self) -> None:
        """Go on behind fences as gates open, until cancelled."""
        try:
            while True:
                is_held = any(one.is_held for one in self._topics.values())
                with suppress(TimeoutError):
                    async with asyncio.timeout(HELD_SECONDS if is_held else LOOK_SECONDS):
                        await self._news.wait()
                self._news.clear()
                await self._look_if_need_be()
                await self._go_on()
        except AngariumError as error:
            self._error = error
            assert self._inner is not None
            await self._inner.close()

    async def _look_if_need_be(self) -> None:
        topics = self._topics.values()
        is_time = time.monotonic() - self._looked_at >= LOOK_SECONDS
        is_held = any(one.is_held for one in topics)
        if is_time or any(one.lacks_news for one in topics):
            try:
                await self.look()
            except AngariumError as error:
                # Where nothing waits it is no matter; the subscription itself tells of an end.
                if is_held and not error.retriable:
                    raise

    async def _go_on(self) -> None:
        async with self._changing:
            due = [one for following in self._topics.values() for one in following.due()]
            await self._deliver(due)
