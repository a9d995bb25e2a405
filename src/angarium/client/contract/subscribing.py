"""A subscription at another process, as the contract has it: it ends when its stream does."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, cast

from angarium.api import Delivery
from angarium.batch import split
from angarium.wire.error_codec import Failure, error_of
from angarium.wire.operations import Drop, Ended, Operation, Told, Want, Wants

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from angarium.api import Interest
    from angarium.wire import Connection


class RemoteSubscription:
    """Some partitions, delivered by one node."""

    def __init__(self, connection: Connection, interests: Sequence[Interest]) -> None:
        """Open the stream; a refusal shows when the first delivery is asked for."""
        self._numbers = count(1)
        self._places: dict[int, tuple[str, int]] = {}
        wants = Wants(tuple(self._want(one) for one in interests))
        self._stream = connection.open_stream(Operation.SUBSCRIBE, wants)

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        while (frame := await self._stream.receive()) is not None:
            told: Told = frame.read(cast("type[Told]", Told))
            place = self._places.get(told.number)
            if place is None:
                continue
            if isinstance(told, Ended):
                raise error_of(Failure(told.code, told.message))
            yield Delivery(
                topic=place[0],
                partition=place[1],
                batches=tuple(split(frame.payload)),
                from_offset=told.from_offset,
                expired=told.expired,
                live=told.live,
            )

    async def add(self, interests: Sequence[Interest]) -> None:
        """Deliver these partitions, too."""
        for one in interests:
            await self._stream.send(self._want(one))

    async def drop(self, topic: str, partition: int) -> None:
        """Deliver nothing more of a partition."""
        for number in [one for one, place in self._places.items() if place == (topic, partition)]:
            del self._places[number]
            await self._stream.send(Drop(number))

    async def close(self) -> None:
        """End it."""
        self._stream.cancel()

    def _want(self, interest: Interest) -> Want:
        number = next(self._numbers)
        self._places[number] = (interest.topic, interest.partition)
        return Want(number, interest.topic, interest.partition, interest.start)
