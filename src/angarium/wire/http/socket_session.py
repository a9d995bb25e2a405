"""One client of a WebSocket, whatever is spoken over it: what it began ends with it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from angarium.wire.http.stream import StreamCut

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from angarium.closing import Closings
    from angarium.wire.http.messages import Request
    from angarium.wire.http.websocket import WebSocket

_encode: Final = msgspec.json.Encoder().encode


class Over(Exception):
    """The client broke the protocol: nothing more is heard from it."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def accepted(request: Request, *, subprotocols: Sequence[str], is_guest: bool) -> WebSocket:
    """Return the WebSocket that a request asks for; raises `RequestRefused` if it asks for none."""
    # Only now: its library, and the HTTP client that one brings along, are half a megabyte that a
    # node without WebSockets need not have.
    from angarium.wire.http.websocket import WebSocket  # noqa: PLC0415

    return WebSocket(request, subprotocols=subprotocols, is_guest=is_guest)


class SocketSession:
    """Hears a client message by message, and keeps what goes on for it."""

    def __init__(self, websocket: WebSocket, closings: Closings) -> None:
        self._websocket = websocket
        self._closings = closings
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Do what the client says until it goes."""
        try:
            while (text := await self._websocket.receive()) is not None:
                await self._hear(text)
        except Over as over:
            self._websocket.close(over.code, str(over))
        except StreamCut:
            pass
        finally:
            await self._closings.see_to(self._end())

    async def _hear(self, text: str) -> None:
        """Do what one message says."""
        raise NotImplementedError

    async def _end(self) -> None:
        """Give up everything."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._close_feeds()
        self._websocket.close()

    async def _close_feeds(self) -> None:
        """Close what has not come to run, too."""

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Have work done while the client goes on talking."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _say(self, message: dict[str, Any]) -> None:
        await self._websocket.send(_encode(message))
