"""The service, counting what goes through it. A batch costs a few additions, a record nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.batch import Batch
from angarium.errors import AngariumError
from angarium.service.broker import Service
from angarium.telemetry.meters import Meters

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from angarium.api import (
        Ack,
        ConsumeRequest,
        Consumption,
        Delivery,
        GroupConfig,
        Handed,
        Interest,
        PublishRequest,
        Settled,
        Settlement,
        Subscription,
    )
    from angarium.kinds import GroupKind
    from angarium.node.node import Node
    from angarium.service.publishing import Answer


class MeteredService(Service):
    """Implements `api.Broker` and `api.GroupBroker` on a node, and counts.

    A publish is counted by the node that a client sent it to and, if that passed it on, also by the
    one that leads the partition: what each had to do with it.
    """

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.meters = Meters()

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        """Publish, and count."""
        try:
            acks = await super().publish(request)
        except AngariumError:
            self.meters.failed(request.topic)
            raise
        self._published(request, acks)
        return acks

    def begin_publish(self, request: PublishRequest, answer: Answer) -> bool:
        """Publish without a task, and count."""

        def counted(outcome: tuple[Ack, ...] | AngariumError) -> None:
            if isinstance(outcome, AngariumError):
                self.meters.failed(request.topic)
            else:
                self._published(request, outcome)
            answer(outcome)

        return super().begin_publish(request, counted)

    async def subscribe(self, interests: Sequence[Interest]) -> Subscription:
        """Subscribe, and count."""
        topics = {one.topic for one in interests}
        return _Metered(await super().subscribe(interests), self.meters, topics)

    async def consume(self, request: ConsumeRequest) -> Consumption:
        """Take part in a group, and count."""
        return _MeteredConsumption(await super().consume(request), self.meters, set(request.topics))

    def _published(self, request: PublishRequest, acks: tuple[Ack, ...]) -> None:
        records = size = 0
        for ack, batch in zip(acks, request.batches, strict=False):
            if ack.code or ack.duplicate:
                continue
            size += len(batch)
            if ack.base_offset is None or ack.next_offset is None:
                records += len(Batch.trusted(batch))
            else:
                records += ack.next_offset - ack.base_offset
        if records:
            self.meters.published(request.topic, records, size)


class _Metered:
    """A subscription, counted."""

    def __init__(self, inner: Subscription, meters: Meters, topics: set[str]) -> None:
        self._inner = inner
        self._meters = meters
        self._topics = topics
        for topic in topics:
            meters.subscribed(topic, 1)

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        async for delivery in self._inner:
            batches = delivery.batches
            if delivery.live:
                records = sum([len(Batch.trusted(one)) for one in batches])
            else:
                records = Batch.trusted(batches[-1]).next_offset - delivery.from_offset
            self._meters.delivered(delivery.topic, records)
            yield delivery

    async def add(self, interests: Sequence[Interest]) -> None:
        """Deliver these, too."""
        for topic in {one.topic for one in interests} - self._topics:
            self._topics.add(topic)
            self._meters.subscribed(topic, 1)
        await self._inner.add(interests)

    async def drop(self, topic: str, partition: int) -> None:
        """Deliver nothing more of a partition."""
        await self._inner.drop(topic, partition)

    async def close(self) -> None:
        """End it."""
        topics, self._topics = self._topics, set()
        for topic in topics:
            self._meters.subscribed(topic, -1)
        await self._inner.close()


class _MeteredConsumption:
    """A member's part in a group, counted."""

    def __init__(self, inner: Consumption, meters: Meters, topics: set[str]) -> None:
        self._inner = inner
        self._meters = meters
        self._topics = topics
        for topic in topics:
            meters.subscribed(topic, 1)

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
            records = sum(handed.ranges[1::2]) - sum(handed.ranges[::2])
            self._meters.delivered(handed.topic, records)
            yield handed

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        """Settle records."""
        return await self._inner.settle(settlements)

    async def set_credit(self, credit: int) -> None:
        """Change how many records may be on loan at a time."""
        await self._inner.set_credit(credit)

    async def close(self, *, lost: bool = False) -> None:
        """Leave the group."""
        topics, self._topics = self._topics, set()
        for topic in topics:
            self._meters.subscribed(topic, -1)
        await self._inner.close(lost=lost)
