"""What has been received and not taken yet: bounded, in order, for one taker."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.client.records import ReceivedBatch
    from angarium.errors import AngariumError


class Mailbox:
    """Batches on their way to a reader. At the bound the sender has to wait."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._batches: deque[ReceivedBatch] = deque()
        self._error: AngariumError | None = None
        self._is_closed = False
        self._taker: asyncio.Future[None] | None = None
        self._room = asyncio.Event()
        self._room.set()

    def put(self, batch: ReceivedBatch) -> None:
        """Take a batch in; wait for `room` before the next one."""
        self._batches.append(batch)
        self._bytes += batch.batch.length
        if self._bytes >= self._bytes_max:
            self._room.clear()
        self._wake()

    async def room(self) -> None:
        """Wait until the taker has made room."""
        if not self._room.is_set():
            await self._room.wait()

    async def take(self) -> ReceivedBatch | None:
        """Return the next batch, or None once it is closed; raises what ended it otherwise."""
        while not self._batches:
            if self._error is not None:
                raise self._error
            if self._is_closed:
                return None
            assert self._taker is None, "one task reads a subscription"
            self._taker = asyncio.get_running_loop().create_future()
            try:
                await self._taker
            finally:
                self._taker = None
        batch = self._batches.popleft()
        self._gone(batch)
        return batch

    def discard(self, is_unwanted: Callable[[ReceivedBatch], bool]) -> None:
        """Throw away what the reader no longer wants."""
        kept: deque[ReceivedBatch] = deque()
        for batch in self._batches:
            if is_unwanted(batch):
                self._gone(batch)
            else:
                kept.append(batch)
        self._batches = kept

    def fail(self, error: AngariumError) -> None:
        """End with `error`, once what is here has been taken."""
        self._error = error
        self._wake()

    def close(self) -> None:
        """End; what is here is thrown away."""
        self._is_closed = True
        self.discard(lambda _: True)
        self._wake()

    def _gone(self, batch: ReceivedBatch) -> None:
        self._bytes -= batch.batch.length
        if self._bytes < self._bytes_max:
            self._room.set()

    def _wake(self) -> None:
        if self._taker is not None and not self._taker.done():
            self._taker.set_result(None)
