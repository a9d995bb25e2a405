"""What members of a group have in common whose acknowledgements are answered later."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.wire.errors import ConnectionLost

if TYPE_CHECKING:
    from collections.abc import Hashable

    from angarium.bench.drivers.port import Lent

ANSWER_TIMEOUT_S: Final = 30.0
"""Acknowledgements that are not answered by then are given up."""

ARRIVED_MAX: Final = 10_000
"""Deliveries that wait to be taken; credit keeps them far below."""


class Hands:
    """What a member has been handed, and what it has said about that."""

    def __init__(self) -> None:
        self.in_hand = 0
        """Records handed over whose acknowledgement has not been answered."""
        self._arrived: asyncio.Queue[Lent | None] = asyncio.Queue(ARRIVED_MAX)
        self._unanswered: dict[Hashable, int] = {}
        self._is_answered = asyncio.Event()
        self._is_answered.set()

    async def hand(self, lent: Lent) -> None:
        """Note what has come."""
        self.in_hand += len(lent.values)
        await self._arrived.put(lent)

    async def take(self) -> Lent | None:
        """Return what came next; None once it is over."""
        return await self._arrived.get()

    def say(self, name: Hashable, lent: Lent) -> None:
        """Note that `lent` is being acknowledged, under a name by which the answer is known."""
        self._unanswered[name] = len(lent.values)
        self._is_answered.clear()

    def hear(self, name: Hashable) -> None:
        """Note that the acknowledgement with this name has been answered."""
        self.in_hand -= self._unanswered.pop(name, 0)
        if not self._unanswered:
            self._is_answered.set()

    async def flush(self) -> None:
        """Wait until everything that was said has been answered."""
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await self._is_answered.wait()
        except TimeoutError:
            raise ConnectionLost("acknowledgements were not answered") from None

    def end(self) -> None:
        """Tell the reader that there is no more."""
        self._unanswered.clear()
        self._is_answered.set()
        self._arrived.put_nowait(None)
