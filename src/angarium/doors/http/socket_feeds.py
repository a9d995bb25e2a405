"""What comes over a WebSocket under one id: a topic's records, or what a group is lent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from angarium.api import Interest, Place, Start
from angarium.doors.http.positions import word_of
from angarium.doors.http.records import readable, record_out, records_of
from angarium.errors import AngariumError
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from angarium.api import Broker, Consumption, Delivery, Handed, Subscription
    from angarium.batch import Record
    from angarium.doors.http.server import WebSocket

MESSAGE_RECORDS: Final = 500
"""Records in one message at the most."""

MESSAGE_BYTES: Final = 256 << 10
"""About how many bytes of values one message has at the most; a larger record comes alone."""

_encode: Final = msgspec.json.Encoder().encode


class TopicFeed:
    """The records of a topic."""

    def __init__(
        self,
        subscription: Subscription,
        websocket: WebSocket,
        *,
        id: str,  # noqa: A002  (what the client calls it)
        positions: dict[int, int],
        in_base64: bool,
        credit: int | None,
    ) -> None:
        self._subscription = subscription
        self._websocket = websocket
        self._id = id
        self._positions = positions
        self._in_base64 = in_base64
        self._credit = credit
        self._changed = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def begun(
        cls,
        broker: Broker,
        websocket: WebSocket,
        *,
        id: str,  # noqa: A002
        topic: str,
        starts: Mapping[int, Start],
        in_base64: bool,
        credit: int | None,
    ) -> TopicFeed:
        """Subscribe; raises what the broker says."""
        positions: dict[int, int] = {}
        for number, start in starts.items():
            positions[number] = await broker.find_offset(topic, number, start)
        interests = [
            Interest(topic=topic, partition=number, start=Start(Place.OFFSET, offset))
            for number, offset in positions.items()
        ]
        subscription = await broker.subscribe(interests)
        return cls(
            subscription,
            websocket,
            id=id,
            positions=positions,
            in_base64=in_base64,
            credit=credit,
        )

    @property
    def facts(self) -> dict[str, object]:
        """What the client is told when it begins."""
        return {"position": word_of(list(self._positions.values()))}

    async def more_credit(self, records: int) -> None:
        """Let so many records more go out."""
        if self._credit is not None:
            self._credit += records
            self._changed.set()

    def stop(self) -> None:
        """Send nothing more."""
        self._closing = asyncio.get_running_loop().create_task(self._subscription.close())

    async def run(self) -> None:
        """Send until told to stop; raises what broke it."""
        try:
            async for delivery in self._subscription:
                await self._send(delivery)
        finally:
            if self._closing is None:
                await self._subscription.close()

    async def _send(self, delivery: Delivery) -> None:
        number = delivery.partition
        for buffer in delivery.batches:
            batch = readable(buffer, topic=delivery.topic, partition=number)
            some = records_of(
                batch,
                from_offset=delivery.from_offset,
                expired=delivery.expired,
                live=delivery.live,
            )
            for portion in portions(some):
                await self._some_credit(len(portion))
                if not delivery.live:
                    self._positions[number] = portion[-1].offset + 1
                shown = [
                    record_out(one, partition=number, in_base64=self._in_base64, live=delivery.live)
                    for one in portion
                ]
                message = {
                    "type": "records",
                    "id": self._id,
                    "topic": delivery.topic,
                    "records": shown,
                    "position": word_of(list(self._positions.values())),
                }
                await self._websocket.send(_encode(message))

    async def _some_credit(self, records: int) -> None:
        """Wait until there is any, and take what is needed; it may go below zero by a portion."""
        if self._credit is None:
            return
        while self._credit <= 0:
            self._changed.clear()
            await self._changed.wait()
        self._credit -= records


class GroupFeed:
    """What one member of a group is lent."""

    def __init__(
        self,
        consumption: Consumption,
        websocket: WebSocket,
        *,
        id: str,  # noqa: A002
        in_base64: bool,
    ) -> None:
        self.consumption = consumption
        self._websocket = websocket
        self._id = id
        self._in_base64 = in_base64
        self._closing: asyncio.Task[None] | None = None

    @property
    def facts(self) -> dict[str, object]:
        """What the client is told when it begins."""
        return {"member": self.consumption.member, "kind": self.consumption.kind.name.lower()}

    async def more_credit(self, records: int) -> None:
        """Let so many records be on loan."""
        await self.consumption.set_credit(records)

    def stop(self) -> None:
        """Leave the group."""
        self._closing = asyncio.get_running_loop().create_task(self.consumption.close())

    async def run(self) -> None:
        """Send until told to stop; raises what broke it."""
        is_lost = True
        try:
            async for handed in self.consumption:
                await self._send(handed)
            is_lost = False
        except AngariumError:
            is_lost = False
            raise
        finally:
            if self._closing is None:
                await self.consumption.close(lost=is_lost)

    async def _send(self, handed: Handed) -> None:
        for portion in portions(lent_records(handed)):
            shown = [
                record_out(one, partition=handed.partition, in_base64=self._in_base64)
                for one in portion
            ]
            message: dict[str, Any] = {
                "type": "records",
                "id": self._id,
                "topic": handed.topic,
                "partition": handed.partition,
                "records": shown,
                "attempt": handed.attempt,
                "lease_ms": handed.lease_ms,
            }
            await self._websocket.send(_encode(message))


def lent_records(handed: Handed) -> Iterable[Record]:
    """Yield the records that a consumer was handed, and not their neighbours in the batches."""
    ranges = list(zip(handed.ranges[::2], handed.ranges[1::2], strict=True))
    for buffer in handed.batches:
        batch = readable(buffer, topic=handed.topic, partition=handed.partition)
        for first, past in ranges:
            if first < batch.next_offset and past > batch.base_offset:
                yield from batch.slice(Offset(first), Offset(past))


def portions(records: Iterable[Record]) -> Iterable[list[Record]]:
    """Yield records in lists that make a message each."""
    portion: list[Record] = []
    size = 0
    for record in records:
        portion.append(record)
        size += len(record.value or b"")
        if len(portion) == MESSAGE_RECORDS or size >= MESSAGE_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
