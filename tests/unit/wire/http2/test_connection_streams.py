"""What a stream may go through: its head, body and end, and what is refused in which state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.wire.http2.client_bytes import (
    REQUEST,
    Client,
    Frame,
    Heard,
    data,
    failure,
    frames_in,
    request,
    reset,
    settings_of,
    was_reset,
)

from angarium.wire.http2 import Connection, ErrorCode, Http2Limits
from angarium.wire.http2 import frames as h2
from angarium.wire.http2.header_blocks import STATUS_200, literal
from angarium.wire.http2.stream_ids import ABANDONED_MAX

if TYPE_CHECKING:
    from angarium.wire.http2 import RequestHead, Stream

TRAILER = literal(b"x-checksum", b"1")


def test_a_request_without_a_body_begins_and_ends() -> None:
    client = Client()
    assert client.say(request(1, ends=True)) == []
    assert client.heard.calls == [("begun", 1, b"/a/b"), ("ended", 1)]


def test_a_body_comes_in_pieces() -> None:
    client = Client()
    client.say(request(1), data(1, b"one"), data(1, b"two", ends=True))
    assert client.heard.calls[1:] == [
        ("received", 1, b"one"),
        ("received", 1, b"two"),
        ("ended", 1),
    ]


def test_trailers_end_a_body() -> None:
    client = Client()
    client.say(request(1), data(1, b"one"), request(1, TRAILER, ends=True))
    assert client.heard.calls[-1] == ("ended", 1)


@pytest.mark.parametrize(
    "trailers", [request(1, TRAILER), request(1, literal(b":path", b"/"), ends=True)]
)
def test_trailers_that_are_none_end_the_stream(trailers: bytes) -> None:
    client = Client()
    client.say(request(1), data(1, b"one"))
    assert client.say(trailers) == was_reset(1, ErrorCode.PROTOCOL_ERROR)
    assert client.heard.calls[-1] == ("given up", 1)


@pytest.mark.parametrize("late", [data(1, b"more"), request(1, TRAILER, ends=True)])
def test_whoever_has_ended_a_body_sends_no_more_of_it(late: bytes) -> None:
    client = Client()
    client.say(request(1, ends=True))
    assert client.say(late) == was_reset(1, ErrorCode.STREAM_CLOSED)
    assert client.heard.calls[-1] == ("given up", 1)
    assert not client.connection.is_over


def test_a_malformed_request_ends_its_stream_and_nobody_hears_of_it() -> None:
    client = Client()
    assert client.say(request(1, b"\x83", ends=True)) == was_reset(1, ErrorCode.PROTOCOL_ERROR)
    assert client.heard.calls == []
    client.say(request(3, ends=True))
    assert client.heard.calls == [("begun", 3, b"/a/b"), ("ended", 3)]


@pytest.mark.parametrize(("body", "is_right"), [(b"abc", True), (b"ab", False), (b"abcd", False)])
def test_a_body_is_as_long_as_its_head_said(body: bytes, is_right: bool) -> None:
    client = Client()
    answers = client.say(
        request(1, REQUEST + literal(b"content-length", b"3")), data(1, body, ends=True)
    )
    assert answers == ([] if is_right else was_reset(1, ErrorCode.PROTOCOL_ERROR))
    assert client.heard.calls[-1] == (("ended" if is_right else "given up"), 1)


def test_padding_and_priority_are_passed_over() -> None:
    client = Client()
    block = b"\x03" + h2.long_bytes(7) + b"\x10" + REQUEST + bytes(3)
    client.say(
        request(1, block, flags=h2.PADDED | h2.HAS_PRIORITY),
        h2.frame(h2.DATA, h2.PADDED | h2.END_STREAM, 1, b"\x02body\0\0"),
    )
    assert client.heard.calls[1:] == [("received", 1, b"body"), ("ended", 1)]


@pytest.mark.parametrize("payload", [b"", b"\x01", b"\x05abcd"])
@pytest.mark.parametrize("kind", [h2.DATA, h2.HEADERS])
def test_more_padding_than_payload_ends_the_connection(kind: int, payload: bytes) -> None:
    client = Client()
    client.say(request(1))
    stream_id = 1 if kind == h2.DATA else 3
    answers = client.say(h2.frame(kind, h2.PADDED | h2.END_HEADERS, stream_id, payload))
    assert failure(client, answers) is ErrorCode.PROTOCOL_ERROR


@pytest.mark.parametrize("stream_id", [0, 2])
def test_clients_open_streams_with_odd_numbers(stream_id: int) -> None:
    client = Client()
    assert failure(client, client.say(request(stream_id))) is ErrorCode.PROTOCOL_ERROR


def test_a_stream_that_was_passed_over_cannot_be_opened_any_more() -> None:
    client = Client()
    client.say(request(5))
    assert failure(client, client.say(request(3))) is ErrorCode.PROTOCOL_ERROR


def test_a_stream_that_is_over_cannot_be_opened_again() -> None:
    client = Client()
    client.say(request(1, ends=True))
    client.connection.sender.send_headers(client.stream(1), STATUS_200, ends=True)
    assert failure(client, client.say(request(1))) is ErrorCode.STREAM_CLOSED


def test_more_streams_than_allowed_are_refused() -> None:
    client = Client(Http2Limits(streams_max=2))
    client.say(request(1), request(3))
    assert client.say(request(5)) == was_reset(5, ErrorCode.REFUSED_STREAM)
    client.say(reset(1), request(7))
    assert client.heard.calls[-1] == ("begun", 7, b"/a/b")


@pytest.mark.parametrize(
    "said",
    [
        data(1, b"x"),
        data(0, b"x"),
        reset(1),
        reset(0),
        h2.window_update(1, 1),
        h2.frame(h2.CONTINUATION, 0, 1),
    ],
)
def test_nothing_is_said_of_a_stream_before_it_is_opened(said: bytes) -> None:
    client = Client()
    assert failure(client, client.say(said)) is ErrorCode.PROTOCOL_ERROR


# --- abandoned ------------------------------------------------------------------------------------


def test_a_stream_answered_before_its_body_was_whole_is_reset_without_reproach() -> None:
    client = Client()
    client.say(request(1))
    client.connection.sender.send_headers(client.stream(1), STATUS_200, ends=True)
    answers = client.answers()
    assert [one.kind for one in answers] == [h2.HEADERS, h2.RST_STREAM]
    assert answers[1:] == was_reset(1, ErrorCode.NO_ERROR)


def test_what_was_on_its_way_to_an_abandoned_stream_is_thrown_away() -> None:
    client = Client()
    client.say(request(1))
    client.connection.reset(1, ErrorCode.CANCEL)
    client.answers()
    heard = list(client.heard.calls)
    late = (data(1, b"late"), request(1, TRAILER, ends=True), h2.window_update(1, 1), reset(1))
    assert client.say(*late) == []
    assert client.heard.calls == heard
    assert not client.connection.is_over


def test_trailers_for_an_abandoned_stream_still_change_the_table() -> None:
    client = Client()
    client.say(request(1))
    client.connection.reset(1, ErrorCode.CANCEL)
    client.say(request(1, b"\x40\x01x\x01y", ends=True))
    client.say(request(3, REQUEST + b"\xbe", ends=True))
    assert client.heard.calls[-1] == ("ended", 3)


def test_a_stream_that_the_client_ended_takes_no_late_data() -> None:
    client = Client()
    client.say(request(1), reset(1))
    assert failure(client, client.say(data(1, b"late"))) is ErrorCode.STREAM_CLOSED


def test_of_streams_abandoned_long_ago_the_client_knows() -> None:
    client = Client(Http2Limits(resets_max=2 * ABANDONED_MAX))
    for one in range(ABANDONED_MAX + 1):
        client.say(request(2 * one + 1))
        client.connection.reset(2 * one + 1, ErrorCode.CANCEL)
    client.answers()
    assert client.say(data(3, b"late")) == []
    assert failure(client, client.say(data(1, b"late"))) is ErrorCode.STREAM_CLOSED


# --- heads in several frames ----------------------------------------------------------------------


def test_a_head_may_go_on_in_further_frames() -> None:
    client = Client()
    client.say(
        h2.frame(h2.HEADERS, h2.END_STREAM, 1, REQUEST[:1]),
        h2.frame(h2.CONTINUATION, 0, 1, REQUEST[1:4]),
        h2.frame(h2.CONTINUATION, h2.END_HEADERS, 1, REQUEST[4:]),
    )
    assert client.heard.calls == [("begun", 1, b"/a/b"), ("ended", 1)]


@pytest.mark.parametrize(
    "between",
    [
        data(1, b"x"),
        request(3),
        h2.frame(h2.PING, 0, 0, bytes(8)),
        h2.frame(h2.CONTINUATION, 0, 3),
        h2.frame(99, 0, 0),
    ],
)
def test_nothing_comes_between_the_parts_of_a_head(between: bytes) -> None:
    client = Client()
    answers = client.say(h2.frame(h2.HEADERS, 0, 1, REQUEST[:1]), between)
    assert failure(client, answers) is ErrorCode.PROTOCOL_ERROR


def test_a_head_in_too_many_frames_ends_the_connection() -> None:
    client = Client(Http2Limits(continuations_max=2))
    more = h2.frame(h2.CONTINUATION, 0, 1)
    assert client.say(h2.frame(h2.HEADERS, 0, 1, REQUEST), more, more) == []
    assert failure(client, client.say(more)) is ErrorCode.ENHANCE_YOUR_CALM


def test_a_head_that_is_too_long_ends_the_connection() -> None:
    client = Client(Http2Limits(header_block_bytes_max=20_000))
    answers = client.say(
        h2.frame(h2.HEADERS, 0, 1, bytes(10_001)), h2.frame(h2.CONTINUATION, 0, 1, bytes(10_000))
    )
    assert failure(client, answers) is ErrorCode.ENHANCE_YOUR_CALM


def test_a_block_that_nobody_can_decode_ends_the_connection() -> None:
    client = Client()
    assert failure(client, client.say(request(1, b"\xbe"))) is ErrorCode.COMPRESSION_ERROR


# --- what a connection begins with ----------------------------------------------------------------


def test_a_connection_tells_its_limits_first() -> None:
    limits = Http2Limits(streams_max=7, window_bytes=70_000, connection_window_bytes=100_000)
    client = Client(limits)
    first = frames_in(b"".join(Connection(client.heard, limits).out))
    assert [one.kind for one in first] == [h2.SETTINGS, h2.WINDOW_UPDATE]
    said = dict(h2.read_settings(first[0].payload))
    assert (said[h2.Setting.MAX_CONCURRENT_STREAMS], said[h2.Setting.INITIAL_WINDOW_SIZE]) == (
        7,
        70_000,
    )
    assert first[1] == Frame(h2.WINDOW_UPDATE, 0, 0, h2.long_bytes(100_000 - 65_535))


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n",
        h2.PREFACE[:-1] + b"x",
        h2.PREFACE + h2.frame(h2.PING, 0, 0, bytes(8)),
        h2.PREFACE + h2.frame(h2.SETTINGS, h2.ACK, 0),
    ],
)
def test_whoever_begins_otherwise_is_told_what_is_spoken_here(said: bytes) -> None:
    client = Client()
    client.connection = Connection(client.heard, Http2Limits())
    client.answers()
    assert failure(client, client.say(said)) is ErrorCode.PROTOCOL_ERROR
    assert not client.connection.is_greeted


@pytest.mark.parametrize("line", [b"GET / HTTP/1.1", b"POST /v1/topics HTTP/1.0"])
def test_a_client_of_http_1_can_read_what_is_spoken_here(line: bytes) -> None:
    connection = Connection(Heard(), Http2Limits())
    connection.receive(line + b"\r\nHost: somewhere\r\n\r\n")
    head, _, text = b"".join(connection.out).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 505 ")
    assert b"\r\nContent-Length: %d\r\n" % len(text) in head
    assert text.startswith(b"this port speaks gRPC")
    assert connection.is_over


def test_requests_that_differ_in_the_varying_header_alone_have_one_head() -> None:
    heads: list[RequestHead] = []

    class Keeping(Heard):
        def begun(self, stream: Stream, head: RequestHead) -> None:
            super().begun(stream, head)
            heads.append(head)

    heard = Keeping()
    connection = Connection(heard, Http2Limits(), varying=b"until")
    connection.receive(h2.PREFACE + settings_of())
    for stream_id, until in ((1, b"1S"), (3, b"999m"), (5, None), (7, b"not a word")):
        more = b"" if until is None else literal(b"until", until)
        connection.receive(request(stream_id, REQUEST + more + literal(b"x", b"1")))
    first, second, third, fourth = heads
    assert first is second is third
    assert (fourth is first, fourth.values[b"until"]) == (False, b"not a word")
    assert [heard.streams[one].varying for one in (1, 3, 5, 7)] == [b"1S", b"999m", None, None]
