"""What is written in one turn of the loop goes out in one piece, and pings cost no piece alone."""

from __future__ import annotations

from typing import Any, cast

from tests.on_a_loop import eventually, on_a_loop
from tests.unit.wire.http2.client_bytes import Frame, Heard, frames_in, request, settings_of

from angarium.wire.http2 import Http2Limits
from angarium.wire.http2 import frames as h2
from angarium.wire.http2.header_blocks import STATUS_200
from angarium.wire.http2.server import Http2Server, Http2Socket

PING = h2.frame(h2.PING, 0, 0, b"whoever!")
PONG = Frame(h2.PING, h2.ACK, 0, b"whoever!")


class Pieces:
    """A transport that keeps what is written to it."""

    def __init__(self) -> None:
        self.written: list[list[Frame]] = []

    def write(self, data: bytes) -> None:
        self.written.append(frames_in(data))

    def set_write_buffer_limits(self, **_: int) -> None:
        pass

    def get_extra_info(self, _: str) -> None:
        """Nobody has shown a certificate."""


class Opened:
    """A greeted socket of a server."""

    def __init__(self, server: Http2Server | None = None) -> None:
        self.server = server or Http2Server(lambda _: Heard(), Http2Limits())
        self.pieces = Pieces()
        self.socket = Http2Socket(self.server)
        self.heard = cast("Heard", self.socket.listener)
        self.socket.connection_made(cast("Any", self.pieces))
        self.say(h2.PREFACE + settings_of())
        self.pieces.written.clear()

    def say(self, *frames: bytes) -> None:
        self.socket.data_received(b"".join(frames))

    def answer(self, stream_id: int) -> None:
        sender = self.socket.connection.sender
        sender.answer(self.heard.streams[stream_id], STATUS_200, b"body", STATUS_200)
        self.socket.flush_soon(4)


@on_a_loop
async def test_who_only_pings_is_answered_at_once() -> None:
    it = Opened()
    it.say(PING)
    assert it.pieces.written == [[PONG]]


@on_a_loop
async def test_a_ping_that_comes_with_a_request_is_answered_with_it() -> None:
    it = Opened()
    it.say(PING, request(1, ends=True))
    assert it.pieces.written == []
    it.answer(1)
    await eventually(lambda: it.pieces.written)
    (piece,) = it.pieces.written
    assert piece[0] == PONG
    assert [one.stream_id for one in piece[1:]] == [1, 1, 1]


@on_a_loop
async def test_a_ping_does_not_wait_for_an_answer_that_takes_long() -> None:
    it = Opened()
    it.say(PING, request(1, ends=True))
    await eventually(lambda: it.pieces.written)
    assert it.pieces.written == [[PONG]]
    # And again, though nothing was sent in between.
    it.say(PING)
    await eventually(lambda: len(it.pieces.written) == 2)
    assert it.pieces.written == [[PONG], [PONG]]
    assert it.socket.connection.pongs == 0


@on_a_loop
async def test_what_cannot_wait_takes_the_ping_along() -> None:
    it = Opened()
    it.say(request(1, ends=True))
    it.say(PING, settings_of())
    (piece,) = it.pieces.written
    assert [one.kind for one in piece] == [h2.PING, h2.SETTINGS]


@on_a_loop
async def test_nothing_is_sent_to_whom_is_gone() -> None:
    it = Opened()
    it.say(PING, request(1, ends=True))
    it.socket.connection_lost(None)
    other = Opened(it.server)
    other.say(PING, request(1, ends=True))
    await eventually(lambda: other.pieces.written)
    assert it.pieces.written == []


@on_a_loop
async def test_answers_of_one_turn_go_out_in_a_piece_for_each_connection() -> None:
    first = Opened()
    second = Opened(first.server)
    first.say(request(1, ends=True), request(3, ends=True))
    second.say(request(1, ends=True))
    for number in (1, 3):
        first.answer(number)
    second.answer(1)
    assert first.pieces.written == second.pieces.written == []
    await eventually(lambda: first.pieces.written and second.pieces.written)
    assert [[one.stream_id for one in piece] for piece in first.pieces.written] == [
        [1, 1, 1, 3, 3, 3]
    ]
    assert [[one.stream_id for one in piece] for piece in second.pieces.written] == [[1, 1, 1]]
