"""`static`: a list of addresses that somebody has written down.

Hosts may be names: they are resolved whenever they are dialled, and never remembered.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.discovery.port import Found, NothingFound, found

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from angarium.addresses import Address


class StaticDiscovery:
    """Always the same addresses."""

    name = "the settings"

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._found = found(addresses)

    async def find(self) -> Found:
        """Return the list."""
        if not self._found.addresses:
            raise NothingFound("there is no address in the settings")
        return self._found

    async def follow(self) -> AsyncGenerator[Found, None]:
        """Yield the list, once: it does not change."""
        yield self._found
        await asyncio.get_running_loop().create_future()
