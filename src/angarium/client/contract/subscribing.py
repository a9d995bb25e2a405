"""A subscription at another process, as the contract has it: it ends when its stream does."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Protocol, cast

from msgspec.structs import replace

from angarium.api import Delivery, Interest, Start, StartAt
from angarium.api.reading import check_start
from angarium.batch import split
from angarium.errors import LayoutChanged, no_partition
from angarium.ids import TopicPartition
from angarium.wire.error_codec import Failure, error_of
from angarium.wire.errors import StreamCancelled
from angarium.wire.operations import Drop, Ended, Operation, Told, TopicHeader, Want, Wants

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from angarium.api import TopicInfo
    from angarium.ids import Offset
    from angarium.wire import Connection


class TopicLookup(Protocol):
    """Knows what topics look like, and where their partitions end."""

    async def describe_topic(self, name: str) -> TopicInfo:
        """Return one topic; `NotFound`."""

    async def find_offset(self, topic: str, partition: int, start: Start) -> Offset:
        """Return the offset that `start` stands for."""


class RemoteSubscription:
    """Some partitions, delivered by one node."""

    def __init__(self, connection: Connection, wants: Sequence[Interest]) -> None:
        """Open the stream without waiting; `begun` waits until the node has begun."""
        self._connection = connection
        self._closed = False
        self._numbers = count(1)
        self._partitions: dict[int, TopicPartition] = {}
        self._alone: set[int] = set()
        """Partitions whose failure does not end the subscription."""
        opening = Wants(tuple(self._want(one) for one in wants))
        self._stream = connection.open_stream(Operation.SUBSCRIBE, opening)
        self._known: TopicLookup | None = None
        self._timeout_s = 0.0

    @classmethod
    async def begun(
        cls,
        connection: Connection,
        lookup: TopicLookup,
        interests: Sequence[Interest],
        *,
        timeout_s: float,
    ) -> RemoteSubscription:
        """Subscribe; raises what is wrong with one of the interests."""
        wants = await _checked(lookup, interests)
        subscription = cls(connection, wants)
        subscription._known, subscription._timeout_s = lookup, timeout_s
        try:
            await subscription._wait_until_begun(wants)
        except BaseException:
            await subscription.close()
            raise
        return subscription

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        try:
            while (frame := await self._stream.receive()) is not None:
                told: Told = frame.read(cast("type[Told]", Told))
                partition = self._partitions.get(told.number)
                if partition is None:
                    continue
                if isinstance(told, Ended) and told.code == LayoutChanged.code:
                    self._leave(told.number)
                    yield Delivery(
                        topic=partition.topic,
                        partition=partition.partition,
                        batches=(),
                        fenced=True,
                    )
                    continue
                if isinstance(told, Ended):
                    error = error_of(Failure(told.code, told.message))
                    if told.number not in self._alone:
                        raise error
                    self._leave(told.number)
                    yield Delivery(
                        topic=partition.topic,
                        partition=partition.partition,
                        batches=(),
                        failure=error,
                    )
                    continue
                yield Delivery(
                    topic=partition.topic,
                    partition=partition.partition,
                    batches=tuple(split(frame.payload)),
                    from_offset=told.from_offset,
                    expired=told.expired,
                    live=told.live,
                    node=told.node,
                    region=told.region,
                    staleness_ms=told.staleness_ms,
                )
        except StreamCancelled:
            if not self._closed:
                raise

    async def add(self, interests: Sequence[Interest]) -> None:
        """Deliver these partitions, too; raises what is wrong, and then adds none of them."""
        assert self._known is not None, "only what was begun is added to"
        wants = await _checked(self._known, interests)
        for one in wants:
            await self._stream.send(self._want(one))
        await self._wait_until_begun(wants)

    async def drop(self, topic: str, partition: int) -> None:
        """Deliver nothing more of a partition."""
        dropped = [one for one, known in self._partitions.items() if known == (topic, partition)]
        for number in dropped:
            self._leave(number)
            await self._stream.send(Drop(number))

    async def close(self) -> None:
        """End it."""
        self._closed = True
        self._stream.cancel()

    async def _wait_until_begun(self, wants: Sequence[Interest]) -> None:
        """Wait until the node has begun: nothing that passes from then on is missed."""
        if wants:
            # Behind the stream, over the same connection: an answer means that the node has begun.
            topic = TopicHeader(wants[0].topic)
            await self._connection.request(
                Operation.DESCRIBE_TOPIC, topic, timeout_s=self._timeout_s
            )

    def _leave(self, number: int) -> None:
        """Forget a partition that is delivered no longer."""
        del self._partitions[number]
        self._alone.discard(number)

    def _want(self, interest: Interest) -> Want:
        number = next(self._numbers)
        self._partitions[number] = TopicPartition(interest.topic, interest.partition)
        if interest.may_fail_alone:
            self._alone.add(number)
        return Want(
            number,
            interest.topic,
            interest.partition,
            interest.start,
            interest.layout,
            interest.max_staleness_ms,
            interest.at_least,
        )


async def _checked(lookup: TopicLookup, interests: Sequence[Interest]) -> list[Interest]:
    """Return interests that a node will take, with an offset where they begin at the end.

    A node that refuses one ends the whole stream, and says so only instead of a delivery. And it
    looks for the end after the stream was opened: what is stored meanwhile would be missed.
    """
    for one in interests:
        check_start(one.start)
    for name in {one.topic for one in interests}:
        partitions = len((await lookup.describe_topic(name)).partitions)
        for one in interests:
            if one.topic == name and not 0 <= one.partition < partitions:
                raise no_partition(name, partitions, one.partition)
    return list(await asyncio.gather(*(_from_offset(lookup, one) for one in interests)))


async def _from_offset(lookup: TopicLookup, interest: Interest) -> Interest:
    if interest.start.at is not StartAt.LATEST:
        return interest
    end = await lookup.find_offset(interest.topic, interest.partition, interest.start)
    start = Start(StartAt.OFFSET, end)
    return replace(interest, start=start)
