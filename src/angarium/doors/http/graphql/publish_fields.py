"""The mutations that publish."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from angarium.doors.http.record_json import bytes_of
from angarium.doors.intake import Outgoing
from angarium.doors.intake.acks import first_refusal
from angarium.doors.intake.packing import packed
from angarium.errors import InvalidArgument
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from angarium import api
    from angarium.doors.intake import Intake, Placed


OFFSETS: Final = frozenset({"offset", "nextOffset"})
"""Fields that differ between records that travelled together; they share all others."""


_NOTHING: Final = (None,) * 5


class AckView:
    """What became of records, as the schema shows it: an ack, or what it says of one record."""

    def __init__(self, ack: api.Ack, row: int | None = None) -> None:
        self._ack = ack
        self.offset, self.next_offset = ack.span(row)
        self.append_time_us = ack.append_time

    def __getattr__(self, name: str) -> Any:
        """Return what is shown as the ack has it."""
        return getattr(self._ack, name)


class PublishView(NamedTuple):
    """What a mutation that publishes answers: success, or it would have been an error."""

    success: bool
    acks: list[AckView]

    @classmethod
    def of(cls, placed: Placed) -> PublishView:
        """Return what is told about one record."""
        return cls(True, [AckView(placed.ack, placed.row)])

    @property
    def ack(self) -> AckView | None:
        return self.acks[0] if self.acks else None


class GraphqlPublishing:
    """Publishes one record or many."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    async def publish(self, topic: str, **given: Any) -> PublishView:
        record, partition, mode = _record(**given)
        placed = await self._intake.sent(topic, record, partition=partition, mode=mode)
        return PublishView.of(placed)

    def begin(
        self, done: Callable[[Placed | Exception], None], topic: str, **given: Any
    ) -> Coroutine[None, None, None] | None:
        """Publish one record and call `done` later; what is returned has to be awaited."""
        record, partition, mode = _record(**given)
        return self._intake.send(topic, record, done, partition=partition, mode=mode)

    async def publish_batch(
        self,
        topic: str,
        payloads: list[str] | None = None,
        payloads_base64: list[str] | None = None,
        keys: list[str | None] | None = None,
        partition: int | None = None,
        mode: str | None = None,
    ) -> PublishView:
        values = _values(payloads, payloads_base64)
        if keys is not None and len(keys) != len(values):
            raise InvalidArgument("there is a key, or null, for each payload")
        records = [
            Outgoing(value, bytes_of("key", key, None))
            for value, key in zip(values, keys or [None] * len(values), strict=True)
        ]
        shape = await self._intake.shapes.of(topic)
        per_partition, _ = packed(records, shape, partition=partition)
        acks: list[api.Ack] = []
        layout = None if keys is None or partition is not None else shape.layout.number
        for answer in await self._intake.publish_each(topic, per_partition, _mode(mode), layout):
            if isinstance(answer, Exception):
                raise answer
            acks += answer
        refusal = first_refusal(acks)
        if refusal is not None:
            raise refusal
        return PublishView(True, [AckView(ack) for ack in acks])


def _record(
    payload: str | None = None,
    payload_base64: str | None = None,
    key: str | None = None,
    key_base64: str | None = None,
    headers: list[dict[str, Any]] | None = None,
    partition: int | None = None,
    mode: str | None = None,
) -> tuple[Outgoing, int | None, DeliveryMode | None]:
    """Return the record that a mutation has, and where and how it wants it published."""
    if payload is not None and (payload_base64, key, key_base64, headers, mode) == _NOTHING:
        return Outgoing(payload.encode()), partition, None  # as most are
    pairs = tuple(
        (one["name"], bytes_of("value", one.get("value"), one.get("valueBase64")))
        for one in headers or ()
    )
    value, name = bytes_of("payload", payload, payload_base64), bytes_of("key", key, key_base64)
    return Outgoing(value, name, pairs), partition, _mode(mode)


def _mode(name: str | None) -> DeliveryMode | None:
    return None if name is None else DeliveryMode[name]


def _values(texts: list[str] | None, in_base64: list[str] | None) -> list[bytes | None]:
    if texts and in_base64:
        raise InvalidArgument("payloads and payloadsBase64 exclude each other")
    if texts is None and in_base64 is None:
        raise InvalidArgument("there is nothing to publish")
    return [bytes_of("payloads", None, one) for one in in_base64 or ()] or [
        one.encode() for one in texts or ()
    ]
