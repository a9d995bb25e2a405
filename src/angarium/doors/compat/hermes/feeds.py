"""What a subscriber of the profile gets, whichever listener it came through."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from angarium.api import (
    ConsumeRequest,
    GroupConfig,
    Interest,
    Place,
    Start,
    TopicConfig,
)
from angarium.doors.http.acknowledging import Acknowledgements
from angarium.doors.http.passing import passing_id, time_us
from angarium.doors.http.records import readable, records_of
from angarium.doors.http.socket_feeds import lent_records
from angarium.errors import AlreadyExists, NotFound

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

    from angarium.api import (
        Broker,
        Consumption,
        Delivery,
        GroupBroker,
        PassingBroker,
        Subscription,
        TopicInfo,
    )

    class HermesBroker(Broker, PassingBroker, Protocol):
        """A broker that also hands on what passes."""


LIVE: Final = ""
REPLAY: Final = "__REPLAY__"
DEAD_LETTERS: Final = "hermes.dlq"
"""Where the profile's groups send what they gave up."""

CREDIT: Final = 1_000

PORTIONS_MAX: Final = 16
"""Portions that wait for a member to be sent to. At the bound nothing more is taken."""

GROUP: Final = GroupConfig(dead_letter_topic=DEAD_LETTERS)
"""How the profile's groups are."""

_OFFSET_END: Final = 1 << 63
_PARTITION_END: Final = 1 << 31


class Sent(NamedTuple):
    """A message of the profile."""

    id: str
    topic: str
    payload: bytes
    time_us: int


class Spot(NamedTuple):
    """Where a record is."""

    topic: str
    partition: int
    offset: int


def id_of(topic: str, partition: int, offset: int) -> str:
    """Return the id of a stored message: its place."""
    return f"{topic}/{partition}/{offset}"


def place_in(message_id: str) -> Spot | None:
    """Return the place that an id stands for; None for one that was never given to anything."""
    topic, _, rest = message_id.partition("/")
    partition, _, offset = rest.partition("/")
    if not (topic and partition.isdecimal() and offset.isdecimal()):
        return None
    spot = Spot(topic, int(partition), int(offset))
    return spot if spot.partition < _PARTITION_END and spot.offset < _OFFSET_END - 1 else None


class Feed(Protocol):
    """What comes to one subscriber."""

    def messages(self) -> AsyncGenerator[list[Sent], None]:
        """Yield what comes, in the portions in which it comes."""

    async def acknowledge(self, message_id: str) -> None:
        """Settle a message; outside of a group there is nothing to settle."""

    async def close(self) -> None:
        """End it; a member leaves its group."""


async def described(broker: Broker, topic: str) -> TopicInfo:
    """Return what a topic is; one that is not there is made, as the profile's broker would."""
    try:
        return await broker.describe_topic(topic)
    except NotFound:
        try:
            return await broker.create_topic(topic, partitions=1, config=TopicConfig())
        except AlreadyExists:  # somebody else was faster
            return await broker.describe_topic(topic)


async def begun(broker: HermesBroker, groups: GroupBroker, topic: str, group: str) -> Feed:
    """Begin; a topic that is not there is made."""
    info = await described(broker, topic)
    numbers = [one.number for one in info.partitions]
    if group not in (LIVE, REPLAY):
        consumption = await groups.consume(
            ConsumeRequest(group=group, topics=(topic,), config=GROUP, credit=CREDIT)
        )
        return MemberFeed(topic, consumption, await broker.subscribe_passing(topic, numbers))
    start = Start(Place.EARLIEST if group == REPLAY else Place.LATEST)
    return TopicFeed(
        await broker.subscribe(
            [Interest(topic=topic, partition=number, start=start) for number in numbers]
        )
    )


class MemberFeed:
    """A part in a group; and, as the profile's broker did it, whatever passes in PERFORMANCE mode,
    which is handed to everybody who is there."""

    def __init__(self, topic: str, consumption: Consumption, passing: Subscription) -> None:
        self._topic = topic
        self._consumption = consumption
        self._acknowledgements = Acknowledgements(consumption)
        self._subscription = passing

    async def messages(self) -> AsyncGenerator[list[Sent], None]:
        """Yield what the member is lent, and what passes."""
        arrived: asyncio.Queue[list[Sent] | Exception | None] = asyncio.Queue(PORTIONS_MAX)

        async def take(source: AsyncIterator[list[Sent]]) -> None:
            try:
                async for portion in source:
                    await arrived.put(portion)
                await arrived.put(None)
            except Exception as error:  # whoever reads the queue is told
                await arrived.put(error)

        tasks = [asyncio.create_task(take(one)) for one in (self._lent(), self._passing())]
        try:
            while (portion := await arrived.get()) is not None:
                if isinstance(portion, Exception):
                    raise portion
                yield portion
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _lent(self) -> AsyncIterator[list[Sent]]:
        topic = self._topic
        async for handed in self._consumption:
            number = handed.partition
            yield [
                Sent(id_of(topic, number, one.offset), topic, one.value or b"", one.append_time)
                for one in lent_records(handed)
            ]

    async def _passing(self) -> AsyncIterator[list[Sent]]:
        async for delivery in self._subscription:
            for portion in _portions(delivery):
                yield portion

    async def acknowledge(self, message_id: str) -> None:
        """Settle a message; an id that nothing on loan has is no matter, as it was none there."""
        spot = place_in(message_id)
        if spot is not None and spot.topic == self._topic:
            await self._acknowledgements.say(*spot)

    async def close(self) -> None:
        """Leave the group, once what was acknowledged is."""
        await self._subscription.close()
        await self._acknowledgements.told()
        await self._consumption.close()


class TopicFeed:
    """A topic's records, in no group."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    async def messages(self) -> AsyncGenerator[list[Sent], None]:
        """Yield what comes."""
        async for delivery in self._subscription:
            for portion in _portions(delivery):
                yield portion

    async def acknowledge(self, _: str) -> None:
        """Nothing is kept outside of a group."""

    async def close(self) -> None:
        """End it."""
        await self._subscription.close()


def _portions(delivery: Delivery) -> Iterator[list[Sent]]:
    """Yield the messages of a delivery, batch by batch."""
    topic, number, is_live = delivery.topic, delivery.partition, delivery.live
    for buffer in delivery.batches:
        batch = readable(buffer, topic=topic, partition=number)
        some = records_of(
            batch, from_offset=delivery.from_offset, expired=delivery.expired, live=is_live
        )
        yield [
            Sent(
                passing_id(topic, number) if is_live else id_of(topic, number, one.offset),
                topic,
                one.value or b"",
                time_us(one),
            )
            for one in some
        ]
