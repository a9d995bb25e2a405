"""gRPC calls without a gRPC library: a client that costs next to nothing, to see a server's limit.

A Python client of gRPC takes as long for a call as a Python server, so on a machine with few cores
it would measure itself. This one writes prepared HTTP/2 frames and counts what comes back. It keeps
the windows, answers pings and settings, and knows nothing else: only for benchmarks.
"""

from __future__ import annotations

import asyncio
import struct
import time
from typing import Final, cast

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 0x1, 0x4, 0x1
CHUNK_FRAMES: Final = 256
"""Frames written at once."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return one frame."""
    return (
        struct.pack(">I", len(payload))[1:]
        + bytes((kind, flags))
        + struct.pack(">I", stream)
        + payload
    )


def headers(path: str) -> bytes:
    """Return a request's headers, each literally."""
    pairs = (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", path.encode()),
        (b":authority", b"localhost"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    )
    return b"".join(
        b"\x00" + bytes((len(name),)) + name + bytes((len(value),)) + value for name, value in pairs
    )


def message(data: bytes) -> bytes:
    """Return a message with its prefix."""
    return b"\x00" + struct.pack(">I", len(data)) + data


class Http2(asyncio.Protocol):
    """One connection: windows, pings and settings; calls are the subclasses' business."""

    def __init__(self) -> None:
        self.window = 65_535
        self.stream_window = self._initial = 65_535
        self.ready = asyncio.Event()
        self.gone = asyncio.Event()
        self.trailers = b""
        """As they came, packed: for whoever wonders why a call failed."""
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        # Large windows for what comes back: it is little, and never to be waited for.
        grown = frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30))
        self.transport.write(PREFACE + frame(SETTINGS, 0, 0) + grown)

    def connection_lost(self, _: Exception | None) -> None:
        self.gone.set()
        self.ready.set()

    def data_received(self, data: bytes) -> None:
        data = self._data + data
        at, end = 0, len(data)
        while end - at >= 9:
            length = int.from_bytes(data[at : at + 3], "big")
            if end - at < 9 + length:
                break
            kind, flags = data[at + 3], data[at + 4]
            stream = int.from_bytes(data[at + 5 : at + 9], "big")
            self._take(kind, flags, stream, data[at + 9 : at + 9 + length])
            at += 9 + length
        self._data = data[at:]
        self.went_on()

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == WINDOW_UPDATE:
            more = int.from_bytes(payload, "big")
            if stream:
                self.stream_window += more
            else:
                self.window += more
        elif kind == SETTINGS and not flags & ACK:
            for start in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[start : start + 6])
                if name == 4:
                    # It may come again, and counts from what was said before.
                    self.stream_window += value - self._initial
                    self._initial = value
            self.transport.write(frame(SETTINGS, ACK, 0))
            self.ready.set()
        elif kind == PING and not flags & ACK:
            self.transport.write(frame(PING, ACK, 0, payload))
        elif kind == DATA:
            self.answered(stream, payload)
        elif kind in (HEADERS, RESET) and (kind == RESET or flags & END_STREAM):
            self.trailers = payload
            self.ended(stream)

    def went_on(self) -> None:
        """Something came."""

    def answered(self, stream: int, payload: bytes, /) -> None:
        """A message came."""

    def ended(self, stream: int, /) -> None:
        """A call is over."""


class Unary(Http2):
    """So many calls at a time, each followed by the next as soon as it is answered."""

    def __init__(self, path: str, request: bytes, workers: int) -> None:
        super().__init__()
        self.calls = 0
        self.failures = 0
        self.latencies: list[float] = []
        self.is_over = False
        self._began: dict[int, float] = {}
        self._answered: set[int] = set()
        self._workers = workers
        self._head, self._body = headers(path), message(request)
        self._next = 1

    def begin(self) -> None:
        for _ in range(self._workers):
            self._call()

    def _call(self) -> None:
        stream, self._next = self._next, self._next + 2
        self._began[stream] = time.perf_counter()
        self.window -= len(self._body)
        self.transport.write(
            frame(HEADERS, END_HEADERS, stream, self._head)
            + frame(DATA, END_STREAM, stream, self._body)
        )

    def answered(self, stream: int, _: bytes) -> None:
        self._answered.add(stream)

    def ended(self, stream: int) -> None:
        began = self._began.pop(stream)
        if stream in self._answered:
            self._answered.discard(stream)
            self.calls += 1
            self.latencies.append(time.perf_counter() - began)
        else:
            self.failures += 1
        if not self.is_over:
            self._call()


class Streaming(Http2):
    """One client stream of so many messages, as fast as the server's windows let it."""

    def __init__(self, path: str, request: bytes, count: int) -> None:
        super().__init__()
        self._left = count
        self.sent = 0
        self.answer = b""
        self.done = asyncio.Event()
        self._head = headers(path)
        self._frame = frame(DATA, 0, 1, message(request))
        self._size = len(self._frame) - 9
        self._is_open = False

    def begin(self) -> None:
        self.transport.write(frame(HEADERS, END_HEADERS, 1, self._head))
        self._is_open = True
        self.went_on()

    def went_on(self) -> None:
        while self._is_open:
            room = min(self.window, self.stream_window) // self._size
            count = min(room, CHUNK_FRAMES, self._left)
            if not self._left:
                self._is_open = False
                self.transport.write(frame(DATA, END_STREAM, 1))
            if count <= 0 or self.transport.get_write_buffer_size() > 1 << 20:
                return
            self.transport.write(self._frame * count)
            self.sent += count
            self._left -= count
            self.window -= count * self._size
            self.stream_window -= count * self._size

    def answered(self, _: int, payload: bytes) -> None:
        self.answer += payload

    def ended(self, _: int) -> None:
        self.done.set()


async def connected(address: str, protocol: Http2) -> None:
    """Connect, and be ready to call."""
    host, _, port = address.rpartition(":")
    await asyncio.get_running_loop().create_connection(lambda: protocol, host, int(port))
    await asyncio.wait_for(protocol.ready.wait(), 10)
