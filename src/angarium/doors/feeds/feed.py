"""What comes to one reader: a topic's records, or what a member of a group is lent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from angarium.api.stored_records import delivered, lent
from angarium.doors.feeds.acknowledging import Acknowledgements

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from angarium.api import Consumption, Subscription
    from angarium.batch import Record

PORTION_RECORDS: Final = 500
"""Records in one portion at the most."""

PORTION_BYTES: Final = 256 << 10
"""About how many bytes of values one portion has at the most; a larger record comes alone."""


class Portion(NamedTuple):
    """Records of one partition that go out together."""

    topic: str
    partition: int
    records: list[Record]
    live: bool = False
    """Whether they pass in PERFORMANCE mode: they have no offsets."""
    attempt: int = 1
    lease_ms: int = 0
    """Of a group: which attempt this is, and how long they are lent."""


class Feed(Protocol):
    """What comes to one reader, without end."""

    def __aiter__(self) -> AsyncIterator[Portion]:
        """Yield what comes; raises what broke it."""

    async def acknowledge(self, topic: str, partition: int, ranges: tuple[int, ...]) -> None:
        """Settle records; outside of a group there is nothing to settle."""

    async def close(self, *, lost: bool = False) -> None:
        """End it; a member leaves its group, in good order unless it was `lost`."""


class TopicFeed:
    """The records of a subscription."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    async def __aiter__(self) -> AsyncIterator[Portion]:
        async for delivery in self._subscription:
            for _, records in delivered(delivery):
                for some in portions(records):
                    yield Portion(delivery.topic, delivery.partition, some, delivery.live)

    async def acknowledge(self, topic: str, partition: int, ranges: tuple[int, ...]) -> None:
        del topic, partition, ranges  # nothing is kept outside of a group

    async def close(self, *, lost: bool = False) -> None:
        del lost
        await self._subscription.close()


class GroupFeed:
    """What one member of a group is lent."""

    def __init__(self, consumption: Consumption) -> None:
        self.consumption = consumption
        self._acknowledgements = Acknowledgements(consumption)

    async def __aiter__(self) -> AsyncIterator[Portion]:
        async for one in self.consumption:
            for some in portions(lent(one)):
                yield Portion(one.topic, one.partition, some, False, one.attempt, one.lease_ms)

    async def acknowledge(self, topic: str, partition: int, ranges: tuple[int, ...]) -> None:
        await self._acknowledgements.say(topic, partition, ranges)

    async def close(self, *, lost: bool = False) -> None:
        """Leave the group, once what was acknowledged is."""
        try:
            await self._acknowledgements.told()
        finally:
            await self.consumption.close(lost=lost)


def portions(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield records in lists that go out together."""
    portion: list[Record] = []
    size = 0
    for record in records:
        portion.append(record)
        size += len(record.value or b"")
        if len(portion) == PORTION_RECORDS or size >= PORTION_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
