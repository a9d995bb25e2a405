"""How whoever reads is slowed down, as those see it who hand records out."""

from __future__ import annotations

from typing import Protocol


class Pace(Protocol):
    """Counts what is handed out to somebody who may have only so much."""

    def read(self, size: int) -> None:
        """Count bytes that are handed out."""
        ...

    async def until_paid(self) -> None:
        """Wait until more may be handed out."""
        ...


class Paced(Protocol):
    """Somebody whose pace may be limited; that can change at any time."""

    @property
    def toll(self) -> Pace | None:
        """None for who may have as much as there is."""
        ...
