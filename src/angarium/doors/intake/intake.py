"""Where a door's publishes go: to the broker, by lanes or in batches of their own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.api import PublishRequest
from angarium.doors.intake.lanes import Lanes
from angarium.doors.intake.outgoing import NOBODY
from angarium.doors.intake.partitions import TopicShapes
from angarium.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.api import Ack, Broker
    from angarium.doors.intake.lanes import LaneKey, Placed
    from angarium.doors.intake.outgoing import Outgoing, ProducerIdentity
    from angarium.ids import Buffer
    from angarium.modes import DeliveryMode


class Intake:
    """One door's, shared by everybody who publishes through it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.shapes = TopicShapes(broker)
        self.lanes = Lanes(self.publish, self.shapes)

    async def published(
        self, key: LaneKey, record: Outgoing, identity: ProducerIdentity = NOBODY
    ) -> Placed:
        """Publish one record by its lane; return where it went, or raise why it did not."""
        done: asyncio.Future[Placed | Exception] = asyncio.get_running_loop().create_future()

        def settle(outcome: Placed | Exception) -> None:
            if not done.done():
                done.set_result(outcome)

        self.lanes.publish(key, record, settle, identity)
        outcome = await done
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def publish(
        self,
        topic: str,
        partition: int,
        batches: tuple[Buffer, ...],
        mode: DeliveryMode | None,
    ) -> tuple[Ack, ...]:
        """Publish batches to one partition."""
        try:
            return await self.broker.publish(
                PublishRequest(topic=topic, partition=partition, batches=batches, mode=mode)
            )
        except NotFound:
            self.shapes.forget(topic)
            raise

    async def publish_each(
        self,
        topic: str,
        per_partition: Mapping[int, tuple[Buffer, ...]],
        mode: DeliveryMode | None,
    ) -> list[tuple[Ack, ...] | Exception]:
        """Publish the batches of each partition; what becomes of one is told whatever becomes of
        the others."""
        calls = [self._told(topic, one, some, mode) for one, some in per_partition.items()]
        return [await calls[0]] if len(calls) == 1 else await asyncio.gather(*calls)

    async def _told(
        self,
        topic: str,
        partition: int,
        batches: tuple[Buffer, ...],
        mode: DeliveryMode | None,
    ) -> tuple[Ack, ...] | Exception:
        try:
            return await self.publish(topic, partition, batches, mode)
        except Exception as error:  # each becomes a part of the answer
            return error
