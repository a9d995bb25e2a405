"""What the load asks of a protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import TopicPartition


class Received(NamedTuple):
    """Records of one partition that came together."""

    partition: TopicPartition
    values: Sequence[bytes | None]


class Publisher(Protocol):
    """One client with connections of its own."""

    async def publish(self, partition: TopicPartition, values: Sequence[bytes]) -> None:
        """Publish records and return when they are acknowledged; raises `AngariumError`."""

    async def close(self) -> None:
        """Hang up."""


class Subscriber(Protocol):
    """Receives everything that is published to some partitions."""

    async def receive(self) -> Received | None:
        """Return what came next; None once it is closed."""

    async def close(self) -> None:
        """Stop receiving."""


class Lent(NamedTuple):
    """Records of one partition that a member of a group was handed together."""

    partition: TopicPartition
    values: Sequence[bytes | None]
    offsets: Sequence[int]
    source: Any = None
    """For the driver."""

    def one_by_one(self) -> list[Lent]:
        """Return a part for each record."""
        return [
            self._replace(values=[value], offsets=[offset])
            for value, offset in zip(self.values, self.offsets, strict=True)
        ]


class Member(Protocol):
    """Takes part in a consumer group."""

    async def receive(self) -> Lent | None:
        """Return what was handed over next; None once it is over."""

    async def acknowledge(self, lent: Lent) -> None:
        """Say that these are done with, without waiting for the answer."""

    async def flush(self) -> None:
        """Wait until everything that was said has been answered."""

    async def vanish(self) -> int:
        """End without a word; return how many records were in hand, which may come again."""

    async def close(self) -> None:
        """Leave."""


class Driver(Protocol):
    """Makes publishers and subscribers for one cluster."""

    async def publisher(self) -> Publisher:
        """Return a new one; it is connected."""

    async def subscriber(
        self, partitions: Sequence[TopicPartition], *, from_start: bool
    ) -> Subscriber:
        """Return one that receives what comes from now on, or everything there ever was."""

    async def member(self, group: str, topics: Sequence[str], *, credit: int) -> Member:
        """Return one that takes part in a queue group and holds up to `credit` records."""

    async def close(self) -> None:
        """Close what all of them shared."""
