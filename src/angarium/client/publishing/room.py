"""A bound on the bytes that wait, shared fairly: first come, first served."""

from __future__ import annotations

import asyncio
from collections import deque


class Room:
    """Counts bytes in and out. One item may overdraw the bound, so that none waits for ever."""

    __slots__ = ("_bytes_max", "_waiting", "used")

    def __init__(self, bytes_max: int) -> None:
        self.used = 0
        self._bytes_max = bytes_max
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()

    def take_now(self, size: int, *, may_overdraw: bool = False) -> bool:
        """Take room if there is some and nobody waits for it; False otherwise."""
        if (self._waiting or self.used >= self._bytes_max) and not may_overdraw:
            return False
        self.used += size
        return True

    async def take(self, size: int) -> None:
        """Take room, waiting for it if need be."""
        if self.take_now(size):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, size))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give(size)
            raise

    def give(self, size: int) -> None:
        """Give room back and let those in who wait for it."""
        self.used -= size
        while self._waiting and self.used < self._bytes_max:
            turn, wanted = self._waiting.popleft()
            if not turn.done():
                self.used += wanted
                turn.set_result(None)
