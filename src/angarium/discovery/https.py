"""Asking an HTTPS server for a document, or for lines that go on coming: one connection each.

No redirects, no proxies, no compression, and a bound on whatever the server sends.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import httptools

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from angarium.addresses import Address

HEAD_BYTES_MAX: Final = 64 << 10
"""A head of an answer that is longer ends the connection."""

READ_BYTES: Final = 64 << 10

CONNECT_S_MAX: Final = 3.0
"""How long it may take until the server has shown its certificate and said what it answers."""


class BadAnswer(Exception):
    """The server does not speak HTTP as it should, or too much of it."""


class Answer:
    """What a server answers: a status, then a body that is read piece by piece."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self.status = 0
        self._reader = reader
        self._parser = httptools.HttpResponseParser(self)
        self._body = bytearray()
        self._is_begun = False
        self._is_whole = False

    # Called by the parser.

    def on_headers_complete(self) -> None:
        self._is_begun = True

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_message_complete(self) -> None:
        self._is_whole = True

    # Called by us.

    async def begin(self) -> None:
        """Read the head."""
        read = 0
        while not self._is_begun:
            read += await self._more()
            if read > HEAD_BYTES_MAX and not self._is_begun:
                raise BadAnswer(f"the head of its answer is longer than {HEAD_BYTES_MAX} bytes")
        self.status = self._parser.get_status_code()

    async def document(self, *, bytes_max: int) -> bytes:
        """Return the whole body."""
        while not self._is_whole:
            await self._more()
            if len(self._body) > bytes_max:
                raise BadAnswer(f"its answer is longer than {bytes_max} bytes")
        return bytes(self._body)

    async def lines(self, *, bytes_max: int, silence_s_max: float) -> AsyncGenerator[bytes, None]:
        """Yield the lines of the body as they come; the server ends it when it likes."""
        while True:
            end = self._body.find(b"\n")
            if end >= 0:
                line = bytes(self._body[:end])
                del self._body[: end + 1]
                yield line
                continue
            if self._is_whole:
                return
            if len(self._body) > bytes_max:
                raise BadAnswer(f"a line of its answer is longer than {bytes_max} bytes")
            async with asyncio.timeout(silence_s_max):
                await self._more()

    async def _more(self) -> int:
        data = await self._reader.read(READ_BYTES)
        if not data:
            raise BadAnswer("it closed the connection before its answer was whole")
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise BadAnswer(f"it does not speak HTTP: {error}") from error
        return len(data)


@asynccontextmanager
async def get(
    server: Address, path: str, *, context: ssl.SSLContext, headers: Mapping[str, str]
) -> AsyncIterator[Answer]:
    """Ask for `path`, and have the answer while the block lasts.

    Raises `OSError` (`ssl.SSLError` is one), `TimeoutError` or `BadAnswer`.
    """
    host = f"[{server.host}]" if ":" in server.host else server.host
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {host}:{server.port}",
        "Connection: close",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    async with asyncio.timeout(CONNECT_S_MAX):
        reader, writer = await asyncio.open_connection(
            server.host, server.port, ssl=context, server_hostname=server.host
        )
    try:
        async with asyncio.timeout(CONNECT_S_MAX):
            writer.write("\r\n".join((*lines, "", "")).encode("latin-1"))
            answer = Answer(reader)
            await answer.begin()
        yield answer
    finally:
        writer.close()
