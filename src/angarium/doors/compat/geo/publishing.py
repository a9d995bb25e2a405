"""Publishing in the profile's terms: every message is a batch of its own.

All records of a batch have one append time. A subscriber of this profile resumes after the last
timestamp it saw, so messages that shared one could not be told apart; alone in its batch, each has
a time of its own. They still travel together, in one call to the broker and one entry of the log.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.doors.compat.geo.message_ids import MessageIds
from angarium.doors.http.lanes import LaneKey, Lanes
from angarium.doors.http.records import Outgoing
from angarium.doors.partitions import TopicShapes
from angarium.errors import InvalidArgument
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from angarium.api import Broker
    from angarium.doors.http.lanes import Placed
    from angarium.ids import TopicId

IDS_MAX: Final = 10_000
"""Partitions whose ids are made without a hash. At the bound all are forgotten, and made anew."""


class Alone(Outgoing):
    """A record that shares its batch with no other."""

    __slots__ = ()

    @property
    def is_plain(self) -> bool:
        """Whether it may be packed together with others."""
        return False


class GeoPublishing:
    """Publishes, and says under which id."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._shapes = TopicShapes(broker)
        self._lanes = Lanes(broker, self._shapes)
        self._ids: dict[tuple[TopicId, int], MessageIds] = {}

    async def publish(self, topic: str, body: bytes) -> str:
        """Store a message on a majority of disks; return its id."""
        if not topic:
            raise InvalidArgument("topic is required")
        shape = self._shapes.known(topic) or await self._shapes.of(topic)
        partition = shape.partition_for(None)
        done: asyncio.Future[Placed | Exception] = asyncio.get_running_loop().create_future()

        def settle(outcome: Placed | Exception) -> None:
            if not done.done():
                done.set_result(outcome)

        key = LaneKey(topic, partition, DeliveryMode.CONSISTENT)
        self._lanes.publish(key, Alone(body), settle)
        outcome = await done
        if isinstance(outcome, Exception):
            raise outcome
        if shape.id is None:  # made by this publish
            shape = await self._shapes.of(topic)
        assert outcome.ack.base_offset is not None
        assert shape.id is not None
        ids = await self.ids_of(shape.id, partition)
        return ids.at(outcome.ack.base_offset + outcome.place)

    async def ids_of(self, topic: TopicId, partition: int) -> MessageIds:
        """Return what makes the ids of a partition."""
        ids = self._ids.get((topic, partition))
        if ids is None:
            cluster = (await self._broker.cluster_status()).cluster_id
            ids = MessageIds(cluster=cluster, topic=topic, partition=partition)
            if len(self._ids) >= IDS_MAX:
                self._ids.clear()
            self._ids[topic, partition] = ids
        return ids
