"""Publishing in the profile's terms: every message is a batch of its own.

All records of a batch have one append time. A subscriber of this profile resumes after the last
timestamp it saw, so messages that shared one could not be told apart; alone in its batch, each has
a time of its own. They still travel together, in one call to the broker and one entry of the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.doors.intake import Intake, Outgoing, ProducerIdentity
from angarium.errors import InvalidArgument
from angarium.modes import DeliveryMode
from angarium_compat.geo.message_ids import MessageIds

if TYPE_CHECKING:
    from angarium.api import Broker
    from angarium.ids import TopicId

IDS_MAX: Final = 10_000
"""Partitions whose ids are made without a hash. At the limit all are forgotten and made again."""


ALONE: Final = ProducerIdentity()
"""Nobody's, and yet one: a record that has an identity shares its batch with no other."""


class GeoPublishing:
    """Publishes, and says under which id."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._intake = Intake(broker)
        self._ids: dict[tuple[TopicId, int], MessageIds] = {}

    async def publish(self, topic: str, body: bytes) -> str:
        """Store a message on a majority of disks; return its id."""
        if not topic:
            raise InvalidArgument("topic is required")
        shape = await self._intake.shapes.of(topic)
        partition = shape.partition_for(None)
        placed = await self._intake.sent(
            topic,
            Outgoing(body),
            partition=partition,
            mode=DeliveryMode.CONSISTENT,
            identity=ALONE,
        )
        if shape.id is None:  # made by this publish
            shape = await self._intake.shapes.of(topic)
        assert placed.ack.base_offset is not None
        assert shape.id is not None
        ids = await self.ids_of(shape.id, partition)
        return ids.at(placed.ack.base_offset + placed.row)

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
