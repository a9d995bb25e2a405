"""What goes through a broker, counted. A batch costs a few additions, a record nothing.

A node's service counts like this, and so does a gateway, which only passes on: each puts `Counting`
in front of its broker's class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.batch import Batch
from angarium.errors import AngariumError

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
    from angarium.telemetry.meters import Meters

    class _Counted:
        """What type checkers need to know of the class behind `Counting`, which does the work."""

        async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
            raise NotImplementedError

        async def subscribe(self, interests: Sequence[Interest]) -> Subscription:
            raise NotImplementedError

        async def consume(self, request: ConsumeRequest) -> Consumption:
            raise NotImplementedError

        async def settle(
            self, group: str, member: str, settlements: Sequence[Settlement]
        ) -> tuple[Settled, ...]:
            raise NotImplementedError

else:
    _Counted = object


class Counting(_Counted):
    """The part of a broker that counts; the classes behind it do the work."""

    meters: Meters

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        """Publish, and count."""
        try:
            acks = await super().publish(request)
        except AngariumError:
            self.meters.failed(request.topic)
            raise
        count_published(self.meters, request, acks)
        return acks

    async def subscribe(self, interests: Sequence[Interest]) -> Subscription:
        """Subscribe, and count."""
        topics = {one.topic for one in interests}
        return CountedSubscription(await super().subscribe(interests), self.meters, topics)

    async def consume(self, request: ConsumeRequest) -> Consumption:
        """Take part in a group, and count."""
        consumption = await super().consume(request)
        return CountedConsumption(consumption, self.meters, set(request.topics))

    async def settle(
        self, group: str, member: str, settlements: Sequence[Settlement]
    ) -> tuple[Settled, ...]:
        """Settle for a member, and count."""
        settled = await super().settle(group, member, settlements)
        count_settled(self.meters, settlements, settled)
        return settled


def count_published(meters: Meters, request: PublishRequest, acks: Sequence[Ack]) -> None:
    """Count what a publish stored or handed on, and what it did not because it had before."""
    records = size = 0
    for ack, batch in zip(acks, request.batches, strict=False):
        if ack.code:
            continue
        if ack.duplicate:
            meters.duplicates += 1
            continue
        size += len(batch)
        if ack.base_offset is None or ack.next_offset is None:
            records += len(Batch.trusted(batch))
        else:
            records += ack.next_offset - ack.base_offset
    if records:
        meters.published(request.topic, records, size)


def count_settled(
    meters: Meters, settlements: Sequence[Settlement], settled: Sequence[Settled]
) -> None:
    """Count what members said about records."""
    for wish, answer in zip(settlements, settled, strict=False):
        if not answer.code:
            meters.settled(wish.verb.name.lower(), answer.records)


class CountedSubscription:
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
            if not batches:  # only why nothing more comes
                records = 0
            elif delivery.live:
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


class CountedConsumption:
    """A member's part in a group, counted."""

    def __init__(self, inner: Consumption, meters: Meters, topics: set[str]) -> None:
        self._inner = inner
        self._meters = meters
        self._topics = topics
        for topic in topics:
            meters.subscribed(topic, 1)
        meters.joined(1)

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
            self._meters.handed(records, attempt=handed.attempt)
            yield handed

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        """Settle records."""
        settled = await self._inner.settle(settlements)
        count_settled(self._meters, settlements, settled)
        return settled

    async def set_credit(self, credit: int) -> None:
        """Change how many records may be on loan at a time."""
        await self._inner.set_credit(credit)

    async def close(self, *, lost: bool = False) -> None:
        """Leave the group."""
        topics, self._topics = self._topics, set()
        self._meters.joined(-1 if topics else 0)
        for topic in topics:
            self._meters.subscribed(topic, -1)
        await self._inner.close(lost=lost)
