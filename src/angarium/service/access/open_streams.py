"""Subscriptions and consumptions of one principal: ended when it may not read any more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from angarium.api.access import Action, ResourceKind
from angarium.service.access.rules import RULES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence

    from angarium.api import (
        Consumption,
        Delivery,
        GroupConfig,
        Handed,
        Interest,
        Settled,
        Settlement,
        Subscription,
    )
    from angarium.errors import AngariumError
    from angarium.kinds import GroupKind
    from angarium.service.access.attending import Question
    from angarium.service.access.permitted import PermittedBroker


T = TypeVar("T")


def reading(topics: Sequence[str]) -> list[Question]:
    """Return what a reader of topics has to be allowed as long as it reads."""
    return [(Action.TOPIC_READ, ResourceKind.TOPIC, topic) for topic in dict.fromkeys(topics)]


async def while_permitted(
    broker: PermittedBroker, waiting: Coroutine[None, None, T], topic: str
) -> T:
    """Return what somebody waits for who reads a topic; raises why it may not any more."""
    task = asyncio.get_running_loop().create_task(waiting)
    ended: list[AngariumError] = []

    def end(why: AngariumError) -> None:
        ended.append(why)
        task.cancel()

    leave = broker.attend(end, reading([topic]))
    try:
        return await task
    except asyncio.CancelledError:
        if ended:
            raise ended[0] from None
        raise
    finally:
        leave()


class PermittedSubscription:
    """A subscription whose topics are asked for, and asked for again when the policy changes."""

    def __init__(
        self,
        inner: Subscription,
        broker: PermittedBroker,
        partitions: Iterable[tuple[str, int]],
    ) -> None:
        self._inner = inner
        self._broker = broker
        self._error: AngariumError | None = None
        self._closing: asyncio.Task[None] | None = None
        self._wanted: dict[str, set[int]] = {}
        self._leaves: dict[str, Callable[[], None]] = {}
        """By topic: what is not wanted any more does not end the rest."""
        self._attend(partitions)

    def _attend(self, partitions: Iterable[tuple[str, int]]) -> None:
        for topic, number in partitions:
            self._wanted.setdefault(topic, set()).add(number)
            if topic not in self._leaves:
                self._leaves[topic] = self._broker.attend(self._end, reading([topic]))

    def _end(self, why: AngariumError) -> None:
        if self._error is None:
            self._error = why
            self._closing = asyncio.get_running_loop().create_task(self._inner.close())

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        async for delivery in self._inner:
            if self._error is not None:
                break
            # Its own quota may come and go while a subscription is open.
            if self._broker.toll is not None:
                self._broker.toll.read(sum(map(len, delivery.batches)))
            yield delivery
            if self._broker.toll is not None:
                await self._broker.toll.until_paid()
        if self._error is not None:
            raise self._error

    async def add(self, interests: Sequence[Interest]) -> None:
        """Deliver these partitions, too."""
        given = {"interests": interests}
        self._broker.check_call(RULES["subscribe"], given, method="subscribe")
        self._broker.note_call("subscribe", RULES["subscribe"], given)
        await self._inner.add(interests)
        self._attend((one.topic, one.partition) for one in interests)

    async def drop(self, topic: str, partition: int) -> None:
        """Deliver nothing more of a partition."""
        await self._inner.drop(topic, partition)
        wanted = self._wanted.get(topic, set())
        wanted.discard(partition)
        if not wanted and topic in self._leaves:
            self._leaves.pop(topic)()

    async def close(self) -> None:
        """End it."""
        for leave in self._leaves.values():
            leave()
        await self._inner.close()


class PermittedConsumption:
    """A member's part in a group, ended when it may not take part any more."""

    def __init__(self, inner: Consumption, broker: PermittedBroker, asked: list[Question]) -> None:
        self._inner = inner
        self._broker = broker
        self._error: AngariumError | None = None
        self._closing: asyncio.Task[None] | None = None
        self._leave = broker.attend(self._end, asked)

    def _end(self, why: AngariumError) -> None:
        self._error = why
        self._closing = asyncio.get_running_loop().create_task(self._inner.close())

    @property
    def member(self) -> str:
        """Under which name it takes part."""
        return self._inner.member

    @property
    def kind(self) -> GroupKind:
        """How the group consumes."""
        return self._inner.kind

    @property
    def config(self) -> GroupConfig:
        """The group's settings."""
        return self._inner.config

    async def __aiter__(self) -> AsyncIterator[Handed]:
        async for handed in self._inner:
            if self._error is not None:
                break
            if self._broker.toll is not None:
                self._broker.toll.read(sum(map(len, handed.batches)))
            yield handed
            if self._broker.toll is not None:
                await self._broker.toll.until_paid()
        if self._error is not None:
            raise self._error

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        """Settle records."""
        if self._error is not None:
            raise self._error
        return await self._inner.settle(settlements)

    async def set_credit(self, credit: int) -> None:
        """Change how many records may be on loan at a time."""
        await self._inner.set_credit(credit)

    async def close(self, *, lost: bool = False) -> None:
        """Leave the group."""
        self._leave()
        await self._inner.close(lost=lost)
