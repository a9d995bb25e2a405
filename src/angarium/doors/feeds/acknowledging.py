"""Acknowledgements that come one by one, told to the group together.

A settlement is answered once it is committed, and a member that waits for each before it says the
next gets no further than one record per commit. So what is said while some are under way waits, and
goes with the next call: each a settlement of its own, since one that is refused is refused whole.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.api import Settlement, Verb

if TYPE_CHECKING:
    from angarium.api import Consumption

WAITING_MAX: Final = 4_096
"""Acknowledgements that wait. At the bound a member that says more waits with them."""


class Acknowledgements:
    """What one member of a group says it is done with."""

    def __init__(self, consumption: Consumption) -> None:
        self._consumption = consumption
        self._waiting: list[Settlement] = []
        self._telling: asyncio.Task[None] | None = None

    async def say(self, topic: str, partition: int, ranges: tuple[int, ...]) -> None:
        """Take an acknowledgement; raises what became of an earlier one that could not be told."""
        if self._telling is not None and self._telling.done():
            telling, self._telling = self._telling, None
            telling.result()
        self._waiting.append(Settlement(topic, partition, Verb.ACK, ranges))
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell())
        if len(self._waiting) >= WAITING_MAX:
            await asyncio.wait((self._telling,))

    async def told(self) -> None:
        """Return when everything that was said is committed, or cannot be."""
        if self._telling is not None:
            await asyncio.wait((self._telling,))
            self._telling.exception()  # nobody is left to hear of it: what was not told comes again

    async def _tell(self) -> None:
        while self._waiting:
            some, self._waiting = self._waiting, []
            await self._consumption.settle(some)
