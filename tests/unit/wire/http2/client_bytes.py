"""A client of HTTP/2 in bytes: what tests say to a connection, and how they read its answers."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from angarium.wire.http2 import Connection, Http2Limits
from angarium.wire.http2 import frames as h2
from angarium.wire.http2.header_blocks import literal

if TYPE_CHECKING:
    from angarium.wire.http2 import ErrorCode, RequestHead, Stream

REQUEST = b"\x83\x86" + literal(b":path", b"/a/b")
"""The header block of a request: POST, http, and a path."""


class Frame(NamedTuple):
    """A frame as it was read; of a padded one the padding is part of the payload."""

    kind: int
    flags: int
    stream_id: int
    payload: bytes

    @property
    def number(self) -> int:
        """The number that is all of a payload: a code, or an increment."""
        (number,) = struct.unpack(">I", self.payload)
        return int(number)


class Heard:
    """Writes down what a connection tells."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int] | tuple[str, int, bytes]] = []
        self.streams: dict[int, Stream] = {}

    def begun(self, stream: Stream, head: RequestHead) -> None:
        self.streams[stream.id] = stream
        self.calls.append(("begun", stream.id, head.path))

    def received(self, stream: Stream, data: bytes, ends: bool) -> None:
        self.calls.append(("received", stream.id, data))
        if ends:
            self.ended(stream)

    def ended(self, stream: Stream) -> None:
        self.calls.append(("ended", stream.id))

    def given_up(self, stream: Stream) -> None:
        self.calls.append(("given up", stream.id))

    def drained(self, stream: Stream) -> None:
        self.calls.append(("drained", stream.id))


class Client:
    """A greeted connection, whoever listens to it, and what it has sent."""

    def __init__(self, limits: Http2Limits | None = None, *, settings: bytes = b"") -> None:
        self.heard = Heard()
        self.connection = Connection(self.heard, limits or Http2Limits())
        self.connection.receive(h2.PREFACE + settings_of() + settings)
        self.answers()

    def say(self, *frames: bytes) -> list[Frame]:
        """Send frames in one piece, and return what they led to."""
        self.connection.receive(b"".join(frames))
        return self.answers()

    def answers(self) -> list[Frame]:
        """Return what was written since the last time."""
        found = frames_in(b"".join(self.connection.out))
        self.connection.out.clear()
        return found

    def stream(self, stream_id: int) -> Stream:
        return self.heard.streams[stream_id]


def frames_in(data: bytes) -> list[Frame]:
    """Return the frames that `data` is made of, wholly."""
    found = []
    while data:
        length, flags, stream_id = h2.read_head(data)
        end = h2.HEAD_BYTES + (length >> 8)
        assert len(data) >= end, "a frame that is not whole"
        found.append(Frame(length & 0xFF, flags, stream_id, data[h2.HEAD_BYTES : end]))
        data = data[end:]
    return found


def settings_of(*pairs: tuple[int, int]) -> bytes:
    return h2.frame(h2.SETTINGS, 0, 0, b"".join(struct.pack(">HI", *one) for one in pairs))


def request(stream_id: int, block: bytes = REQUEST, *, ends: bool = False, flags: int = 0) -> bytes:
    """Return the frame that a request begins with, or is all of."""
    flags |= h2.END_HEADERS | (h2.END_STREAM if ends else 0)
    return h2.frame(h2.HEADERS, flags, stream_id, block)


def data(stream_id: int, payload: bytes, *, ends: bool = False) -> bytes:
    return h2.frame(h2.DATA, h2.END_STREAM if ends else 0, stream_id, payload)


def reset(stream_id: int) -> bytes:
    return h2.frame(h2.RST_STREAM, 0, stream_id, h2.long_bytes(h2.ErrorCode.CANCEL))


def was_reset(stream_id: int, code: ErrorCode) -> list[Frame]:
    return [Frame(h2.RST_STREAM, 0, stream_id, h2.long_bytes(code))]


def failure(client: Client, answers: list[Frame]) -> ErrorCode:
    """Return why a connection has ended, as the last frame says."""
    assert client.connection.is_over
    last = answers[-1]
    assert last.kind == h2.GOAWAY
    return h2.ErrorCode(h2.read_long(last.payload, 4)[0])
