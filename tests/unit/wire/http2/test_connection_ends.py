"""How a connection ends: politely, or for a mistake of the client's."""

from __future__ import annotations

import struct

import pytest
from tests.unit.wire.http2.client_bytes import (
    REQUEST,
    Client,
    Frame,
    data,
    failure,
    request,
    reset,
    settings_of,
)

from angarium.wire.http2 import ErrorCode
from angarium.wire.http2 import frames as h2
from angarium.wire.http2.frames import Setting
from angarium.wire.http2.header_blocks import STATUS_200, literal


def goaway(answers: list[Frame]) -> tuple[int, int]:
    """Return the last stream that was looked at, and why there are no more."""
    assert answers[-1].kind == h2.GOAWAY
    last, code = struct.unpack_from(">II", answers[-1].payload)
    return last, code


# --- politely -------------------------------------------------------------------------------------


def test_whoever_leaves_answers_what_is_under_way_and_takes_no_more() -> None:
    client = Client()
    client.say(request(1, ends=True))
    client.connection.leave()
    assert goaway(client.answers()) == (1, ErrorCode.NO_ERROR)
    heard = list(client.heard.calls)
    assert client.say(request(3), data(3, b"x"), data(3, b"y", ends=True)) == []
    assert client.heard.calls == heard
    client.connection.sender.send_headers(client.stream(1), STATUS_200, ends=True)
    assert [one.stream_id for one in client.answers()] == [1]
    assert not client.connection.is_over


def test_the_heads_that_are_not_looked_at_still_change_the_table() -> None:
    client = Client()
    client.say(request(1))
    client.connection.leave()
    client.say(request(3, REQUEST + b"\x40\x01x\x01y", ends=True))
    client.say(request(1, b"\xbe", ends=True))
    assert client.heard.calls[-1] == ("ended", 1)


def test_a_request_that_is_not_looked_at_may_have_trailers() -> None:
    client = Client()
    client.connection.leave()
    client.answers()
    trailers = request(1, literal(b"x", b"1"), ends=True)
    assert client.say(request(1), data(1, b"x"), trailers, reset(1)) == []
    assert not client.connection.is_over


def test_what_was_once_said_not_to_be_looked_at_stays_so() -> None:
    client = Client()
    client.say(request(1, ends=True))
    client.connection.leave()
    client.answers()
    client.say(request(3, ends=True), request(5, ends=True))
    client.connection.fail(ErrorCode.INTERNAL_ERROR, "by accident")
    assert goaway(client.answers()) == (1, ErrorCode.INTERNAL_ERROR)


def test_a_client_that_leaves_is_answered() -> None:
    client = Client()
    client.say(request(1, ends=True))
    assert client.say(h2.goaway_frame(0, ErrorCode.NO_ERROR)) == []
    client.connection.sender.send_headers(client.stream(1), STATUS_200, ends=True)
    assert [one.stream_id for one in client.answers()] == [1]


def test_when_nobody_is_there_any_more_every_stream_is_given_up() -> None:
    client = Client()
    client.say(request(1, ends=True), request(3))
    client.connection.sender.send_data(client.stream(1), bytes(100_000))
    client.connection.lost()
    assert client.heard.calls[-2:] == [("given up", 1), ("given up", 3)]
    assert client.connection.streams == {}
    assert client.connection.sender.waiting_bytes == 0


# --- for a mistake --------------------------------------------------------------------------------


def test_after_the_end_nothing_is_read() -> None:
    client = Client()
    answers = client.say(h2.frame(h2.PUSH_PROMISE, 0, 1, bytes(4)), request(1, ends=True))
    assert failure(client, answers) is ErrorCode.PROTOCOL_ERROR
    assert client.say(request(1, ends=True)) == []
    client.connection.fail(ErrorCode.INTERNAL_ERROR, "twice")
    assert client.answers() == []
    assert client.heard.calls == []


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (h2.frame(h2.PING, 0, 0, bytes(7)), ErrorCode.FRAME_SIZE_ERROR),
        (h2.frame(h2.PING, 0, 1, bytes(8)), ErrorCode.PROTOCOL_ERROR),
        (h2.frame(h2.SETTINGS, 0, 0, bytes(5)), ErrorCode.FRAME_SIZE_ERROR),
        (h2.frame(h2.SETTINGS, 0, 1), ErrorCode.PROTOCOL_ERROR),
        (h2.frame(h2.SETTINGS, h2.ACK, 0, bytes(6)), ErrorCode.FRAME_SIZE_ERROR),
        (h2.frame(h2.RST_STREAM, 0, 1, bytes(5)), ErrorCode.FRAME_SIZE_ERROR),
        (h2.frame(h2.WINDOW_UPDATE, 0, 0, bytes(3)), ErrorCode.FRAME_SIZE_ERROR),
        (h2.frame(h2.GOAWAY, 0, 0, bytes(7)), ErrorCode.FRAME_SIZE_ERROR),
        (h2.frame(h2.GOAWAY, 0, 1, bytes(8)), ErrorCode.PROTOCOL_ERROR),
        (h2.frame(h2.PRIORITY, 0, 0, bytes(5)), ErrorCode.PROTOCOL_ERROR),
        (h2.frame(h2.HEADERS, h2.HAS_PRIORITY, 3, bytes(4)), ErrorCode.FRAME_SIZE_ERROR),
        (h2.frame(h2.DATA, 0, 1, bytes(16_385)), ErrorCode.FRAME_SIZE_ERROR),
        (settings_of((Setting.ENABLE_PUSH, 2)), ErrorCode.PROTOCOL_ERROR),
        (settings_of((Setting.MAX_FRAME_SIZE, 16_383)), ErrorCode.PROTOCOL_ERROR),
        (settings_of((Setting.MAX_FRAME_SIZE, 1 << 24)), ErrorCode.PROTOCOL_ERROR),
    ],
)
def test_a_frame_that_may_not_be_ends_the_connection(said: bytes, code: ErrorCode) -> None:
    client = Client()
    client.say(request(1))
    answers = client.say(said)
    assert failure(client, answers) is code
    assert goaway(answers)[0] == 1


def test_settings_and_frames_that_nobody_knows_are_passed_over() -> None:
    client = Client()
    answers = client.say(settings_of((99, 1), (Setting.HEADER_TABLE_SIZE, 0)), h2.frame(99, 255, 7))
    assert answers == [Frame(h2.SETTINGS, h2.ACK, 0, b"")]
    assert not client.connection.is_over


def test_a_ping_is_answered_with_what_it_said() -> None:
    client = Client()
    assert client.say(h2.frame(h2.PING, 0, 0, b"whoever!")) == [
        Frame(h2.PING, h2.ACK, 0, b"whoever!")
    ]


def test_a_ping_of_ours_is_answered() -> None:
    client = Client()
    client.connection.ping()
    assert client.answers() == [Frame(h2.PING, 0, 0, bytes(8))]
    assert not client.connection.has_been_pinged_back
    assert client.say(h2.frame(h2.PING, h2.ACK, 0, bytes(8))) == []
    assert client.connection.has_been_pinged_back
