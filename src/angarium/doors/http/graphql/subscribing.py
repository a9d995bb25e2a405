"""The subscription field: a topic's records as they come, or what a group is lent."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.api import ConsumeRequest, Interest, Place, Start
from angarium.doors.http.acknowledging import Acknowledgements
from angarium.doors.http.graphql.resolving import HeaderView
from angarium.doors.http.passing import passing_id, time_us
from angarium.doors.http.records import readable, records_of
from angarium.doors.http.socket_feeds import lent_records
from angarium.wire.errors import UnsupportedOperation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from angarium.api import Broker, GroupBroker, GroupConfig, TopicInfo
    from angarium.batch import Record

LIVE: Final = ""
"""The group that is none: what comes from now on."""

REPLAY: Final = "__REPLAY__"
"""The group that is none: everything from the start, and then what comes."""

CREDIT: Final = 200
"""Records lent to one subscription at a time."""


class MessageView:
    """A record, as a subscription shows it."""

    __slots__ = ("_is_live", "_record", "attempt", "id", "partition", "time_us", "topic")

    def __init__(
        self, record: Record, *, topic: str, partition: int, attempt: int = 1, is_live: bool = False
    ) -> None:
        self._record = record
        self._is_live = is_live
        self.topic = topic
        self.partition = partition
        self.attempt = attempt
        self.id = passing_id(topic, partition) if is_live else f"{topic}/{partition}/{self.offset}"
        self.time_us = time_us(record)

    @property
    def payload(self) -> str:
        return (self._record.value or b"").decode(errors="replace")

    @property
    def payload_base64(self) -> str:
        return base64.b64encode(self._record.value or b"").decode()

    @property
    def timestamp(self) -> int:
        return self.time_us // 1_000_000

    @property
    def key(self) -> str | None:
        key = self._record.key
        return None if key is None else key.decode(errors="replace")

    @property
    def offset(self) -> int | None:
        return None if self._is_live else self._record.offset

    @property
    def headers(self) -> list[HeaderView]:
        return [HeaderView(*one) for one in self._record.headers]


class Event(NamedTuple):
    """What the root of a subscription's answer is resolved from."""

    subscribe: MessageView


class Subscribing:
    """Makes the streams behind subscriptions."""

    def __init__(
        self, broker: Broker, groups: GroupBroker | None, config: GroupConfig | None = None
    ) -> None:
        """Prepare; `config` is how groups are that begin here."""
        self._broker = broker
        self._groups = groups
        self._config = config

    def stream(self, *, topic: str, group: str) -> AsyncIterator[Event]:
        """Return what comes; it begins when it is first asked."""
        if group in (LIVE, REPLAY):
            return self._records(topic, from_start=group == REPLAY)
        return self._lent(topic, group)

    async def _described(self, topic: str) -> TopicInfo:
        """Return what a topic is; raises `NotFound`."""
        return await self._broker.describe_topic(topic)

    async def _records(self, topic: str, *, from_start: bool) -> AsyncIterator[Event]:
        info = await self._described(topic)
        start = Start(Place.EARLIEST if from_start else Place.LATEST)
        subscription = await self._broker.subscribe(
            [Interest(topic=topic, partition=one.number, start=start) for one in info.partitions]
        )
        try:
            async for delivery in subscription:
                for buffer in delivery.batches:
                    batch = readable(buffer, topic=topic, partition=delivery.partition)
                    for record in records_of(
                        batch,
                        from_offset=delivery.from_offset,
                        expired=delivery.expired,
                        live=delivery.live,
                    ):
                        view = MessageView(
                            record,
                            topic=topic,
                            partition=delivery.partition,
                            is_live=delivery.live,
                        )
                        yield Event(view)
        finally:
            await subscription.close()

    async def _lent(self, topic: str, group: str) -> AsyncIterator[Event]:
        if self._groups is None:
            raise UnsupportedOperation("groups are not served here")
        await self._described(topic)
        consumption = await self._groups.consume(
            ConsumeRequest(group=group, topics=(topic,), config=self._config, credit=CREDIT)
        )
        acknowledgements = Acknowledgements(consumption)
        try:
            async for handed in consumption:
                for record in lent_records(handed):
                    view = MessageView(
                        record, topic=topic, partition=handed.partition, attempt=handed.attempt
                    )
                    yield Event(view)
                    # Asked for the next one: this one has been sent.
                    await acknowledgements.say(topic, handed.partition, record.offset)
        finally:
            await acknowledgements.told()
            await consumption.close()
