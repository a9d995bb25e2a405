"""HTTP/1.1 by hand: one connection that stays, and heads of streams without their bodies."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.doors.matrix.answers import ANSWER_S_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping


class HttpAnswer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


class HttpConnection:
    """A connection to one door; it is opened again when the door has closed it."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        headers: Mapping[str, str | None] | None = None,
        is_stream: bool = False,
    ) -> HttpAnswer:
        """Send a request. Of a stream that begins, only the head is waited for."""
        reader, writer = await self._open()
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self._address}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items() if value]
        data = b""
        if body is not None:
            data = json.dumps(body).encode()
            lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
        writer.write("\r\n".join([*lines, "", ""]).encode() + data)
        async with asyncio.timeout(ANSWER_S_MAX):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *others = head.strip().split("\r\n")
            found = {
                name.lower(): value for name, _, value in (one.partition(": ") for one in others)
            }
            status = int(first.split(" ")[1])
            length = found.get("content-length")
            if is_stream and status < 400:
                await self.close()
                return HttpAnswer(status, found, b"")
            content = await reader.readexactly(int(length)) if length else b""
        if found.get("connection", "").lower() == "close":
            await self.close()
        return HttpAnswer(status, found, content)

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        streams = self._streams
        if streams is None or streams[0].at_eof():
            host, _, port = self._address.rpartition(":")
            streams = self._streams = await asyncio.open_connection(host, int(port), limit=1 << 24)
        return streams

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
