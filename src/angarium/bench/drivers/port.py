"""What the load asks of a protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.bench.plan import Place


class Received(NamedTuple):
    """Records of one partition that came together."""

    place: Place
    values: Sequence[bytes | None]


class Publisher(Protocol):
    """One client with connections of its own."""

    async def publish(self, place: Place, values: Sequence[bytes]) -> None:
        """Publish records and return when they are acknowledged; raises `AngariumError`."""

    async def close(self) -> None:
        """Hang up."""


class Subscriber(Protocol):
    """Receives everything that is published to some partitions."""

    async def receive(self) -> Received | None:
        """Return what came next; None once it is closed."""

    async def close(self) -> None:
        """Stop receiving."""


class Driver(Protocol):
    """Makes publishers and subscribers for one cluster."""

    async def publisher(self) -> Publisher:
        """Return a new one; it is connected."""

    async def subscriber(self, places: Sequence[Place], *, from_start: bool) -> Subscriber:
        """Return one that receives what comes from now on, or everything there ever was."""

    async def close(self) -> None:
        """Close what all of them shared."""
