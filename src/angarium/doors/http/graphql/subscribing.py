"""The subscription field: a topic's records as they come, or what a group is lent."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.api import ConsumeRequest, Start, StartAt
from angarium.doors.feeds.feed import GroupFeed, TopicFeed
from angarium.doors.feeds.following import Whole
from angarium.doors.feeds.passing import passing_id, time_us
from angarium.doors.feeds.positions import known_in
from angarium.doors.feeds.whole import whole_topic
from angarium.doors.http.graphql.resolving import RecordView, base64_of, text_of
from angarium.errors import InvalidArgument
from angarium.wire.errors import UnsupportedOperation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from angarium.api import Broker, Consumption, GroupBroker, GroupConfig, Subscription
    from angarium.batch import Record
    from angarium.doors.feeds.feed import Feed, Portion

LIVE: Final = ""
"""The group that is none: what comes from now on."""

REPLAY: Final = "__REPLAY__"
"""The group that is none: everything from the start, and then what comes."""

CREDIT: Final = 200
"""Records lent to one subscription at a time."""


class MessageView(RecordView):
    """A record, as a subscription shows it."""

    __slots__ = ("_is_live", "attempt", "id", "time_us", "topic")

    def __init__(self, record: Record, portion: Portion) -> None:
        topic, partition, _, is_live, attempt, _ = portion
        super().__init__(record, partition)
        self._is_live = is_live
        self.topic = topic
        self.attempt = attempt
        self.id = passing_id(topic, partition) if is_live else f"{topic}/{partition}/{self.offset}"
        self.time_us = time_us(record)

    offset = property(lambda self: None if self._is_live else self._record.offset)
    payload = property(lambda self: text_of(self._record.value) or "")
    payload_base64 = property(lambda self: base64_of(self._record.value) or "")
    timestamp = property(lambda self: self.time_us // 1_000_000)


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

    def stream(
        self,
        *,
        topic: str,
        group: str,
        max_staleness_ms: int | None = None,
        at_least: str | None = None,
    ) -> Events:
        return Events(partial(self._begun, topic, group, max_staleness_ms, at_least))

    async def _begun(
        self, topic: str, group: str, max_staleness_ms: int | None, at_least: str | None
    ) -> Feed:
        if group in (LIVE, REPLAY):
            if (max_staleness_ms or 0) < 0:
                raise InvalidArgument(f"maxStalenessMs is not negative: {max_staleness_ms}")
            wish = Whole(
                topic,
                Start(StartAt.EARLIEST if group == REPLAY else StartAt.LATEST),
                max_staleness_ms=max_staleness_ms,
                at_least=known_in(at_least, None),
            )
            return TopicFeed(await self.subscribed(wish))
        if max_staleness_ms is not None or at_least is not None:
            raise InvalidArgument(
                "a group is lent records by the leader: there is no bound to keep"
            )
        return GroupFeed(await self.joined(topic, group))

    async def subscribed(self, wish: Whole) -> Subscription:
        """Subscribe to a topic; raises `NotFound`."""
        return await whole_topic(self._broker, wish)

    async def joined(self, topic: str, group: str) -> Consumption:
        """Take part in a group; raises `NotFound`."""
        if self._groups is None:
            raise UnsupportedOperation("groups are not served here")
        await self._broker.describe_topic(topic)
        return await self._groups.consume(
            ConsumeRequest(group=group, topics=(topic,), config=self._config, credit=CREDIT)
        )


class Events:
    """What comes to one subscription. It begins when it is first asked.

    In a group, each record is acknowledged when the next one is asked for: it has been sent then.
    """

    def __init__(self, begin: Callable[[], Awaitable[Feed]]) -> None:
        self._begin = begin
        self._feed: Feed | None = None

    async def __aiter__(self) -> AsyncIterator[Event]:
        self._feed = feed = await self._begin()
        async for portion in feed:
            for record in portion.records:
                yield Event(MessageView(record, portion))
                ranges = (record.offset, record.offset + 1)
                await feed.acknowledge(portion.topic, portion.partition, ranges)

    async def close(self) -> None:
        """End it. Its maker does that, and not the iterator in its own end: that is put off while
        the next event is being waited for."""
        if self._feed is not None:
            await self._feed.close()
