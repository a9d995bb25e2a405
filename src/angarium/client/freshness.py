"""Keeping the map of the cluster fresh, so that a client always knows nodes that are there.

Nodes come and go while a client is connected to one of them and has no reason to ask anything. When
that one goes too, only what was heard before helps. So it is asked who is there whenever a
connection has come or gone, and now and then although nothing happens; who leads the topics in use
is asked then, too. While nobody answers nothing is forgotten.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError

if TYPE_CHECKING:
    from angarium.client.metadata import Metadata
    from angarium.client.routes import Routes

SETTLE_S: Final = 1.0
"""After a connection has come or gone it is asked within so long, once for all of that time: by
chance sooner or later, because others have lost the same node."""

SPREAD: Final = 0.25
"""The share by which the time between two looks is longer or shorter, by chance."""


class Freshness:
    """A task that asks, from its making to its close."""

    def __init__(self, routes: Routes, metadata: Metadata, *, refresh_s: float) -> None:
        self._routes = routes
        self._metadata = metadata
        self._refresh_s = refresh_s
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop asking."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            rest_s = self._refresh_s * random.uniform(1 - SPREAD, 1 + SPREAD)
            with suppress(TimeoutError):
                async with asyncio.timeout(rest_s):
                    while True:
                        await self._routes.doubted.wait()
                        await self._ask_again()
            await self._ask_all()

    async def _ask_again(self) -> None:
        await asyncio.sleep(SETTLE_S * random.uniform(0.5, 1.0))
        # Whoever has asked meanwhile, for instance to find a leader, has done it for us.
        if self._routes.doubted.is_set():
            self._routes.doubted.clear()  # what happens from now on is another reason
            with suppress(AngariumError):
                await self._metadata.status()

    async def _ask_all(self) -> None:
        with suppress(AngariumError):
            await self._metadata.status()
        for name in list(self._routes.topics):
            with suppress(AngariumError):
                await self._metadata.refresh(name)
