"""Subscriptions and consumptions of one principal: ended when it may not read any more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.api.access import Action, ResourceKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

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


def reading(topics: Sequence[str]) -> list[Question]:
    """Return what a reader of topics has to be allowed as long as it reads."""
    return [(Action.TOPIC_READ, ResourceKind.TOPIC, topic) for topic in dict.fromkeys(topics)]


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
            yield delivery
        if self._error is not None:
            raise self._error

    async def add(self, interests: Sequence[Interest]) -> None:
        """Deliver these partitions, too."""
        for question in reading([one.topic for one in interests]):
            self._broker.check(*question)
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
            yield handed
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
