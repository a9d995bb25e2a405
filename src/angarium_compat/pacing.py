"""Giving early answers a moment, so that what comes meanwhile travels together.

An EVENTUAL publish is answered as soon as the leader has it, so nothing waits behind it, and
records that come one by one would each be an entry of the log: the work of a batch for each record.
Holding the answer back for a moment lets the next records gather. For a client that publishes one
record after the other none ever gathers, so it is held back only now and then, to find out.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar, cast

from angarium.batch import Batch
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from angarium.api import Ack, Broker, PublishRequest

PACE_S: Final = 0.003
"""How long an early answer is held back while others come."""

PROBE_EVERY: Final = 32
"""For such a client every 32nd answer is held back: do others come meanwhile?"""

ALONE_AFTER: Final = 8
"""After this many single records in a row, although their answers were held back, the client is
taken for one that publishes one record after the other."""

PARTITIONS_MAX: Final = 10_000
"""Partitions watched. At the limit all are forgotten and observed again."""


B = TypeVar("B", bound="Broker")


def paced(broker: B) -> B:
    """Return a broker that does what `broker` does, and holds early answers back."""
    return cast("B", _Paced(broker))


class _Paced:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._pacing = Pacing()

    def __getattr__(self, name: str) -> object:
        return getattr(self._broker, name)

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        acks = await self._broker.publish(request)
        await self._pacing.answer(request)
        return acks


class Pacing:
    """Knows where records come faster than they are answered."""

    def __init__(self) -> None:
        self._singles: dict[tuple[str, int], int] = {}
        """By partition, how many single records came in a row; absent: taken for alone."""

    async def answer(self, request: PublishRequest) -> None:
        """Return when a publish that was taken is to be answered."""
        if request.mode is not DeliveryMode.EVENTUAL:
            return
        partition = (request.topic, request.partition)
        if len(self._singles) >= PARTITIONS_MAX:
            self._singles.clear()
        if len(request.batches) > 1 or len(Batch.trusted(request.batches[0])) > 1:
            singles = self._singles[partition] = 0
        else:
            singles = self._singles[partition] = self._singles.get(partition, ALONE_AFTER) + 1
        if singles <= ALONE_AFTER or (singles - ALONE_AFTER) % PROBE_EVERY == 0:
            await asyncio.sleep(PACE_S)
