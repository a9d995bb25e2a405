"""Answers go out in their order, as far as the windows go; what does not fit waits its turn."""

from __future__ import annotations

import pytest
from tests.unit.wire.http2.client_bytes import Frame, frames_in

from angarium.wire.http2 import Stream
from angarium.wire.http2 import frames as h2
from angarium.wire.http2.frames import Setting
from angarium.wire.http2.sender import Sender, WholeAnswer

HEAD, TRAILERS = b"\x88", b"\x89"


class Sending:
    """A sender, and what it has said of whom."""

    def __init__(self, *, window: int = 65_535, frame_bytes_max: int = 16_384) -> None:
        self.out: list[bytes | memoryview] = []
        self.drained: list[int] = []
        self.finished: list[int] = []
        self.sender = Sender(
            self.out,
            on_drained=lambda stream: self.drained.append(stream.id),
            on_finished=lambda stream: self.finished.append(stream.id),
        )
        self.sender.window = window
        self.sender.frame_bytes_max = frame_bytes_max

    def frames(self) -> list[Frame]:
        found = frames_in(b"".join(self.out))
        self.out.clear()
        return found

    def told(self) -> list[tuple[int, int, bytes]]:
        """Return what was sent: on which stream, of which kind, and what."""
        return [(one.stream_id, one.kind, one.payload) for one in self.frames()]


def stream_of(stream_id: int, *, window: int = 65_535) -> Stream:
    return Stream(stream_id, send_window=window, receive_window=0, content_length=-1)


@pytest.mark.parametrize("window", [0, 1, 4, 5, 100])
def test_a_whole_answer_is_its_head_body_and_trailers(window: int) -> None:
    it, stream = Sending(), stream_of(1, window=window)
    it.sender.answer(stream, HEAD, b"body!", TRAILERS)
    assert it.finished == ([1] if window >= 5 else [])
    stream.send_window += 100
    it.sender.send_waiting(stream)
    told = it.told()
    assert told[0] == (1, h2.HEADERS, HEAD)
    assert b"".join(payload for _, kind, payload in told if kind == h2.DATA) == b"body!"
    assert told[-1] == (1, h2.HEADERS, TRAILERS)


@pytest.mark.parametrize("window", [0, 4, 5, 100])
@pytest.mark.parametrize("has_table", [True, False])
@pytest.mark.parametrize("frame_bytes_max", [6, 16_384])
def test_an_answer_that_was_made_ready_is_the_same_as_any_other(
    window: int, has_table: bool, frame_bytes_max: int
) -> None:
    said: list[list[Frame]] = []
    for is_ready in (True, False):
        it = Sending(window=window, frame_bytes_max=frame_bytes_max)
        stream = stream_of(7, window=200)
        if not has_table:
            it.sender.set(Setting.HEADER_TABLE_SIZE, 0)
        if is_ready:
            it.sender.answer_with(stream, WholeAnswer(HEAD, b"body!", TRAILERS))
        else:
            it.sender.answer(stream, HEAD, b"body!", TRAILERS)
        it.sender.window += 100
        it.sender.send_stalled()
        assert it.finished == [7]
        assert it.sender.window == window + 95
        said.append(it.frames())
    assert said[0] == said[1]


def test_only_the_last_frame_ends_the_stream() -> None:
    it = Sending()
    it.sender.answer(stream_of(1), HEAD, b"body", TRAILERS)
    assert [one.flags for one in it.frames()] == [
        h2.END_HEADERS,
        0,
        h2.END_HEADERS | h2.END_STREAM,
    ]
    it.sender.send_headers(stream_of(3), HEAD, ends=True)
    it.sender.send_headers(stream_of(5), HEAD)
    it.sender.send_data(stream_of(5), b"ab", ends=True)
    it.sender.send_data(stream_of(7), b"", ends=True)
    ends = [(one.stream_id, one.flags & h2.END_STREAM) for one in it.frames()]
    assert ends == [(3, 1), (5, 0), (5, 1), (7, 1)]
    assert it.finished == [1, 3, 5, 7]


def test_trailers_come_behind_what_waits() -> None:
    it, stream = Sending(), stream_of(1, window=3)
    it.sender.send_data(stream, b"abcd")
    it.sender.send_data(stream, b"ef")
    it.sender.send_trailers(stream, TRAILERS)
    assert it.told() == [(1, h2.DATA, b"abc")]
    assert stream.is_finished
    assert it.finished == []
    stream.send_window = 10
    it.sender.send_waiting(stream)
    assert it.told() == [(1, h2.DATA, b"d"), (1, h2.DATA, b"ef"), (1, h2.HEADERS, TRAILERS)]
    assert it.finished == [1]


def test_an_end_may_come_behind_what_waits() -> None:
    it, stream = Sending(), stream_of(1, window=0)
    it.sender.send_data(stream, b"abc")
    it.sender.send_data(stream, b"", ends=True)
    stream.send_window = 10
    it.sender.send_waiting(stream)
    assert it.frames() == [Frame(h2.DATA, h2.END_STREAM, 1, b"abc")]
    assert it.finished == [1]


def test_a_body_is_cut_into_frames() -> None:
    it = Sending(frame_bytes_max=4)
    it.sender.send_data(stream_of(1), b"abcdefghij")
    assert [one.payload for one in it.frames()] == [b"abcd", b"efgh", b"ij"]


@pytest.mark.parametrize("whole", [False, True])
def test_a_header_block_is_cut_into_frames(whole: bool) -> None:
    it, stream = Sending(frame_bytes_max=4), stream_of(1)
    if whole:
        it.sender.answer(stream, b"\x88" * 6, b"body", b"\x89" * 9)
    else:
        it.sender.send_headers(stream, b"\x88" * 6)
        it.sender.send_data(stream, b"body")
        it.sender.send_trailers(stream, b"\x89" * 9)
    assert [(one.kind, one.flags, len(one.payload)) for one in it.frames()] == [
        (h2.HEADERS, 0, 4),
        (h2.CONTINUATION, h2.END_HEADERS, 2),
        (h2.DATA, 0, 4),
        (h2.HEADERS, h2.END_STREAM, 4),
        (h2.CONTINUATION, 0, 4),
        (h2.CONTINUATION, h2.END_HEADERS, 1),
    ]
    assert it.finished == [1]


def test_streams_that_wait_for_the_connection_go_on_in_the_order_in_which_they_began_to() -> None:
    it = Sending(window=0)
    streams = {one: stream_of(one) for one in (5, 1, 3)}
    for one in streams.values():
        it.sender.send_data(one, b"%d" % one.id * 4)
    it.sender.window = 6
    it.sender.send_stalled()
    assert it.told() == [(5, h2.DATA, b"5555"), (1, h2.DATA, b"11")]
    it.sender.window = 100
    it.sender.send_stalled()
    assert it.told() == [(1, h2.DATA, b"11"), (3, h2.DATA, b"3333")]
    assert it.drained == [5, 1, 3]


def test_one_whose_own_window_is_used_up_goes_to_the_end() -> None:
    it = Sending(window=0)
    large, small = stream_of(1, window=4), stream_of(3)
    it.sender.send_data(large, b"1" * 100)
    it.sender.send_data(small, b"33")
    it.sender.window = 5
    it.sender.send_stalled()
    assert it.told() == [(1, h2.DATA, b"1111"), (3, h2.DATA, b"3")]
    large.send_window += 4
    it.sender.send_waiting(large)
    it.sender.window = 3
    it.sender.send_stalled()
    assert it.told() == [(3, h2.DATA, b"3"), (1, h2.DATA, b"11")]


def test_what_a_closed_stream_had_waiting_is_forgotten() -> None:
    it = Sending(window=3)
    one, other = stream_of(1), stream_of(3)
    it.sender.send_data(one, b"12345")
    it.sender.send_data(other, b"67")
    assert it.sender.waiting_bytes == 4
    it.sender.forget(one)
    assert it.sender.waiting_bytes == 2
    it.frames()
    it.sender.window = 10
    it.sender.send_stalled()
    assert it.told() == [(3, h2.DATA, b"67")]
    assert it.sender.waiting_bytes == 0
