"""Both sides keep to the windows: ours for what a client sends, its own for what we send."""

from __future__ import annotations

import pytest
from tests.unit.wire.http2.client_bytes import (
    Client,
    Frame,
    data,
    failure,
    request,
    settings_of,
    was_reset,
)

from angarium.wire.http2 import ErrorCode, Http2Limits
from angarium.wire.http2 import frames as h2
from angarium.wire.http2.frames import Setting
from angarium.wire.http2.header_blocks import STATUS_200

KIB = bytes(1_024)


def window_of(size: int) -> bytes:
    return settings_of((Setting.INITIAL_WINDOW_SIZE, size))


def sent(answers: list[Frame]) -> dict[int, int]:
    """Return how many bytes of a body were sent on which stream."""
    found: dict[int, int] = {}
    for one in answers:
        if one.kind == h2.DATA:
            found[one.stream_id] = found.get(one.stream_id, 0) + len(one.payload)
    return found


def answering(client: Client, stream_id: int, size: int) -> dict[int, int]:
    """Begin an answer of so many bytes; return what of it went out."""
    client.say(request(stream_id, ends=True))
    sender = client.connection.sender
    sender.send_headers(client.stream(stream_id), STATUS_200)
    sender.send_data(client.stream(stream_id), bytes(size))
    return sent(client.answers())


# --- what a client sends --------------------------------------------------------------------------


def test_a_stream_may_send_as_much_as_its_window_and_no_more() -> None:
    client = Client(Http2Limits(window_bytes=2_048))
    assert client.say(request(1), data(1, KIB), data(1, KIB)) == []
    assert client.say(data(1, b"x")) == was_reset(1, ErrorCode.FLOW_CONTROL_ERROR)
    assert client.heard.calls[-1] == ("given up", 1)
    assert not client.connection.is_over


def test_it_may_send_again_what_was_read() -> None:
    client = Client(Http2Limits(window_bytes=2_048))
    client.say(request(1), data(1, KIB), data(1, KIB))
    client.connection.consumed(client.stream(1), 1_000)
    assert client.answers() == [], "not worth a frame yet"
    client.connection.consumed(client.stream(1), 24)
    assert client.answers() == [Frame(h2.WINDOW_UPDATE, 0, 1, h2.long_bytes(1_024))]
    assert client.say(data(1, KIB)) == []
    assert client.say(data(1, b"x")) == was_reset(1, ErrorCode.FLOW_CONTROL_ERROR)


def test_padding_counts_and_is_given_back_with_what_was_read() -> None:
    client = Client(Http2Limits(window_bytes=512))
    client.say(request(1), h2.frame(h2.DATA, h2.PADDED, 1, b"\xff" + b"x" + bytes(255)))
    assert client.heard.calls[-1] == ("received", 1, b"x")
    client.connection.consumed(client.stream(1), 1)
    assert client.answers() == [Frame(h2.WINDOW_UPDATE, 0, 1, h2.long_bytes(257))]


def test_whoever_has_said_everything_is_not_let_say_more() -> None:
    client = Client(Http2Limits(window_bytes=1_024))
    client.say(request(1), data(1, KIB, ends=True))
    client.connection.consumed(client.stream(1), 1_024)
    assert client.answers() == []


def test_the_connections_window_opens_again_whoever_reads() -> None:
    limits = Http2Limits(window_bytes=65_535, connection_window_bytes=65_535)
    client = Client(limits)
    client.say(request(1), request(3))
    piece = bytes(16_384)
    assert client.say(data(1, piece), data(3, piece)) == []
    assert client.say(data(1, b"x")) == [Frame(h2.WINDOW_UPDATE, 0, 0, h2.long_bytes(32_769))]


def test_it_opens_for_what_is_thrown_away_as_well() -> None:
    client = Client(Http2Limits(connection_window_bytes=65_535))
    client.say(request(1))
    client.connection.reset(1, ErrorCode.CANCEL)
    client.answers()
    answers = client.say(*[data(1, bytes(16_384))] * 40)
    assert {one.kind for one in answers} == {h2.WINDOW_UPDATE}
    assert sum(one.number for one in answers) >= 39 * 16_384 - 32_768


def test_more_than_the_connections_window_ends_it() -> None:
    # Frames of a kind that one window does not hold.
    limits = Http2Limits(
        frame_bytes_max=1 << 20, window_bytes=1 << 20, connection_window_bytes=65_535
    )
    client = Client(limits)
    client.say(request(1))
    answers = client.say(data(1, bytes(65_536)))
    assert failure(client, answers) is ErrorCode.FLOW_CONTROL_ERROR


# --- what a client is sent ------------------------------------------------------------------------


def test_no_more_is_sent_than_the_streams_window_allows() -> None:
    client = Client(settings=window_of(10))
    assert answering(client, 1, 25) == {1: 10}
    assert sent(client.say(h2.window_update(1, 7))) == {1: 7}
    assert ("drained", 1) not in client.heard.calls
    assert sent(client.say(h2.window_update(1, 100))) == {1: 8}
    assert client.heard.calls[-1] == ("drained", 1)


def test_no_more_is_sent_than_the_connections_window_allows() -> None:
    client = Client(settings=window_of(1 << 20))
    assert answering(client, 1, 70_000) == {1: 65_535}
    assert answering(client, 3, 5) == {}
    assert sent(client.say(h2.window_update(1, 1_000))) == {}
    assert sent(client.say(h2.window_update(0, 4_466))) == {1: 4_465, 3: 1}
    assert sent(client.say(h2.window_update(0, 100))) == {3: 4}


def test_a_window_made_smaller_may_be_below_nothing() -> None:
    client = Client(settings=window_of(100))
    assert answering(client, 1, 300) == {1: 100}
    assert sent(client.say(window_of(40))) == {}, "60 below nothing"
    assert sent(client.say(h2.window_update(1, 60))) == {}
    assert sent(client.say(h2.window_update(1, 5))) == {1: 5}
    assert sent(client.say(window_of(50))) == {1: 10}


def test_a_window_made_larger_lets_every_stream_go_on() -> None:
    client = Client(settings=window_of(0))
    for stream_id in (1, 3, 5):
        assert answering(client, stream_id, 20) == {}
    assert sent(client.say(window_of(15))) == {1: 15, 3: 15, 5: 15}
    assert answering(client, 7, 20) == {7: 15}, "and the next begins with it"


def test_settings_are_acknowledged_before_what_they_allow_is_sent() -> None:
    client = Client(settings=window_of(0))
    answering(client, 1, 20)
    answers = client.say(window_of(20))
    assert [one.kind for one in answers] == [h2.SETTINGS, h2.DATA]
    assert answers[0].flags == h2.ACK


def test_frames_are_as_large_as_the_client_takes_them() -> None:
    client = Client()
    client.say(request(1, ends=True))
    client.say(settings_of((Setting.MAX_FRAME_SIZE, 20_000)))
    client.connection.sender.send_data(client.stream(1), bytes(50_000))
    assert [len(one.payload) for one in client.answers()] == [20_000, 20_000, 10_000]


@pytest.mark.parametrize(
    "said",
    [
        window_of(1 << 31),
        h2.window_update(0, (1 << 31) - 1),
        h2.window_update(1, (1 << 31) - 1 - 65_535) + window_of(65_536),
    ],
)
def test_a_window_that_is_too_large_ends_the_connection(said: bytes) -> None:
    client = Client()
    client.say(request(1, ends=True))
    assert failure(client, client.say(said)) is ErrorCode.FLOW_CONTROL_ERROR


def test_a_streams_window_that_is_too_large_ends_the_stream() -> None:
    client = Client()
    client.say(request(1, ends=True))
    answers = client.say(h2.window_update(1, (1 << 31) - 1))
    assert answers == was_reset(1, ErrorCode.FLOW_CONTROL_ERROR)


def test_a_window_update_of_nothing_is_refused() -> None:
    client = Client()
    client.say(request(1, ends=True))
    assert client.say(h2.window_update(1, 0)) == was_reset(1, ErrorCode.PROTOCOL_ERROR)
    assert failure(client, client.say(h2.window_update(0, 0))) is ErrorCode.PROTOCOL_ERROR
