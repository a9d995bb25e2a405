"""Whatever a client does with its windows, what arrives is what was written, within them.

A random walk: streams are opened, written to, ended and reset, and windows opened and changed, in
any order. The client keeps the books as RFC 9113 tells it to, and finds no fault.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.unit.wire.http2.client_bytes import Client, request, reset, settings_of

from angarium.wire.http2 import ErrorCode
from angarium.wire.http2 import frames as h2
from angarium.wire.http2.frames import Setting

HEAD, TRAILERS = b"\x88", b"\x89"
windows = st.integers(0, 200) | st.integers(0, 70_000)
sizes = st.integers(1, 300) | st.integers(1, 50_000)


class Walk(RuleBasedStateMachine):
    """A connection, and a client's books about it."""

    def __init__(self) -> None:
        super().__init__()
        self.client = Client()
        self.sender = self.client.connection.sender
        self.last_id = -1
        self.letters = 0
        self.stream_window = self.window = 65_535
        self.windows: dict[int, int] = {}
        self.frame_bytes_max = 16_384
        self.written: dict[int, bytes] = {}
        self.arrived: dict[int, bytes] = {}
        self.is_said: set[int] = set()
        """Streams of which we have said everything."""
        self.is_whole: set[int] = set()
        """Streams of which the client has seen the end."""
        self.is_reset: set[int] = set()

    def open_ones(self) -> list[int]:
        return [one for one in self.written if one not in self.is_said | self.is_reset]

    def alive(self) -> list[int]:
        return [one for one in self.written if one not in self.is_whole | self.is_reset]

    def read(self) -> None:
        """Book what came, as a client does."""
        for frame in self.client.answers():
            one = frame.stream_id
            if frame.kind == h2.DATA:
                assert len(frame.payload) <= self.frame_bytes_max
                assert one not in self.is_whole | self.is_reset
                self.arrived[one] += frame.payload
                self.window -= len(frame.payload)
                self.windows[one] -= len(frame.payload)
                assert self.window >= 0
                assert self.windows[one] >= 0 or not frame.payload
            if frame.kind in (h2.DATA, h2.HEADERS) and frame.flags & h2.END_STREAM:
                assert self.arrived[one] == self.written[one]
                self.is_whole.add(one)

    def say(self, said: bytes) -> None:
        self.client.connection.receive(said)
        assert not self.client.connection.is_over
        self.read()

    def text(self, size: int) -> bytes:
        self.letters += 1
        return bytes((self.letters % 251,)) * size

    @rule()
    def open(self) -> None:
        self.last_id += 2
        self.windows[self.last_id] = self.stream_window
        self.written[self.last_id] = self.arrived[self.last_id] = b""
        self.say(request(self.last_id, ends=True))
        self.sender.send_headers(self.client.stream(self.last_id), HEAD)
        self.read()

    @rule(size=sizes)
    def answer_at_once(self, size: int) -> None:
        self.last_id += 2
        self.windows[self.last_id] = self.stream_window
        self.written[self.last_id], self.arrived[self.last_id] = self.text(size), b""
        self.say(request(self.last_id, ends=True))
        self.is_said.add(self.last_id)
        self.sender.answer(
            self.client.stream(self.last_id), HEAD, self.written[self.last_id], TRAILERS
        )
        self.read()

    @precondition(lambda self: bool(self.open_ones()))
    @rule(data=st.data(), size=sizes)
    def write(self, data: st.DataObject, size: int) -> None:
        one = data.draw(st.sampled_from(self.open_ones()))
        text = self.text(size)
        self.written[one] += text
        self.sender.send_data(self.client.stream(one), text)
        self.read()

    @precondition(lambda self: bool(self.open_ones()))
    @rule(data=st.data(), has_trailers=st.booleans(), size=st.integers(0, 100))
    def end(self, data: st.DataObject, has_trailers: bool, size: int) -> None:
        one = data.draw(st.sampled_from(self.open_ones()))
        self.is_said.add(one)
        if has_trailers:
            self.sender.send_trailers(self.client.stream(one), TRAILERS)
        else:
            text = self.text(size)
            self.written[one] += text
            self.sender.send_data(self.client.stream(one), text, ends=True)
        self.read()

    @precondition(lambda self: bool(self.alive()))
    @rule(data=st.data(), by_us=st.booleans())
    def reset(self, data: st.DataObject, by_us: bool) -> None:
        one = data.draw(st.sampled_from(self.alive()))
        self.is_reset.add(one)
        if by_us:
            self.client.connection.reset(one, ErrorCode.CANCEL)
            self.read()
        else:
            self.say(reset(one))

    @rule(size=sizes)
    def widen_the_connection(self, size: int) -> None:
        self.window += size
        self.say(h2.window_update(0, size))

    @precondition(lambda self: bool(self.alive()))
    @rule(data=st.data(), size=sizes)
    def widen_a_stream(self, data: st.DataObject, size: int) -> None:
        one = data.draw(st.sampled_from(self.alive()))
        self.windows[one] += size
        self.say(h2.window_update(one, size))

    @rule(size=windows, frame_bytes_max=st.sampled_from([16_384, 20_000]))
    def change_all_windows(self, size: int, frame_bytes_max: int) -> None:
        for one in self.windows:
            self.windows[one] += size - self.stream_window
        self.stream_window = size
        self.frame_bytes_max = max(frame_bytes_max, self.frame_bytes_max)
        self.say(
            settings_of(
                (Setting.INITIAL_WINDOW_SIZE, size), (Setting.MAX_FRAME_SIZE, frame_bytes_max)
            )
        )

    @invariant()
    def what_waits_is_what_has_not_arrived(self) -> None:
        waiting = sum(len(self.written[one]) - len(self.arrived[one]) for one in self.alive())
        assert self.sender.waiting_bytes == waiting
        assert set(self.client.connection.streams) == set(self.alive())

    @invariant()
    def what_arrived_is_what_was_written(self) -> None:
        for one, text in self.arrived.items():
            assert self.written[one].startswith(text)

    @invariant()
    def nothing_waits_that_has_room(self) -> None:
        for one in self.alive():
            if len(self.arrived[one]) < len(self.written[one]):
                assert self.window <= 0 or self.windows[one] <= 0

    def teardown(self) -> None:
        """See that everything arrives once there is room."""
        for one in self.alive():
            self.widen_to(one)
        self.widen_to(0)
        for one in self.alive():
            assert self.arrived[one] == self.written[one]
            assert one not in self.is_said
        assert self.sender.waiting_bytes == 0

    def widen_to(self, one: int) -> None:
        size = 1 << 25
        if one:
            self.windows[one] += size
        else:
            self.window += size
        self.say(h2.window_update(one, size))


TestWalk = Walk.TestCase
TestWalk.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
