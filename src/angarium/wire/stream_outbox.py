"""Sending on a stream without waiting, in order.

For those who hear something in a callback and pass it on: what cannot leave at once, for want of
credit or because the connection is congested, waits here and leaves in its turn. How much may wait
is bounded by whoever puts it in: each kind of frame that is put here is answered or granted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from angarium.errors import AngariumError, LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import Buffer
    from angarium.wire.frames import Header
    from angarium.wire.streams import Stream


class StreamOutbox:
    """What is to be sent on one stream."""

    __slots__ = ("_is_ending", "_stream", "_task", "_waiting")

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._waiting: deque[tuple[Header, Sequence[Buffer]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._is_ending = False

    def put(self, header: Header, payload: Sequence[Buffer] = ()) -> None:
        """Send a frame behind all others; one for a stream that is over is dropped.

        One that is larger than the peer takes ends the stream: nobody could make up for it.
        """
        if not self._waiting:
            try:
                if self._stream.send_nowait(header, payload):
                    return
            except LimitExceeded as too_large:
                self._stream.cancel(too_large)
                return
            except AngariumError:
                return  # whoever reads from the stream hears why it is over
        self._waiting.append((header, payload))
        if self._task is None:
            self._task = asyncio.create_task(self._drain())

    def end(self) -> None:
        """End the stream on this side once everything has left."""
        self._is_ending = True
        if not self._waiting:
            self._stream.end()

    def close(self) -> None:
        """Send nothing more."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _drain(self) -> None:
        try:
            while self._waiting:
                await self._stream.send(*self._waiting[0])
                self._waiting.popleft()
            if self._is_ending:
                self._stream.end()
        except LimitExceeded as too_large:
            self._stream.cancel(too_large)
        except AngariumError:
            self._waiting.clear()
        finally:
            self._task = None
