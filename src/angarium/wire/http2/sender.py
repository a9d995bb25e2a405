"""What goes out on a connection: frames of answers, as far as the client's windows go.

There are two windows, the connection's and the stream's. What does not fit waits on its stream and
goes out when both allow it, in the order in which streams began to wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.wire.http2 import frames as h2
from angarium.wire.http2.frames import ConnectionFailed, ErrorCode, Setting, protocol_error
from angarium.wire.http2.header_blocks import NO_TABLE, TABLE_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from angarium.wire.http2.streams import Stream

_HEADERS_END: Final = h2.END_HEADERS | h2.END_STREAM


PIECE_BYTES_LEAST: Final = 5
"""A shorter piece of an answer is none: a client may open its window byte by byte. The smallest
message of gRPC has five bytes."""


class WholeAnswer:
    """An answer that is known before it is asked for: its frames are ready but for the number of
    their stream. `head` and `trailers` are header blocks."""

    __slots__ = ("body", "head", "parts", "size", "trailers")

    def __init__(self, head: bytes, body: bytes, trailers: bytes) -> None:
        self.head = head
        self.body = body
        self.trailers = trailers
        self.parts = _parts(head, body, trailers)
        self.size = len(head) + len(body) + len(trailers)


def _parts(head: bytes, body: bytes, trailers: bytes) -> tuple[bytes, ...]:
    """Return the three frames of an answer, cut where each has the number of its stream."""
    write = h2.head_before_stream
    return (
        write(len(head) << 8 | h2.HEADERS, h2.END_HEADERS),
        head + write(len(body) << 8 | h2.DATA, 0),
        body + write(len(trailers) << 8 | h2.HEADERS, _HEADERS_END),
        trailers,
    )


class Sender:
    """Sends the answers of one connection."""

    def __init__(
        self,
        out: list[bytes | memoryview],
        *,
        on_drained: Callable[[Stream], None],
        on_finished: Callable[[Stream], None],
    ) -> None:
        """Prepare to append to `out`; hear when nothing of a stream waits, and when it is whole."""
        self.out = out
        self.window = h2.WINDOW_INITIAL
        self.stream_window = h2.WINDOW_INITIAL
        """What a new stream may be sent."""
        self.frame_bytes_max = h2.FRAME_BYTES_INITIAL
        self.waiting_bytes = 0
        """What waits, over all streams."""
        self.pieces = 0
        """Pieces of answers sent since `Nuisances.credit` last took the count."""
        self._before_block = b""
        """What the next header block has to begin with."""
        self._has_table = True
        """As far as the client knows: we never put anything into it."""
        self._on_drained = on_drained
        self._on_finished = on_finished
        self.stalled: dict[int, Stream] = {}
        """Streams with something that waits for the connection's window, in the order in which
        they began to."""

    def answer(self, stream: Stream, head: bytes, body: bytes, trailers: bytes) -> None:
        """Send a whole answer. `head` and `trailers` are header blocks."""
        if self._has_room_for(stream, len(body), len(head) + len(body) + len(trailers)):
            self.window -= len(body)
            self.pieces += 1
            self.out.append(h2.long_bytes(stream.id).join(_parts(head, body, trailers)))
            self._on_finished(stream)
            return
        self.send_headers(stream, head)
        self.send_data(stream, body)
        self.send_trailers(stream, trailers)

    def answer_with(self, stream: Stream, answer: WholeAnswer) -> None:
        """Send an answer that was made ready before."""
        size = len(answer.body)
        if self._has_room_for(stream, size, answer.size):
            self.window -= size
            self.pieces += 1
            self.out.append(h2.long_bytes(stream.id).join(answer.parts))
            self._on_finished(stream)
        else:
            self.answer(stream, answer.head, answer.body, answer.trailers)

    def _has_room_for(self, stream: Stream, body_bytes: int, answer_bytes: int) -> bool:
        """Tell whether a whole answer can be sent as three frames, now."""
        return (
            body_bytes <= stream.send_window
            and body_bytes <= self.window
            # Together: two comparisons less, and hardly an answer that is any slower for it.
            and answer_bytes <= self.frame_bytes_max
            and not self._before_block
        )

    def send_headers(self, stream: Stream, block: bytes, *, ends: bool = False) -> None:
        """Send the header block that an answer begins with, and may be all of."""
        self._write_block(stream, block, ends=ends)
        if ends:
            self._on_finished(stream)

    def send_data(self, stream: Stream, data: bytes, *, ends: bool = False) -> None:
        """Send a piece of an answer's body; what there is no room for waits on the stream."""
        if data:
            stream.waiting.append(memoryview(data))
            stream.waiting_bytes += len(data)
            self.waiting_bytes += len(data)
        stream.ends_when_sent = ends
        if not data and ends and not stream.waiting:
            self.out.append(h2.frame(h2.DATA, h2.END_STREAM, stream.id))
            self._on_finished(stream)
            return
        if len(stream.waiting) == 1:  # else it waits behind what waited before
            self.send_waiting(stream)

    def send_trailers(self, stream: Stream, block: bytes) -> None:
        """Send the header block that an answer ends with, behind what waits."""
        if stream.waiting:
            stream.trailers = block
            stream.is_finished = True
        else:
            self._write_block(stream, block, ends=True)
            self._on_finished(stream)

    def _write_block(self, stream: Stream, block: bytes, *, ends: bool) -> None:
        if self._before_block:
            block, self._before_block = self._before_block + block, b""
        kind, flags = h2.HEADERS, h2.END_STREAM if ends else 0
        while len(block) > self.frame_bytes_max:
            part, block = block[: self.frame_bytes_max], block[self.frame_bytes_max :]
            self.out.append(h2.frame(kind, flags, stream.id, part))
            kind, flags = h2.CONTINUATION, 0
        self.out.append(h2.frame(kind, flags | h2.END_HEADERS, stream.id, block))

    def send_stalled(self) -> None:
        """Send what waits for the connection's window: whoever has waited the longest first."""
        while self.stalled and self.window > 0:
            self.send_waiting(next(iter(self.stalled.values())))

    def send_waiting(self, stream: Stream) -> None:
        """Send of what waits as much as both windows allow."""
        waiting = stream.waiting
        while waiting:
            data = waiting[0]
            size = min(len(data), stream.send_window, self.window, self.frame_bytes_max)
            if size <= 0:
                # One whose own window is closed waits for nobody else's.
                if stream.send_window > 0:
                    self.stalled[stream.id] = stream
                else:
                    self.stalled.pop(stream.id, None)
                return
            stream.send_window -= size
            self.window -= size
            self.pieces += size >= PIECE_BYTES_LEAST
            stream.waiting_bytes -= size
            self.waiting_bytes -= size
            if size == len(data):
                waiting.popleft()
            else:
                waiting[0] = data[size:]
                data = data[:size]
            is_last = stream.ends_when_sent and not waiting
            flags = h2.END_STREAM if is_last else 0
            self.out += (h2.frame_head(h2.DATA, flags, stream.id, size), data)
        self.stalled.pop(stream.id, None)
        if stream.trailers:
            self._write_block(stream, stream.trailers, ends=True)
            self._on_finished(stream)
        elif stream.ends_when_sent:
            self._on_finished(stream)
        else:
            self._on_drained(stream)

    def set(self, setting: int, value: int) -> None:
        """Take a setting of the client's: all of them are about what it may be sent."""
        match setting:
            case Setting.INITIAL_WINDOW_SIZE:
                if value > h2.WINDOW_MAX:
                    raise ConnectionFailed(ErrorCode.FLOW_CONTROL_ERROR, "a window too large")
                self.stream_window = value
            case Setting.MAX_FRAME_SIZE:
                if not h2.FRAME_BYTES_INITIAL <= value < 1 << 24:
                    raise protocol_error("frames have 16 KiB to 16 MiB at the most")
                self.frame_bytes_max = value
            case Setting.ENABLE_PUSH:
                if value > 1:
                    raise protocol_error("push is enabled or not")
            case Setting.HEADER_TABLE_SIZE:
                # Its decoder insists on hearing that we keep to it (RFC 7541, section 4.2), though
                # we never use the table.
                if value < TABLE_BYTES_MAX and self._has_table:
                    self._has_table = False
                    self._before_block = NO_TABLE
            case _:
                # We push nothing and open no streams; what it takes of headers, all of ours stay
                # below. Others: section 5.5.
                pass

    def widen(self, streams: Iterable[Stream], change: int) -> None:
        """Let every stream send more, or less: a window may well be below nothing (6.9.2)."""
        for stream in list(streams):
            stream.send_window += change
            if stream.send_window > h2.WINDOW_MAX:
                raise ConnectionFailed(ErrorCode.FLOW_CONTROL_ERROR, "a window too large")
            if stream.waiting:
                self.send_waiting(stream)

    def forget(self, stream: Stream) -> None:
        """Give up what waits: the stream is closed."""
        self.waiting_bytes -= stream.waiting_bytes
        stream.waiting.clear()
        stream.waiting_bytes = 0
        self.stalled.pop(stream.id, None)
