"""The bytes of every declared kind of frame, and what has to come before it on a connection.

`KINDS` has one row for each kind that `angarium.wire.flooding.DECLARED` names; a unit test compares
the two, so a kind that is declared anew needs a row here and is in the matrix from then on.
"""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from angarium.wire.error_codec import Failure
from angarium.wire.flooding import DECLARED, Counts, Door
from angarium.wire.frames import FrameKind, frame_head
from angarium.wire.handshake import MAGIC, Hello, Role, completed
from angarium.wire.http2 import frames as h2
from angarium.wire.http2.header_blocks import literal
from angarium.wire.operations import Operation
from angarium.wire.wire_limits import WireLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FRAMES_IN_BLOCK: Final = 512
"""Frames that are sent by one call."""


class Proof(NamedTuple):
    """How a flooding connection logs in."""

    basic: str
    token: str

    @property
    def authorization(self) -> bytes:
        return b"Basic " + base64.b64encode(self.basic.encode())


class Cell(NamedTuple):
    """One kind of frame at one door, before or after login."""

    door: Door
    kind: str
    is_proven: bool

    @property
    def name(self) -> str:
        return f"{self.door.value}, {self.kind}, {'after' if self.is_proven else 'before'} login"


def cells() -> Iterator[Cell]:
    """Yield every cell: what counts before login alone is work afterwards, which quotas bound."""
    for door, kinds in DECLARED.items():
        for kind, counts in kinds.items():
            yield Cell(door, kind, False)
            if counts is not Counts.UNPROVEN:
                yield Cell(door, kind, True)


def opening(cell: Cell, proof: Proof) -> tuple[bytes, ...]:
    """Return what is said before the flood, piece by piece: each piece is answered."""
    return _OPENINGS[cell.door](cell.kind, proof if cell.is_proven else None)


def block(cell: Cell, number: int) -> bytes:
    """Return the `number`-th block of frames of a cell; `opening` has come before the first."""
    return KINDS[cell.door][cell.kind](number)


# --- WebSocket ------------------------------------------------------------------------------------


def socket_frame(first: int, payload: bytes = b"") -> bytes:
    """Return a frame as a client sends it, masked with zeros."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack(">H", size)
    return bytes([first]) + length + bytes(4) + payload


def _open_socket(kind: str, proof: Proof | None) -> tuple[bytes, ...]:
    login = () if proof is None else (b"Authorization: " + proof.authorization,)
    lines = (
        b"GET /v1/socket HTTP/1.1",
        b"Host: localhost",
        b"Upgrade: websocket",
        b"Connection: Upgrade",
        b"Sec-WebSocket-Version: 13",
        b"Sec-WebSocket-Key: " + base64.b64encode(bytes(16)),
        *login,
    )
    said = (b"\r\n".join((*lines, b"", b"")),)
    # A ping is answered, and then the first part of a message has been taken, too.
    return (*said, socket_frame(0x01) + socket_frame(0x89)) if kind == "fragment" else said


# --- HTTP/1.1 -------------------------------------------------------------------------------------


def _open_http(kind: str, proof: Proof | None) -> tuple[bytes, ...]:
    if kind == "request":
        return ()
    # A guess takes work to look at: until then its body is kept.
    authorization = b"Basic Z3Vlc3M6Z3Vlc3M=" if proof is None else proof.authorization
    head = b"POST /v1/topics/orders/records HTTP/1.1\r\nHost: localhost\r\nAuthorization: %b\r\n"
    ready = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    body = b"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    return (ready + head % authorization + body,)


def _request(_: int) -> bytes:
    return b"GET /v1/topics HTTP/1.1\r\nHost: localhost\r\n\r\n" * FRAMES_IN_BLOCK


# --- HTTP/2 ---------------------------------------------------------------------------------------

_PREFACE: Final = h2.PREFACE + h2.frame(h2.SETTINGS, 0, 0)
_HEAD: Final = (
    b"\x83\x86"
    + literal(b":path", b"/angarium.v1.Broker/ListTopics")
    + literal(b"content-type", b"application/grpc")
)
_MESSAGE: Final = bytes(5)


def _stream_of(number: int, *, first: int = 101) -> int:
    return first + 2 * number


def _call(stream: int, head: bytes, *, ends: bool) -> bytes:
    return h2.frame(h2.HEADERS, h2.END_HEADERS, stream, head) + (
        h2.frame(h2.DATA, h2.END_STREAM, stream, _MESSAGE) if ends else b""
    )


def _open_http2(kind: str, proof: Proof | None) -> tuple[bytes, ...]:
    head = _HEAD if proof is None else _HEAD + literal(b"authorization", proof.authorization)
    opened = (_PREFACE + _call(1, head, ends=True),)
    if kind == "DATA":
        return (*opened, h2.frame(h2.PING, 0, 0, bytes(8)) + _call(3, head, ends=False))
    return opened


def _headers(number: int) -> bytes:
    streams = range(number * FRAMES_IN_BLOCK, (number + 1) * FRAMES_IN_BLOCK)
    return b"".join(_call(_stream_of(one), _HEAD, ends=True) for one in streams)


def _continuation(number: int) -> bytes:
    streams = range(number * FRAMES_IN_BLOCK, (number + 1) * FRAMES_IN_BLOCK, 8)
    parts = []
    for one in streams:
        stream = _stream_of(one)
        parts += [
            h2.frame(h2.HEADERS, h2.END_STREAM, stream, _HEAD),
            h2.frame(h2.CONTINUATION, 0, stream) * 7,
            h2.frame(h2.CONTINUATION, h2.END_HEADERS, stream),
        ]
    return b"".join(parts)


# --- wire -----------------------------------------------------------------------------------------


def wire_frame(kind: FrameKind, frame_id: int, header: bytes = b"", operation: int = 0) -> bytes:
    """Return a frame without payload."""
    limits = WireLimits()
    return frame_head(
        kind,
        operation,
        frame_id,
        header,
        (),
        frame_bytes_max=limits.frame_bytes_max,
        header_bytes_max=limits.header_bytes_max,
    )[0]


def _open_wire(kind: str, proof: Proof | None) -> tuple[bytes, ...]:
    auth = b"" if proof is None else proof.token.encode()
    hello = completed(Hello(role=Role.CLIENT, auth=auth), WireLimits())
    limits = WireLimits()
    said = frame_head(
        FrameKind.HELLO,
        0,
        MAGIC,
        hello,
        (),
        frame_bytes_max=limits.frame_bytes_max,
        header_bytes_max=limits.header_bytes_max,
    )[0]
    if kind == "STREAM_DATA":
        opens = wire_frame(FrameKind.STREAM_OPEN, 1, operation=int(Operation.SUBSCRIBE))
        return (said, opens + wire_frame(FrameKind.PING, 0))
    return (said,)


def _same(frame: bytes) -> Callable[[int], bytes]:
    whole = frame * FRAMES_IN_BLOCK
    return lambda _: whole


def _early(kind: FrameKind, operation: Operation) -> bytes:
    """Return what is refused before login, so that its id is free again."""
    return wire_frame(kind, 101, operation=int(operation))


_FAILURE: Final = msgspec.msgpack.encode(Failure(""))
"""A failure without a code and without words."""

_OPENINGS: Final = {
    Door.HTTP: _open_http,
    Door.WEBSOCKET: _open_socket,
    Door.GRPC: _open_http2,
    Door.WIRE: _open_wire,
}

KINDS: Final[dict[Door, dict[str, Callable[[int], bytes]]]] = {
    Door.HTTP: {"request": _request, "chunk": _same(b"1\r\nx\r\n")},
    Door.WEBSOCKET: {
        "ping": _same(socket_frame(0x89)),
        "pong": _same(socket_frame(0x8A)),
        "fragment": _same(socket_frame(0x00)),
        "text": _same(socket_frame(0x81, b"{}")),
    },
    Door.GRPC: {
        "PING": _same(h2.frame(h2.PING, 0, 0, bytes(8))),
        "SETTINGS": _same(h2.frame(h2.SETTINGS, 0, 0)),
        "PRIORITY": _same(h2.frame(h2.PRIORITY, 0, 5, bytes(5))),
        "RST_STREAM": _same(h2.reset_frame(1, h2.ErrorCode.CANCEL)),
        "WINDOW_UPDATE": _same(h2.window_update(0, 1)),
        "GOAWAY": _same(h2.goaway_frame(0, h2.ErrorCode.NO_ERROR)),
        "unknown": _same(h2.frame(99, 0, 0)),
        "CONTINUATION": _continuation,
        "DATA": _same(h2.frame(h2.DATA, 0, 3)),
        "HEADERS": _headers,
    },
    Door.WIRE: {
        "PING": _same(wire_frame(FrameKind.PING, 0)),
        "PONG": _same(wire_frame(FrameKind.PONG, 0)),
        "CANCEL": _same(wire_frame(FrameKind.CANCEL, 7)),
        "ANSWER": _same(wire_frame(FrameKind.ANSWER, 8)),
        "FAILURE": _same(wire_frame(FrameKind.FAILURE, 8, _FAILURE)),
        "GOODBYE": _same(wire_frame(FrameKind.GOODBYE, 0, _FAILURE)),
        "STREAM_CREDIT": _same(wire_frame(FrameKind.STREAM_CREDIT, 9, bytes(8))),
        "STREAM_END": _same(wire_frame(FrameKind.STREAM_END, 9)),
        "STREAM_DATA": _same(wire_frame(FrameKind.STREAM_DATA, 1)),
        "STREAM_OPEN": _same(_early(FrameKind.STREAM_OPEN, Operation.SUBSCRIBE)),
        "REQUEST": _same(_early(FrameKind.REQUEST, Operation.LIST_TOPICS)),
    },
}
"""By door and kind: what makes the n-th block of frames."""
