"""What a subscriber of the profile gets, whichever listener it came through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from angarium.api import (
    ConsumeRequest,
    GroupConfig,
    Interest,
    Place,
    Settlement,
    Start,
    TopicConfig,
    Verb,
)
from angarium.doors.http.records import readable, records_of
from angarium.doors.http.socket_feeds import lent_records
from angarium.errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from angarium.api import Broker, Consumption, GroupBroker, Subscription

LIVE: Final = ""
REPLAY: Final = "__REPLAY__"
DEAD_LETTERS: Final = "hermes.dlq"
"""Where the profile's groups send what they gave up."""

CREDIT: Final = 1_000


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


def id_of(topic: str, partition: int, offset: int | None) -> str:
    """Return a message's id; one that is stored nowhere cannot be acknowledged, and says so."""
    return f"{topic}/{partition}/{'live' if offset is None else offset}"


def place_in(message_id: str) -> Spot:
    """Return the place that an id stands for; raises `InvalidArgument`."""
    topic, _, rest = message_id.partition("/")
    partition, _, offset = rest.partition("/")
    if not topic or not partition.isdecimal() or not offset.isdecimal():
        raise InvalidArgument(f"{message_id!r} is no id of a message that can be acknowledged")
    return Spot(topic, int(partition), int(offset))


class Feed(Protocol):
    """What comes to one subscriber."""

    def messages(self) -> AsyncIterator[list[Sent]]:
        """Yield what comes, in the portions in which it comes."""

    async def acknowledge(self, message_id: str) -> None:
        """Settle a message; outside of a group there is nothing to settle."""

    async def close(self) -> None:
        """End it; a member leaves its group."""


async def begun(broker: Broker, groups: GroupBroker, topic: str, group: str) -> Feed:
    """Begin; a topic that is not there is made, as the profile's broker would."""
    try:
        info = await broker.describe_topic(topic)
    except NotFound:
        info = await broker.create_topic(topic, partitions=1, config=TopicConfig())
    if group not in (LIVE, REPLAY):
        consumption = await groups.consume(
            ConsumeRequest(
                group=group,
                topics=(topic,),
                config=GroupConfig(dead_letter_topic=DEAD_LETTERS),
                credit=CREDIT,
            )
        )
        return LentFeed(topic, consumption)
    start = Start(Place.EARLIEST if group == REPLAY else Place.LATEST)
    subscription = await broker.subscribe(
        [Interest(topic=topic, partition=one.number, start=start) for one in info.partitions]
    )
    return TopicFeed(topic, subscription)


class LentFeed:
    """A part in a group."""

    def __init__(self, topic: str, consumption: Consumption) -> None:
        self._topic = topic
        self._consumption = consumption

    async def messages(self) -> AsyncIterator[list[Sent]]:
        """Yield what the member is lent."""
        topic = self._topic
        async for handed in self._consumption:
            number = handed.partition
            yield [
                Sent(id_of(topic, number, one.offset), topic, one.value or b"", one.append_time)
                for one in lent_records(handed)
            ]

    async def acknowledge(self, message_id: str) -> None:
        """Settle a message."""
        topic, partition, offset = place_in(message_id)
        await self._consumption.settle(
            [Settlement(topic, partition, Verb.ACK, (offset, offset + 1))]
        )

    async def close(self) -> None:
        """Leave the group."""
        await self._consumption.close()


class TopicFeed:
    """A topic's records, in no group."""

    def __init__(self, topic: str, subscription: Subscription) -> None:
        self._topic = topic
        self._subscription = subscription

    async def messages(self) -> AsyncIterator[list[Sent]]:
        """Yield what comes."""
        topic = self._topic
        async for delivery in self._subscription:
            number, is_live = delivery.partition, delivery.live
            for buffer in delivery.batches:
                batch = readable(buffer, topic=topic, partition=number)
                some = records_of(
                    batch,
                    from_offset=delivery.from_offset,
                    expired=delivery.expired,
                    live=is_live,
                )
                yield [
                    Sent(
                        id_of(topic, number, None if is_live else one.offset),
                        topic,
                        one.value or b"",
                        one.append_time or one.timestamp,
                    )
                    for one in some
                ]

    async def acknowledge(self, _: str) -> None:
        """Nothing is kept outside of a group."""

    async def close(self) -> None:
        """End it."""
        await self._subscription.close()
