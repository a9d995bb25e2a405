"""Whatever bytes come, and however they are cut, a connection only ever answers or ends."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.wire.http2.client_bytes import (
    REQUEST,
    Frame,
    Heard,
    data,
    frames_in,
    request,
    reset,
    settings_of,
)

from angarium.wire.http2 import Connection, Http2Limits
from angarium.wire.http2 import frames as h2
from angarium.wire.http2.header_blocks import STATUS_200, literal
from angarium.wire.http2.older_http import ANSWER

if TYPE_CHECKING:
    from angarium.wire.http2 import RequestHead, Stream

LIMITS = Http2Limits(
    streams_max=3,
    window_bytes=64,
    connection_window_bytes=65_535,
    header_block_bytes_max=500,
    continuations_max=2,
    resets_max=4,
    control_frames_max=12,
)
"""Small ones, so that all of them are reached."""

ids = st.sampled_from([0, 1, 2, 3, 5, 7, 9, 11, h2.STREAM_ID_MAX])
blocks = st.sampled_from(
    [
        REQUEST,
        REQUEST + b"\x40\x01x\x01y",
        REQUEST + b"\xbe",
        b"\x20" + REQUEST,
        REQUEST + literal(b"content-length", b"3"),
        literal(b"x", b"1"),
        b"\x83",
    ]
) | st.binary(max_size=30)
numbers = st.sampled_from([0, 1, 50, 70_000, h2.WINDOW_MAX, (1 << 32) - 1])

likely_frames = st.one_of(
    st.builds(request, ids, blocks, ends=st.booleans()),
    st.builds(data, ids, st.sampled_from([b"", b"abc", bytes(40)]), ends=st.booleans()),
    st.builds(reset, ids),
    st.builds(lambda one, size: h2.frame(8, 0, one, h2.long_bytes(size)), ids, numbers),
    st.builds(settings_of, st.tuples(st.integers(0, 7), numbers)),
    st.builds(
        lambda one, flags, block: h2.frame(9, flags, one, block),
        ids,
        st.sampled_from([0, 4]),
        blocks,
    ),
    st.builds(lambda block, one: h2.frame(1, 0, one, block), blocks, ids),
)
odd_frames = st.builds(
    h2.frame, st.integers(0, 12), st.integers(0, 255), ids, st.binary(max_size=40)
)
conversations = st.lists(likely_frames | odd_frames, max_size=25).map(
    lambda frames: h2.PREFACE + settings_of() + b"".join(frames)
)


class Answering(Heard):
    """Writes down what it hears, reads all, and answers each request when it has ended."""

    connection: Connection

    def begun(self, stream: Stream, head: RequestHead) -> None:
        super().begun(stream, head)
        if stream.id % 5 == 0:  # not all wait for the end
            self.connection.sender.send_headers(stream, STATUS_200, ends=True)

    def received(self, stream: Stream, data: bytes, ends: bool) -> None:
        if not stream.is_closed:
            self.connection.consumed(stream, len(data))
        super().received(stream, data, ends)

    def ended(self, stream: Stream) -> None:
        super().ended(stream)
        self.connection.sender.answer(stream, STATUS_200, bytes(100), STATUS_200)


def heard_of(pieces: list[bytes]) -> tuple[Answering, bytes]:
    """Return what was heard, and what was written."""
    listener = Answering()
    listener.connection = Connection(listener, LIMITS)
    for piece in pieces:
        listener.connection.receive(piece)
    return listener, b"".join(listener.connection.out)


def answers_in(out: bytes) -> list[Frame]:
    """Return the frames of an answer; chance may begin as a request of an older HTTP does."""
    return [] if out == ANSWER else frames_in(out)


def cut(whole: bytes, places: list[int]) -> list[bytes]:
    at = sorted({0, len(whole), *(place % (len(whole) + 1) for place in places)})
    return [whole[begin:end] for begin, end in pairwise(at)]


def check_books(listener: Answering) -> None:
    """See that what a connection keeps is consistent, whatever came."""
    connection = listener.connection
    assert len(connection.streams) <= LIMITS.streams_max
    waiting = sum(stream.waiting_bytes for stream in connection.streams.values())
    assert connection.sender.waiting_bytes == waiting
    connection.lost()
    begun = [call[1] for call in listener.calls if call[0] == "begun"]
    assert len(begun) == len(set(begun))
    assert connection.sender.waiting_bytes == 0


@given(st.binary(max_size=400), st.booleans())
def test_random_bytes_are_answered_in_whole_frames(said: bytes, is_greeted: bool) -> None:
    listener, out = heard_of([h2.PREFACE + settings_of() + said if is_greeted else said])
    answers_in(out)
    check_books(listener)


@settings(max_examples=300)
@given(conversations)
def test_frames_that_fit_nowhere_are_answered_in_whole_frames(said: bytes) -> None:
    listener, out = heard_of([said])
    answers = answers_in(out)
    ends = [at for at, one in enumerate(answers) if one.kind == h2.GOAWAY]
    assert ends == ([len(answers) - 1] if listener.connection.is_over else [])
    check_books(listener)


@given(
    conversations,
    st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_mutated_bytes_are_answered_in_whole_frames(
    said: bytes, changes: list[tuple[int, int]]
) -> None:
    changed = bytearray(said)
    for place, byte in changes:
        changed[place % len(said)] = byte
    listener, out = heard_of([bytes(changed)])
    answers_in(out)
    check_books(listener)


def test_a_preface_of_an_older_http_is_answered_as_that() -> None:
    said = bytearray(h2.PREFACE + settings_of())
    said[h2.PREFACE.index(b"2")] = ord("1")
    listener, out = heard_of([bytes(said)])
    assert out == ANSWER
    check_books(listener)


@settings(max_examples=200)
@given(conversations, st.lists(st.integers(0, 1 << 16), max_size=12))
def test_it_does_not_matter_where_the_bytes_are_cut(said: bytes, places: list[int]) -> None:
    whole, out = heard_of([said])
    pieces, out_of_pieces = heard_of(cut(said, places))
    assert pieces.calls == whole.calls
    assert out_of_pieces == out


@settings(max_examples=30)
@given(conversations)
def test_nor_if_each_byte_comes_alone(said: bytes) -> None:
    whole, out = heard_of([said])
    bytewise, out_of_bytes = heard_of([bytes((one,)) for one in said])
    assert bytewise.calls == whole.calls
    assert out_of_bytes == out
