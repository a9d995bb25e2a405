"""Subscribing to a topic that may not be there yet.

The brokers that we succeed keep subscribers by name, so somebody who subscribes first and publishes
then gets everything, whether the topic was there or not. Here a topic is made by the first who
wants it, which takes a moment, and others may want it meanwhile. So a subscription is first made
known on every node; and in a topic that was not there when it came, it begins at the beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from angarium.api import TopicConfig
from angarium.doors.feeds.following import EARLIEST
from angarium.doors.feeds.whole import WholeTopics
from angarium.errors import AlreadyExists, NotFound
from angarium.service.patience import patiently

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import Broker, Interest, PassingBroker, Subscription, TopicInfo
    from angarium.doors.feeds.following import Whole

    class LiveBroker(Broker, PassingBroker, Protocol):
        """A broker that also hands on what passes."""


class Found(NamedTuple):
    """A topic that somebody wants."""

    info: TopicInfo
    is_new: bool
    """Whether it was not there."""

    @property
    def partitions(self) -> list[int]:
        """Its partitions' numbers."""
        return [one.number for one in self.info.partitions]


async def found(broker: Broker, topic: str) -> Found:
    """Return a topic; one that is not there is made, with one partition."""
    try:
        return Found(await broker.describe_topic(topic), is_new=False)
    except NotFound:
        try:
            made = await broker.create_topic(topic, partitions=1, config=TopicConfig())
        except AlreadyExists:  # somebody else was faster
            made = await broker.describe_topic(topic)
        return Found(made, is_new=True)


async def listening(broker: LiveBroker, topic: str) -> tuple[Subscription, Found]:
    """Return what passes in a topic in PERFORMANCE mode, from before the topic is made."""
    try:
        known = Found(await broker.describe_topic(topic), is_new=False)
    except NotFound:
        known = None
    passing = await broker.subscribe_passing(topic, (0,) if known is None else known.partitions)
    try:
        if known is not None:
            return passing, known
        made = (await found(broker, topic))._replace(is_new=True)
        if made.partitions == [0]:
            return passing, made
    except BaseException:
        await passing.close()
        raise
    await passing.close()  # somebody else was faster, and made another kind of topic
    return await broker.subscribe_passing(topic, made.partitions), made


async def subscribed_live(broker: LiveBroker, wish: Whole) -> Subscription:
    """Return everything that comes to a topic from its start on, and of a new one all there is."""
    subscription, topic_found = await listening(broker, wish.topic)
    wanted = wish._replace(start=EARLIEST) if topic_found.is_new else wish

    async def opened(interests: Sequence[Interest]) -> Subscription:
        await subscription.add(interests)
        return subscription

    whole = WholeTopics(broker, opened)
    try:
        await patiently(lambda: whole.want([wanted]))
    except BaseException:
        await subscription.close()
        raise
    return whole
