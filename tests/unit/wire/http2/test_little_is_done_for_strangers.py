"""What a client sends cheaply costs a connection little: no work without a bound, no memory."""

from __future__ import annotations

import asyncio
import struct
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from tests.on_a_loop import run

from angarium.wire.http2 import Connection, ErrorCode, Http2Limits
from angarium.wire.http2.server import Http2Server, Http2Socket

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.wire.http2 import RequestHead, Stream

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 7, 8, 9
END_HEADERS, END_STREAM, ACK = 4, 1, 1
WINDOW_SIZE = 4
"""The setting with which every stream's window begins."""

REMEMBERED_BYTES_MAX = 1 << 20
"""What one connection may keep of header blocks that have been read: thousands may be open."""


class Deaf:
    """Hears everything and answers nothing."""

    def __init__(self) -> None:
        self.streams: list[Stream] = []

    def begun(self, stream: Stream, _: RequestHead) -> None:
        self.streams.append(stream)

    def received(self, stream: Stream, data: bytes, ends: bool) -> None: ...
    def ended(self, stream: Stream) -> None: ...
    def given_up(self, stream: Stream) -> None: ...
    def drained(self, stream: Stream) -> None: ...


class Watched(dict[int, Any]):
    """Streams, and how many of them were looked at in passing."""

    looks = 0

    def values(self) -> Any:
        self.looks += len(self)
        return super().values()


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return (
        struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream_id) + payload
    )


def number(value: int) -> bytes:
    """Return a length as header blocks have it, up to 16 KiB."""
    if value < 127:
        return bytes((value,))
    value -= 127
    return bytes((127, value & 127 | 128, value >> 7))


def head(*more: tuple[bytes, bytes]) -> bytes:
    fields = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/a/b"), *more)
    return b"".join(
        b"\0" + number(len(name)) + name + number(len(value)) + value for name, value in fields
    )


def opening(stream_id: int, block: bytes) -> bytes:
    """Return the frames of a request without a body."""
    first, *parts = [block[at : at + 16_000] for at in range(0, len(block), 16_000)]
    kinds = [HEADERS, *(CONTINUATION for _ in parts)]
    flags = [END_STREAM, *(0 for _ in parts)]
    flags[-1] |= END_HEADERS
    return b"".join(
        frame(kind, flag, stream_id, part)
        for kind, flag, part in zip(kinds, flags, (first, *parts), strict=True)
    )


def settings(values: Iterable[int]) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", WINDOW_SIZE, one) for one in values))


def connected(*values: int) -> tuple[Connection, Deaf]:
    deaf = Deaf()
    connection = Connection(deaf, Http2Limits())
    connection.receive(PREFACE + settings(values))
    connection.out.clear()
    return connection, deaf


@pytest.mark.parametrize("digits", [1, 19, 4_299, 4_301, 15_000])
def test_a_content_length_of_any_length_ends_no_more_than_its_stream(digits: int) -> None:
    connection, _ = connected()
    connection.receive(opening(1, head((b"content-length", b"1" * digits))))
    assert frame(RESET, 0, 1, struct.pack(">I", ErrorCode.PROTOCOL_ERROR)) in connection.out
    assert not connection.is_over


def test_header_blocks_that_differ_are_not_all_kept() -> None:
    connection, deaf = connected()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for one in range(30):
            value = b"%06d" % one * 2_500
            connection.receive(
                opening(2 * one + 1, head(*((b"x-%d" % at, value) for at in range(4))))
            )
            connection.reset(2 * one + 1, ErrorCode.CANCEL)
        deaf.streams.clear()
        connection.out.clear()
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert not connection.is_over
    assert kept <= REMEMBERED_BYTES_MAX


def test_settings_that_change_often_in_one_frame_are_taken_once() -> None:
    connection, deaf = connected()
    for one in range(100):
        connection.receive(opening(2 * one + 1, head()))
    connection.streams = watched = Watched(connection.streams)
    connection.receive(settings(65_535 + (one & 1) for one in range(64)))
    assert watched.looks <= 4 * len(deaf.streams)


def test_a_wider_connection_does_not_look_at_streams_whose_own_window_is_closed() -> None:
    connection, deaf = connected(0)
    for one in range(100):
        connection.receive(opening(2 * one + 1, head()))
        connection.sender.send_headers(deaf.streams[-1], b"\x88")
        connection.sender.send_data(deaf.streams[-1], b"waits")
    tries = 0
    send_waiting = connection.sender.send_waiting

    def counted(stream: Stream) -> None:
        nonlocal tries
        tries += 1
        send_waiting(stream)

    connection.sender.send_waiting = counted  # type: ignore[method-assign]
    connection.receive(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)) * 1_000)
    assert tries <= 1_000


@pytest.mark.parametrize(
    "nuisance", [frame(SETTINGS, ACK, 0), frame(GOAWAY, 0, 0, bytes(8))], ids=["ack", "goaway"]
)
def test_frames_that_ask_for_nothing_end_the_connection(nuisance: bytes) -> None:
    connection, _ = connected()
    connection.receive(nuisance * (Http2Limits().control_frames_max + 1))
    assert connection.is_over


def test_streams_that_a_client_has_us_reset_are_counted() -> None:
    connection, deaf = connected()
    for one in range(Http2Limits().resets_max + 1):
        connection.receive(frame(HEADERS, END_HEADERS, 2 * one + 1, head()))
        connection.receive(frame(WINDOW_UPDATE, 0, 2 * one + 1, bytes(4)))
    assert connection.is_over
    assert all(one.is_closed for one in deaf.streams[:-1])


def test_a_table_that_changes_its_size_again_and_again_ends_the_connection() -> None:
    connection, _ = connected()
    connection.receive(opening(1, b"\x20\x3f\x01" + head()))
    assert not connection.is_over
    connection.receive(opening(3, b"\x20" * 3 + head()))
    assert connection.is_over


class Pausing:
    """A transport of which one can only tell whether it is read."""

    def __init__(self) -> None:
        self._is_paused = False

    def reads(self) -> bool:
        return not self._is_paused

    def get_extra_info(self, _: str) -> None:
        """Nobody has shown a certificate."""

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False

    def set_write_buffer_limits(self, high: int) -> None: ...
    def write(self, data: bytes) -> None: ...


def test_whoever_says_much_lets_others_have_their_turn() -> None:
    async def story() -> None:
        transport = Pausing()
        socket = Http2Socket(Http2Server(lambda _: Deaf(), Http2Limits()))
        socket.connection_made(transport)  # type: ignore[arg-type]
        socket.data_received(PREFACE + settings(()))
        assert transport.reads()
        piece = frame(DATA, 0, 1, bytes(16_000))
        socket.data_received(opening(1, head()) + piece * 10)
        assert not transport.reads()
        await asyncio.sleep(0)
        assert transport.reads()
        # Unless it does not read its own answers.
        socket.data_received(piece * 10)
        socket.pause_writing()
        await asyncio.sleep(0)
        assert not transport.reads()

    run(story())
