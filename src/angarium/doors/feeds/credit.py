"""How many records a reader takes before it says that it takes more."""

from __future__ import annotations

import asyncio

from angarium.errors import InvalidArgument


class Credit:
    """How many records may still be sent; below 0 after more than was left went out together."""

    def __init__(self, records: int | None) -> None:
        """Begin with so many; None: there is no bound."""
        self.is_bounded = records is not None
        self.left = _checked(records or 0)
        self._changed = asyncio.Event()
        self._is_final = False

    def add(self, records: int) -> None:
        """Let so many records more go out."""
        self.left += _checked(records)
        self._changed.set()

    def close(self) -> None:
        """No more credit will come."""
        self._is_final = True
        self._changed.set()

    @property
    def is_over(self) -> bool:
        """Whether there is none and will never be."""
        return self._is_final and self.is_bounded and self.left <= 0

    async def some(self) -> bool:
        """Wait until there is credit; False if there is none and will never be."""
        while self.is_bounded and self.left <= 0:
            if self._is_final:
                return False
            self._changed.clear()
            await self._changed.wait()
        return True


def _checked(records: int) -> int:
    if records < 0:
        raise InvalidArgument("credit is not negative")
    return records
