"""Publishing in the profile's terms: records have a value, and go where the topic's turn says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.api import PublishRequest
from angarium.batch import encode
from angarium.doors.http.contract_values import error_of_ack
from angarium.doors.http.lanes import LaneKey, Lanes, Placed
from angarium.doors.http.packing import BATCH_BYTES, record_batches
from angarium.doors.http.records import Outgoing
from angarium.doors.partitions import TopicShapes
from angarium.errors import InvalidArgument
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.api import Broker


class HermesPublishing:
    """Publishes for both listeners of the profile."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._shapes = TopicShapes(broker)
        self._lanes = Lanes(broker, self._shapes)

    async def publish(self, topic: str, payload: bytes, mode: int) -> int:
        """Publish one record; return its partition. Raises why it is not stored."""
        done: asyncio.Future[Placed | Exception] = asyncio.get_running_loop().create_future()

        def settle(outcome: Placed | Exception) -> None:
            if not done.done():
                done.set_result(outcome)

        partition = await self.begin(topic, payload, mode, settle)
        outcome = await done
        if isinstance(outcome, Exception):
            raise outcome
        return partition

    async def begin(
        self, topic: str, payload: bytes, mode: int, done: Callable[[Placed | Exception], None]
    ) -> int:
        """Publish one record and call `done` later; return its partition."""
        named(topic)
        await self._shapes.of(topic)
        partition = self.begin_known(topic, payload, mode, done)
        if partition is None:  # not there yet: the publish makes it, with one partition
            partition = 0
            self._lanes.publish(LaneKey(topic, 0, mode_of(mode)), Outgoing(payload), done)
        return partition

    def begin_known(
        self, topic: str, payload: bytes, mode: int, done: Callable[[Placed | Exception], None]
    ) -> int | None:
        """Do the same at once where the topic is known; None, with nothing done, where not."""
        shape = self._shapes.known(topic)
        if shape is None:
            return None
        partition = shape.partition_for(None) if shape.partitions > 1 else 0
        self._lanes.publish(LaneKey(topic, partition, mode_of(mode)), Outgoing(payload), done)
        return partition

    async def publish_batch(self, topic: str, payloads: Sequence[bytes], mode: int) -> int:
        """Publish many records: all of them, or raise; return their partition."""
        chosen = mode_of(mode)
        named(topic)
        if not payloads:
            raise InvalidArgument("there is nothing to publish")
        shape = await self._shapes.of(topic)
        partition = shape.partition_for(None)
        bytes_max = min(BATCH_BYTES, shape.batch_bytes_max)
        if sum(map(len, payloads)) + 16 * len(payloads) < bytes_max // 2:
            batches: tuple[bytearray, ...] = (encode(list(payloads)),)
            request = PublishRequest(topic=topic, partition=partition, batches=batches, mode=chosen)
        else:
            records = [Outgoing(payload) for payload in payloads]
            request = PublishRequest(
                topic=topic,
                partition=partition,
                batches=record_batches(records, bytes_max=bytes_max),
                mode=chosen,
            )
        for ack in await self._broker.publish(request):
            if ack.code:
                raise error_of_ack(ack)
        return partition


def named(topic: str) -> str:
    """Return a topic's name; raises `InvalidArgument` without one."""
    if not topic:
        raise InvalidArgument("topic is required")
    return topic


def mode_of(number: int) -> DeliveryMode:
    """Return the delivery mode; the profile's numbers are ours."""
    try:
        return DeliveryMode(number)
    except ValueError:
        raise InvalidArgument(f"there is no delivery mode {number}") from None
