"""A client that says any frame it likes, whenever it likes."""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress
from typing import NamedTuple

from tests.component.doors.grpc.opened import LOCALHOST

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 7, 8
END_STREAM, END_HEADERS = 1, 4
WINDOW_SIZE = 4
"""The setting with which every stream's window begins."""


class Frame(NamedTuple):
    kind: int
    flags: int
    stream_id: int
    payload: bytes


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    head = struct.pack(">IBI", len(payload) << 8 | kind, flags, stream_id)
    return head + payload


def prefixed(message: bytes, *, compressed: bool = False) -> bytes:
    return struct.pack(">BI", compressed, len(message)) + message


class RawClient:
    """One connection. What it does not read waits."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._next_id = 1

    @classmethod
    async def connected(cls, port: int, *, window: int = 65_535) -> RawClient:
        client = cls(*await asyncio.open_connection(LOCALHOST, port))
        setting = struct.pack(">HI", WINDOW_SIZE, window)
        client.writer.write(PREFACE + frame(SETTINGS, 0, 0, setting))
        return client

    def call(self, path: str, body: bytes = b"", *, ends: bool = True, **headers: str) -> int:
        """Begin a call, and say `body`; return its stream."""
        stream_id, self._next_id = self._next_id, self._next_id + 2
        fields = {
            ":method": "POST",
            ":scheme": "http",
            ":path": path,
            "content-type": "application/grpc",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        block = b"".join(
            b"\0" + bytes((len(name),)) + name.encode() + bytes((len(value),)) + value.encode()
            for name, value in fields.items()
        )
        self.writer.write(frame(HEADERS, END_HEADERS, stream_id, block))
        self.say(stream_id, body, ends=ends)
        return stream_id

    def say(self, stream_id: int, body: bytes, *, ends: bool = False) -> None:
        for at in range(0, len(body), 16_384):
            self.writer.write(frame(DATA, 0, stream_id, body[at : at + 16_384]))
        if ends:
            self.writer.write(frame(DATA, END_STREAM, stream_id))

    async def read(self) -> Frame:
        length, flags, stream_id = struct.unpack(">IBI", await self.reader.readexactly(9))
        payload = await self.reader.readexactly(length >> 8)
        return Frame(length & 0xFF, flags, stream_id, payload)

    async def until(self, kind: int, stream_id: int) -> Frame:
        """Read up to a frame of this kind, and return it."""
        while True:
            found = await self.read()
            if (found.kind, found.stream_id) == (kind, stream_id):
                return found

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()
