"""The requests of a streaming call, as its handler reads them."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Requests:
    """An async iterator over messages that also gives all that have come at once.

    What was read is told to `credit`, in bytes as they travelled and as they were kept: the client
    may then send more. That is when nothing is left to read; for messages that were given together
    it is when their reader comes back for more, since it may take long over them.
    """

    __slots__ = (
        "_credit",
        "_error",
        "_given",
        "_has_ended",
        "_kept",
        "_messages",
        "_travelled",
        "_waiter",
    )

    def __init__(self, credit: Callable[[int, int], None]) -> None:
        self._credit = credit
        self._messages: deque[bytes] = deque()
        self._travelled = self._kept = 0
        """Bytes of the messages that are here."""
        self._given = (0, 0)
        """Bytes of those that were given together last."""
        self._has_ended = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    def __aiter__(self) -> Requests:
        return self

    async def __anext__(self) -> bytes:
        """Return the next message; wait for it if need be."""
        if not self._messages:
            await self._some()
            if not self._messages:
                raise StopAsyncIteration
        message = self._messages.popleft()
        if not self._messages:
            self._tell(*self._taken())
        return message

    async def together(self) -> list[bytes]:
        """Return all messages that are here, waiting for the first; none: the client has ended."""
        self._tell(*self._given)
        self._given = (0, 0)
        if not self._messages:
            await self._some()
        found = list(self._messages)
        self._messages.clear()
        self._given = self._taken()
        return found

    # --- what the call tells ----------------------------------------------------------------------

    @property
    def has_unread(self) -> bool:
        """Some message is here that nobody has read."""
        return bool(self._messages)

    def add(self, messages: list[bytes], travelled_bytes: int, kept_bytes: int) -> None:
        """Take what came: messages, or part of one that has to wait for those before it."""
        self._messages.extend(messages)
        self._travelled += travelled_bytes
        self._kept += kept_bytes
        self._wake()

    def end(self, error: Exception | None = None) -> None:
        """Hear that no more come, and whether that is as it should be."""
        self._has_ended = True
        self._error = error
        self._wake()

    async def _some(self) -> None:
        while not self._messages and not self._has_ended:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if not self._messages and self._error is not None:
            raise self._error

    def _taken(self) -> tuple[int, int]:
        taken = (self._travelled, self._kept)
        self._travelled = self._kept = 0
        return taken

    def _tell(self, travelled_bytes: int, kept_bytes: int) -> None:
        if travelled_bytes:
            self._credit(travelled_bytes, kept_bytes)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
