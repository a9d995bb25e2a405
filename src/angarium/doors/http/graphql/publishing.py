"""The mutations that publish."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from angarium.api import PublishRequest
from angarium.doors.http.contract_values import error_of_ack
from angarium.doors.http.lanes import LaneKey, Placed
from angarium.doors.http.packing import packed
from angarium.doors.http.records import Outgoing, bytes_of
from angarium.errors import InvalidArgument
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium import api
    from angarium.api import Broker
    from angarium.doors.http.lanes import Lanes
    from angarium.doors.partitions import TopicShapes


class AckView(NamedTuple):
    """What became of records, as the schema shows it."""

    topic: str
    partition: int
    mode: DeliveryMode
    offset: int | None
    next_offset: int | None
    append_time_us: int | None
    provisional: bool
    duplicate: bool
    subscribers: int


class PublishView(NamedTuple):
    """What a mutation that publishes answers: success, or it would have been an error."""

    success: bool
    acks: list[AckView]

    @property
    def ack(self) -> AckView | None:
        return self.acks[0] if self.acks else None


class GraphqlPublishing:
    """Publishes one record or many."""

    def __init__(self, broker: Broker, shapes: TopicShapes, lanes: Lanes) -> None:
        self._broker = broker
        self._shapes = shapes
        self._lanes = lanes

    async def publish(self, topic: str, **given: Any) -> PublishView:
        """Publish one record."""
        done: asyncio.Future[PublishView | Exception] = asyncio.get_running_loop().create_future()

        def settle(outcome: PublishView | Exception) -> None:
            if not done.done():
                done.set_result(outcome)

        await self._shapes.of(topic)
        if not self.begin(settle, topic, **given):
            # There is no such topic: the publish itself decides whether it is made.
            self.begin(settle, topic, **{**given, "partition": 0})
        outcome = await done
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def begin(
        self,
        done: Callable[[PublishView | Exception], None],
        topic: str,
        payload: str | None = None,
        payloadBase64: str | None = None,  # noqa: N803  (the schema's names)
        key: str | None = None,
        keyBase64: str | None = None,  # noqa: N803
        headers: list[dict[str, Any]] | None = None,
        partition: int | None = None,
        mode: str | None = None,
    ) -> bool:
        """Publish one record and call `done` later, without a task.

        False, with nothing done, if somebody has to be asked first where the record goes.
        """
        record = Outgoing(
            bytes_of("payload", payload, payloadBase64),
            bytes_of("key", key, keyBase64),
            tuple(
                (one["name"], bytes_of("value", one.get("value"), one.get("valueBase64")))
                for one in headers or ()
            ),
        )
        if partition is None:
            shape = self._shapes.known(topic)
            if shape is None:
                return False
            partition = shape.partition_for(record.key)

        def settle(outcome: Placed | Exception) -> None:
            if isinstance(outcome, Exception):
                done(outcome)
            else:
                done(PublishView(True, [_view(outcome.ack, place=outcome.place)]))

        chosen = None if mode is None else DeliveryMode[mode]
        self._lanes.publish(LaneKey(topic, partition, chosen), record, settle)
        return True

    async def publish_batch(
        self,
        topic: str,
        payloads: list[str] | None = None,
        payloadsBase64: list[str] | None = None,  # noqa: N803  (the schema's name)
        keys: list[str | None] | None = None,
        partition: int | None = None,
        mode: str | None = None,
    ) -> PublishView:
        """Publish many records."""
        values = _values(payloads, payloadsBase64)
        if keys is not None and len(keys) != len(values):
            raise InvalidArgument("there is a key, or null, for each payload")
        records = [
            Outgoing(value, bytes_of("key", key, None))
            for value, key in zip(values, keys or [None] * len(values), strict=True)
        ]
        shape = await self._shapes.of(topic)
        per_partition, _ = packed(records, shape, partition=partition)
        chosen = None if mode is None else DeliveryMode[mode]
        answers = await asyncio.gather(
            *(
                self._broker.publish(
                    PublishRequest(topic=topic, partition=number, batches=batches, mode=chosen)
                )
                for number, batches in per_partition.items()
            )
        )
        acks = [ack for answer in answers for ack in answer]
        for ack in acks:
            if ack.code:
                raise error_of_ack(ack)
        return PublishView(True, [_view(ack) for ack in acks])


def _values(texts: list[str] | None, in_base64: list[str] | None) -> list[bytes | None]:
    if texts and in_base64:
        raise InvalidArgument("payloads and payloadsBase64 exclude each other")
    if not texts and not in_base64:
        raise InvalidArgument("there is nothing to publish")
    return [bytes_of("payloads", None, one) for one in in_base64 or ()] or [
        one.encode() for one in texts or ()
    ]


def _view(ack: api.Ack, *, place: int | None = None) -> AckView:
    offset: int | None = ack.base_offset
    after: int | None = ack.next_offset
    if place is not None and offset is not None:
        offset, after = offset + place, offset + place + 1
    return AckView(
        ack.topic,
        ack.partition,
        ack.mode,
        offset,
        after,
        ack.append_time,
        ack.provisional,
        ack.duplicate,
        ack.subscribers,
    )
