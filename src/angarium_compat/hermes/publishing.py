"""Publishing in the profile's terms: records have a value, and go where the topic's turn says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.doors.intake import Intake, Outgoing
from angarium.doors.intake.acks import first_refusal
from angarium.doors.intake.packing import Columns, packed
from angarium.errors import InvalidArgument
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from angarium.api import Broker
    from angarium.doors.intake import Placed


_MODES: Final = {int(mode): mode for mode in DeliveryMode}


class HermesPublishing:
    """Publishes for both listeners of the profile."""

    def __init__(self, broker: Broker) -> None:
        self._intake = Intake(broker)

    def begin(
        self, topic: str, payload: bytes, mode: int, done: Callable[[Placed | Exception], None]
    ) -> Coroutine[None, None, None] | None:
        """Publish one record and call `done` later. What is returned has to be awaited."""
        return self._intake.send(named(topic), Outgoing(payload), done, mode=mode_of(mode))

    async def publish_batch(self, topic: str, payloads: Sequence[bytes], mode: int) -> None:
        """Publish many records: all of them, or raise. None at all are all of them."""
        chosen = mode_of(mode)
        named(topic)
        if not payloads:
            return
        shape = await self._intake.shapes.of(topic)
        partition = shape.partition_for(None)
        per_partition, _ = packed(Columns(list(payloads)), shape, partition=partition)
        acks = await self._intake.publish(topic, partition, per_partition[partition], chosen)
        refusal = first_refusal(acks)
        if refusal is not None:
            raise refusal


def named(topic: str) -> str:
    """Return a topic's name; raises `InvalidArgument` without one."""
    if not topic:
        raise InvalidArgument("topic is required")
    return topic


def mode_of(number: int) -> DeliveryMode:
    """Return the delivery mode; the profile's numbers are ours, and any other one is CONSISTENT."""
    return _MODES.get(number, DeliveryMode.CONSISTENT)
