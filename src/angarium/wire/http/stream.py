"""A body that goes on and on, written no faster than the client reads."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from angarium.wire.http.connection import Connection

EVENT_HEADERS: Final = (
    (b"Content-Type", b"text/event-stream"),
    (b"Cache-Control", b"no-store"),
    (b"X-Accel-Buffering", b"no"),  # proxies that gather answers would hold events back
)
"""What the answer to a request for server-sent events begins with."""
HEARTBEAT: Final = b":\n\n"
"""A comment, which readers of events pass over."""
OPENING: Final = b"retry: 1000\n\n"
"""How long a browser waits before it reconnects, in milliseconds."""


class _Chunk:
    """The chunk that was framed last: many streams are often sent the same bytes."""

    def __init__(self) -> None:
        self._data = self._framed = b""

    def of(self, data: bytes) -> bytes:
        if data is not self._data:
            self._data, self._framed = data, b"%x\r\n%b\r\n" % (len(data), data)
        return self._framed


_chunk: Final = _Chunk()


class StreamCut(Exception):
    """The client went away, or did not read for too long."""


class Stream:
    """What a handler writes to after `Connection.begin_stream`."""

    def __init__(self, connection: Connection, *, is_chunked: bool) -> None:
        self._connection = connection
        self._is_chunked = is_chunked
        self._stalled_s = connection.limits.stalled_seconds_max

    async def write(self, data: bytes) -> None:
        """Write, and wait while too much is unread; raises `StreamCut`."""
        connection = self._connection
        if not connection.is_open:
            raise StreamCut
        connection.write_now(_chunk.of(data) if self._is_chunked else data)
        if not connection.is_writable.is_set():
            await until_writable(connection, self._stalled_s)

    def write_nowait(self, data: bytes) -> bool:
        """Write, if nothing waits already; else, or if nobody is there any more, return False."""
        return self._connection.write_if_room(_chunk.of(data) if self._is_chunked else data)

    async def writable(self) -> None:
        """Wait until more may be written; raises `StreamCut`."""
        if not self._connection.is_open:
            raise StreamCut
        if not self._connection.is_writable.is_set():
            await until_writable(self._connection, self._stalled_s)

    def end(self) -> None:
        """End the body, and the connection with it."""
        connection = self._connection
        if connection.is_open:
            if self._is_chunked:
                connection.write_now(b"0\r\n\r\n")
            connection.close()


async def until_writable(connection: Connection, seconds_max: float) -> None:
    """Wait until the client has read some; one that does not for so long is cut off."""
    try:
        async with asyncio.timeout(seconds_max):
            await connection.is_writable.wait()
    except TimeoutError:
        connection.abort()
        raise StreamCut from None
    if not connection.is_open:
        raise StreamCut
