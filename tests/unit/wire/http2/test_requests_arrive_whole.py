"""However a client cuts and pads its requests, they are heard as they were said, within windows.

A random walk on the other side of `test_answers_arrive_whole`: requests are begun in one frame or
several, with header blocks of another library, their bodies are sent and read in any order, and the
client keeps the books of what it may send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import hpack
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.unit.wire.http2.client_bytes import (
    Client,
    Heard,
    data,
    failure,
    frames_in,
    request,
    settings_of,
)

from angarium.wire.http2 import Connection, ErrorCode, Http2Limits
from angarium.wire.http2 import frames as h2

if TYPE_CHECKING:
    from angarium.wire.http2 import RequestHead, Stream

LIMITS = Http2Limits(window_bytes=1_000, connection_window_bytes=70_000)
"""A small window, so that what is lost of it is missed soon."""

PSEUDO = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/a/b"))
names = st.sampled_from([b"x-one", b"x-two", b"user-agent"])
values = st.sampled_from([b"", b"the same", b"another"]) | st.binary(max_size=40).map(
    bytes.hex
).map(str.encode)
headers = st.lists(st.tuples(names, values), max_size=5)
paddings = st.none() | st.integers(0, 255)
table_sizes = st.none() | st.sampled_from([0, 50, 100, 4_096])


class Reading(Heard):
    """Writes down what it hears, whole heads and bodies."""

    def __init__(self) -> None:
        super().__init__()
        self.heads: dict[int, tuple[tuple[bytes, bytes], ...]] = {}
        self.bodies: dict[int, bytes] = {}
        self.is_ended: set[int] = set()

    def begun(self, stream: Stream, head: RequestHead) -> None:
        super().begun(stream, head)
        self.heads[stream.id] = head.fields
        self.bodies[stream.id] = b""

    def received(self, stream: Stream, data: bytes, ends: bool) -> None:
        self.bodies[stream.id] += data
        if ends:
            self.ended(stream)

    def ended(self, stream: Stream) -> None:
        self.is_ended.add(stream.id)


def in_parts(stream_id: int, block: bytes, cuts: list[int], *, ends: bool) -> list[bytes]:
    """Return the frames of a header block that is cut at some places."""
    at = sorted({0, *(cut % (len(block) + 1) for cut in cuts)})
    parts = [block[begin:end] for begin, end in zip(at, [*at[1:], len(block)], strict=True)]
    frames = []
    for number, part in enumerate(parts):
        kind = h2.CONTINUATION if number else h2.HEADERS
        flags = h2.END_STREAM if ends and not number else 0
        flags |= h2.END_HEADERS if number == len(parts) - 1 else 0
        frames.append(h2.frame(kind, flags, stream_id, part))
    return frames


def padded(stream_id: int, text: bytes, padding: int | None, *, ends: bool) -> bytes:
    flags = h2.END_STREAM if ends else 0
    if padding is None:
        return h2.frame(h2.DATA, flags, stream_id, text)
    payload = bytes((padding,)) + text + bytes(padding)
    return h2.frame(h2.DATA, flags | h2.PADDED, stream_id, payload)


class Walk(RuleBasedStateMachine):
    """A connection, and the books of a client that asks."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = Reading()
        self.connection = Connection(self.heard, LIMITS)
        self.encoder = hpack.Encoder()
        self.last_id = -1
        self.window = h2.WINDOW_INITIAL
        self.windows: dict[int, int] = {}
        self.said: dict[int, bytes] = {}
        self.unread: dict[int, int] = {}
        self.is_ended: set[int] = set()
        self.is_reset: set[int] = set()
        self.say(h2.PREFACE + settings_of())

    def say(self, *frames: bytes) -> None:
        self.connection.receive(b"".join(frames))
        for frame in frames_in(b"".join(self.connection.out)):
            if frame.kind == h2.WINDOW_UPDATE and frame.stream_id:
                self.windows[frame.stream_id] += frame.number
            elif frame.kind == h2.WINDOW_UPDATE:
                self.window += frame.number
            elif frame.kind == h2.RST_STREAM:
                assert frame.number == ErrorCode.FLOW_CONTROL_ERROR
                self.is_reset.add(frame.stream_id)
        self.connection.out.clear()
        assert not self.connection.is_over

    def open_ones(self) -> list[int]:
        return [one for one in self.said if one not in self.is_ended | self.is_reset]

    def read_ones(self) -> list[int]:
        return [one for one in self.unread if self.unread[one] and one not in self.is_reset]

    @rule(
        more=headers,
        cuts=st.lists(st.integers(0, 1_000), max_size=4),
        table_size=table_sizes,
        ends=st.booleans(),
    )
    def open(
        self,
        more: list[tuple[bytes, bytes]],
        cuts: list[int],
        table_size: int | None,
        ends: bool,
    ) -> None:
        self.last_id += 2
        one = self.last_id
        if table_size is not None:
            self.encoder.header_table_size = table_size
        block = self.encoder.encode([*PSEUDO, *more])
        self.windows[one] = LIMITS.window_bytes
        self.said[one], self.unread[one] = b"", 0
        if ends:
            self.is_ended.add(one)
        self.say(*in_parts(one, block, cuts, ends=ends))
        assert self.heard.heads[one] == tuple(more)

    @precondition(lambda self: bool(self.open_ones()))
    @rule(draw=st.data(), padding=paddings, ends=st.booleans())
    def send(self, draw: st.DataObject, padding: int | None, ends: bool) -> None:
        one = draw.draw(st.sampled_from(self.open_ones()))
        overhead = 0 if padding is None else 1 + padding
        most = min(self.window, self.windows[one]) - overhead
        if most < 0:
            return
        size = draw.draw(st.integers(0, most))
        text = bytes((len(self.said[one]) % 251,)) * size
        self.said[one] += text
        self.unread[one] += size
        self.window -= size + overhead
        self.windows[one] -= size + overhead
        if ends:
            self.is_ended.add(one)
        self.say(padded(one, text, padding, ends=ends))

    @precondition(lambda self: bool(self.read_ones()))
    @rule(draw=st.data())
    def read(self, draw: st.DataObject) -> None:
        one = draw.draw(st.sampled_from(self.read_ones()))
        size = draw.draw(st.integers(1, self.unread[one]) | st.just(self.unread[one]))
        self.unread[one] -= size
        self.connection.consumed(self.heard.streams[one], size)
        self.say()

    @precondition(lambda self: bool(self.open_ones()))
    @rule(draw=st.data(), beyond=st.integers(1, 50))
    def send_more_than_allowed(self, draw: st.DataObject, beyond: int) -> None:
        one = draw.draw(st.sampled_from(self.open_ones()))
        size = self.windows[one] + beyond
        self.window -= size
        self.say(data(one, bytes(size)))
        assert one in self.is_reset

    @precondition(lambda self: bool(self.open_ones()))
    @rule(draw=st.data())
    def send_much_and_read_it(self, draw: st.DataObject) -> None:
        """Go through a good part of the connection's window."""
        one = draw.draw(st.sampled_from(self.open_ones()))
        for _ in range(20):
            size = min(self.window, self.windows[one])
            self.said[one] += bytes(size)
            self.window -= size
            self.windows[one] -= size
            self.say(data(one, bytes(size)))
            self.connection.consumed(self.heard.streams[one], size + self.unread[one])
            self.unread[one] = 0
            self.say()

    @precondition(lambda self: bool(self.is_reset))
    @rule(draw=st.data(), size=st.integers(1, 5_000))
    def send_too_late(self, draw: st.DataObject, size: int) -> None:
        one = draw.draw(st.sampled_from(sorted(self.is_reset)))
        self.window -= size
        self.say(data(one, bytes(size)))

    @invariant()
    def what_was_said_is_what_was_heard(self) -> None:
        for one in self.said:
            assert self.heard.bodies[one] == self.said[one]
        assert self.heard.is_ended == self.is_ended - self.is_reset

    @invariant()
    def nothing_is_lost_of_a_window_nor_added_to_it(self) -> None:
        for one, stream in self.connection.streams.items():
            assert stream.receive_window == self.windows[one]
            assert self.windows[one] + stream.to_credit + self.unread[one] == LIMITS.window_bytes
            if not self.unread[one] and one not in self.is_ended:
                # Whoever has everything read may go on.
                assert self.windows[one] > LIMITS.window_bytes // 2
        most = LIMITS.connection_window_bytes
        assert most // 2 <= self.window <= most
        assert self.window == self.connection._receive_window


TestWalk = Walk.TestCase
TestWalk.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@given(
    cut=st.integers(0, 20),
    between=st.sampled_from(
        [
            data(1, b""),
            request(3),
            settings_of(),
            h2.window_update(0, 1),
            h2.frame(h2.PING, 0, 0, bytes(8)),
            h2.frame(h2.CONTINUATION, h2.END_HEADERS, 3),
            h2.frame(h2.CONTINUATION, h2.END_HEADERS, 0),
            h2.frame(0xEE, 0, 1),
        ]
    ),
)
def test_nothing_comes_between_the_parts_of_a_block(cut: int, between: bytes) -> None:
    client = Client()
    block = hpack.Encoder().encode(PSEUDO)
    first, last = in_parts(1, block, [1 + cut % (len(block) - 1)], ends=True)
    answers = client.say(first, between, last)
    assert failure(client, answers) is ErrorCode.PROTOCOL_ERROR
    assert client.heard.calls == []
