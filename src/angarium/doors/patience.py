"""Waiting out elections, for clients that were never told to try again.

A client of ours repeats what failed definitely and may succeed soon: a partition between two
leaders, a node that is just coming up. It asks the other nodes meanwhile, which finds a leader even
if this node is cut off, so the wire's door never waits. Whoever comes through another door, or with
the client of an earlier broker, takes the first error for the end of it. So these doors repeat in
their place, for a few seconds. Only what changed nothing is repeated: whatever may have been stored
is told as it is.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar, cast

from angarium.doors.status import UNAVAILABLE, status_of
from angarium.errors import AngariumError
from angarium.retrying import Backoff, Tries

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from angarium.api import (
        Ack,
        Broker,
        ConsumeRequest,
        Consumption,
        FetchRequest,
        FetchResult,
        GroupBroker,
        Interest,
        PublishRequest,
        Start,
        Subscription,
        TopicConfig,
        TopicInfo,
    )
    from angarium.ids import Offset

PATIENCE_S: Final = 5.0
"""How long a request waits for the cluster. Then the client is told what the last try was told."""

PAUSES: Final = Backoff(first_s=0.02, longest_s=0.2)
"""Between two tries."""

T = TypeVar("T")
B = TypeVar("B", bound="GroupBroker")


def patient(broker: B) -> B:
    """Return a broker that does what `broker` does, and waits where that cannot for a moment."""
    return cast("B", _Patient(cast("Broker", broker)))


async def patiently(attempt: Callable[[], Awaitable[T]]) -> T:
    """Return what `attempt` returns, repeated while it fails definitely and for a moment only."""
    tries = Tries(PAUSES, deadline=asyncio.get_running_loop().time() + PATIENCE_S)
    while True:
        try:
            return await attempt()
        except AngariumError as error:
            # The table gives this status to nothing that may have had an effect.
            if status_of(error) is not UNAVAILABLE or not await tries.pause():
                raise


class _Patient:
    """Only what needs a leader waits for one; everything else passes through."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def __getattr__(self, name: str) -> object:
        return getattr(self._broker, name)

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        return await patiently(lambda: self._broker.publish(request))

    async def fetch(self, request: FetchRequest) -> FetchResult:
        return await patiently(lambda: self._broker.fetch(request))

    async def find_offset(self, topic: str, partition: int, start: Start) -> Offset:
        return await patiently(lambda: self._broker.find_offset(topic, partition, start))

    async def subscribe(self, interests: Sequence[Interest]) -> Subscription:
        return await patiently(lambda: self._broker.subscribe(interests))

    async def consume(self, request: ConsumeRequest) -> Consumption:
        return await patiently(lambda: self._broker.consume(request))

    async def create_topic(self, name: str, *, partitions: int, config: TopicConfig) -> TopicInfo:
        return await patiently(
            lambda: self._broker.create_topic(name, partitions=partitions, config=config)
        )
