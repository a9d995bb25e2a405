"""One connection, without I/O: bytes in, calls to a listener, bytes out.

What the other side may not do ends its stream or the connection, as RFC 9113 says for each case;
its sections are named where a rule is not plain. All that came in one piece is read in one go, and
what is written meanwhile gathers in `out`: whoever owns the connection sends it as one.

A stream that was answered before its client had said everything is reset, so that the client stops;
what it had sent by then still arrives and is thrown away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.wire.flooding.bounds import UNPROVEN_FRAMES_PER_TURN
from angarium.wire.http2 import frames as h2
from angarium.wire.http2.frames import (
    ConnectionFailed,
    ErrorCode,
    Setting,
    StreamFailed,
    protocol_error,
)
from angarium.wire.http2.header_blocks import HeaderDecoder
from angarium.wire.http2.nuisances import Nuisances, too_much
from angarium.wire.http2.older_http import ANSWER, is_older_http
from angarium.wire.http2.request_heads import (
    MalformedRequest,
    RequestHead,
    check_trailers,
)
from angarium.wire.http2.sender import Sender
from angarium.wire.http2.stream_ids import StreamIds
from angarium.wire.http2.streams import Stream

if TYPE_CHECKING:
    from angarium.wire.http2.header_blocks import Field
    from angarium.wire.http2.http2_limits import Http2Limits
    from angarium.wire.http2.listener import Listener

HEADS_MAX: Final = 64
"""Heads of requests remembered for one connection. With more, remembering begins anew."""

HEAD_BYTES_MAX: Final = 4 << 10
"""Larger heads are not remembered: thousands of connections may be open."""

SETTINGS_MAX: Final = 64
"""Settings in one frame. There are seven; a frame with more than this ends the connection."""

SETTINGS_PER_WEIGHT: Final = 4
"""So many settings of one frame count as one more frame."""

IN_VAIN_MAX: Final = 2
"""A client that has put a field into the header table so often that is another one for every
request, such as a deadline, is asked to use no table. Whatever else its blocks refer to has another
number each time then, so that no two of them are alike, and each has to be decoded. Without a table
they are some hundred bytes longer, and alike but for that field."""

_NO_TABLE: Final = h2.settings_frame({Setting.HEADER_TABLE_SIZE: 0})
_SETTINGS_SENT: Final = 2
"""With the greeting's, so many frames of settings; each is acknowledged."""
_ACKNOWLEDGED: Final = h2.frame(h2.SETTINGS, h2.ACK, 0)
_PONG: Final = h2.frame_head(h2.PING, h2.ACK, 0, 8)


class Connection:
    """The server's side of a connection."""

    def __init__(self, listener: Listener, limits: Http2Limits, *, varying: bytes = b"") -> None:
        """Prepare; the header `varying` is told beside the head of a request, so that requests
        which differ in nothing else have the same head."""
        self.out: list[bytes | memoryview] = []
        """What is to be sent."""
        self.streams: dict[int, Stream] = {}
        self.sender = Sender(self.out, on_drained=listener.drained, on_finished=self._finish)
        """Sends answers, as far as the windows of the client go."""
        self.is_greeted = False
        """The client's preface and settings have come."""
        self.is_over = False
        """Nothing that comes matters any more: send `out`, and close."""
        self.is_leaving = False
        """No further request is taken."""
        self.has_been_pinged_back = True
        self.pongs = 0
        """Frames in `out` that answer pings: they may wait a moment for what else is to be sent.
        Whoever sends `out` counts anew."""
        self.nuisances = Nuisances(limits)
        self.has_more = False
        """Frames have come that were not read: `receive` took as many as it was told to."""
        self._listener = listener
        self._limits = limits
        self._rest = b""
        self._has_asked_for_no_table = False
        self._acknowledged = 0
        """How many of our settings the client has heard."""
        self._decoder = HeaderDecoder(
            block_bytes_max=limits.header_block_bytes_max, varying=varying
        )
        self._heads: dict[tuple[Field, ...], RequestHead] = {}
        self._block: _Block | None = None
        self._ids = StreamIds()
        self._last_taken: int | None = None
        """Once we are leaving: the last stream that was looked at. No later word may be another."""
        self._receive_window = limits.connection_window_bytes
        self._credit_at = limits.connection_window_bytes // 2
        self._handlers = {
            h2.DATA: self._on_data,
            h2.HEADERS: self._on_headers,
            h2.PRIORITY: self._on_priority,
            h2.RST_STREAM: self._on_reset,
            h2.SETTINGS: self._on_settings,
            h2.PUSH_PROMISE: self._on_push_promise,
            h2.PING: self._on_ping,
            h2.GOAWAY: self._on_goaway,
            h2.WINDOW_UPDATE: self._on_window_update,
            h2.CONTINUATION: self._on_continuation,
        }
        self.out.append(
            h2.settings_frame(
                {
                    Setting.MAX_CONCURRENT_STREAMS: limits.streams_max,
                    Setting.INITIAL_WINDOW_SIZE: limits.window_bytes,
                    Setting.MAX_FRAME_SIZE: limits.frame_bytes_max,
                    Setting.MAX_HEADER_LIST_SIZE: limits.header_bytes_max,
                }
            )
        )
        more = limits.connection_window_bytes - h2.WINDOW_INITIAL
        if more > 0:
            self.out.append(h2.window_update(0, more))

    @property
    def newest_stream(self) -> int:
        """The number of the newest stream that was opened; numbers only grow."""
        return self._ids.last

    # --- reading ----------------------------------------------------------------------------------

    def keep(self, data: bytes) -> None:
        """Take what came, and read it with the next `receive`."""
        self._rest += data
        self.has_more = True

    def receive(self, data: bytes = b"", *, frames_max: int = 1 << 30) -> None:
        """Take what came. What it led to was told to the listener, and is in `out`.

        After `frames_max` frames the others wait for the next call.
        """
        if self.is_over:
            return
        if self._rest:
            data = self._rest + data
        self.nuisances.credit(self.sender)
        self.has_more = False
        try:
            if self.nuisances.control:
                self.nuisances.count_control(0)  # a call may have been counted meanwhile
            read = self._read(data, frames_max)
            if not read and not self.nuisances.is_proven:
                self.nuisances.count_control()  # it costs no less than a frame
        except ConnectionFailed as failure:
            self.fail(failure.code, failure.reason)
        else:
            self._rest = data[read:] if read else data

    def _read(self, data: bytes, frames_max: int) -> int:
        """Read whole frames; return how many bytes they had."""
        position = 0 if self.is_greeted else self._read_preface(data)
        if not self.is_greeted:
            return 0
        size, frame_bytes_max = len(data), self._limits.frame_bytes_max
        read_head, handler_of, head_bytes = h2.read_head, self._handlers.get, h2.HEAD_BYTES
        nuisances = self.nuisances
        control_max = nuisances.control + UNPROVEN_FRAMES_PER_TURN
        while size - position >= head_bytes and not self.is_over:
            length, flags, stream_id = read_head(data, position)
            kind = length & 0xFF
            length >>= 8
            if length > frame_bytes_max:
                raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "a frame that is too large")
            begin = position + head_bytes
            end = begin + length
            if end > size:
                break
            if not frames_max:
                self.has_more = True
                break
            frames_max -= 1
            position = end
            if self._block is not None and kind != h2.CONTINUATION:
                raise protocol_error("a header block is sent in one go")
            if not nuisances.is_proven:
                if kind <= h2.HEADERS:
                    nuisances.count_control()  # the other kinds are counted by their handlers
                if nuisances.control >= control_max:
                    frames_max = 0  # by weight it was enough for one turn
            handler = handler_of(kind)
            try:
                if handler is not None:
                    handler(flags, stream_id & h2.STREAM_ID_MAX, data[begin:end])
                else:
                    nuisances.count_control()
            except StreamFailed as failure:
                nuisances.count_mistake(failure.code)
                self.reset(failure.stream_id, failure.code)
        return position

    def _read_preface(self, data: bytes) -> int:
        """Return where the first frame begins. Nothing is read before that is known to be one."""
        preface = h2.PREFACE
        if data[: len(preface)] != preface[: len(data)]:
            if self.out and is_older_http(data):  # our greeting has not gone out: it need not
                self.out[:] = [ANSWER]
                self.is_over = True
                return 0
            raise protocol_error("this port speaks HTTP/2 (gRPC), and what came is something else")
        if len(data) < len(preface) + h2.HEAD_BYTES:
            return 0
        if data[len(preface) + 3] != h2.SETTINGS or data[len(preface) + 4] & h2.ACK:
            raise protocol_error("a client's first frame has its settings")
        self.is_greeted = True
        return len(preface)

    # --- requests ---------------------------------------------------------------------------------

    def _on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        if flags & h2.PADDED:
            payload = h2.unpadded(payload)
        is_own_parent = False
        if flags & h2.HAS_PRIORITY:
            if len(payload) < 5:
                raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "priority has five bytes")
            is_own_parent = h2.read_long(payload)[0] & h2.STREAM_ID_MAX == stream_id
            payload = payload[5:]
        if not stream_id & 1:
            raise protocol_error("clients open streams with odd numbers")
        if stream_id <= self._ids.last and stream_id not in self.streams:
            self._on_late_headers(stream_id)
        ends = flags & h2.END_STREAM != 0
        if not flags & h2.END_HEADERS:
            self._block = _Block(stream_id, payload, ends=ends, is_own_parent=is_own_parent)
        elif stream_id <= self._ids.last:
            self._on_trailer_block(stream_id, payload, ends=ends)
        else:
            self._on_request_block(stream_id, payload, ends=ends, is_own_parent=is_own_parent)

    def _on_late_headers(self, stream_id: int) -> None:
        """Tell headers for a stream that is over from those for one that never was.

        Trailers that were on their way when we closed the stream are neither, nor are those of a
        request that came when we were leaving.
        """
        if self.is_leaving or self._ids.is_abandoned(stream_id):
            return
        if self._ids.is_skipped(stream_id):
            raise protocol_error("streams are opened in the order of their numbers")
        raise ConnectionFailed(ErrorCode.STREAM_CLOSED, "headers for a stream that is over")

    def _on_continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        block = self._block
        if block is None or block.stream_id != stream_id:
            raise protocol_error("nothing to continue")
        self.nuisances.count_control()
        block.count += 1
        block.data += payload
        limits = self._limits
        # Before login only what the listener would take.
        is_proven = self.nuisances.is_proven
        bytes_max = limits.header_block_bytes_max if is_proven else limits.header_bytes_max
        if block.count > limits.continuations_max or len(block.data) > bytes_max:
            raise too_much("a header block without an end")
        if flags & h2.END_HEADERS:
            self._block = None
            if stream_id <= self._ids.last:
                self._on_trailer_block(stream_id, block.data, ends=block.ends)
            else:
                self._on_request_block(
                    stream_id, block.data, ends=block.ends, is_own_parent=block.is_own_parent
                )

    def _on_request_block(
        self, stream_id: int, block: bytes, *, ends: bool, is_own_parent: bool
    ) -> None:
        fields, varying = self._decoder.parted(block)
        if self._decoder.weight:
            self._weigh_head()
        if self._decoder.kept_in_vain >= IN_VAIN_MAX and not self._has_asked_for_no_table:
            self._has_asked_for_no_table = True
            self.out.append(_NO_TABLE)
        self._ids.open(stream_id)
        if self.is_leaving:
            # Beyond what the GOAWAY promised: the client knows that nobody looked at it (6.8).
            return
        if is_own_parent:
            raise StreamFailed(stream_id, ErrorCode.PROTOCOL_ERROR)
        head = self._heads.get(fields) or self._head_of(stream_id, fields)
        if len(self.streams) >= self._limits.streams_max:
            raise StreamFailed(stream_id, ErrorCode.REFUSED_STREAM)
        stream = self.streams[stream_id] = Stream(
            stream_id,
            send_window=self.sender.stream_window,
            receive_window=self._limits.window_bytes,
            content_length=head.content_length,
            varying=varying,
        )
        stream.is_ended = ends
        if self.nuisances.is_proven:
            self.nuisances.work += 1
        self._listener.begun(stream, head)
        if ends and not stream.is_closed:
            self._end(stream)

    def _on_trailer_block(self, stream_id: int, block: bytes, *, ends: bool) -> None:
        fields = self._decoder.decoded(block)
        if self._decoder.weight:
            self._weigh_head()
        stream = self.streams.get(stream_id)
        if stream is not None:  # else it is for one that we gave up
            self._on_trailers(stream, fields, ends=ends)

    def _weigh_head(self) -> None:
        weight, self._decoder.weight = self._decoder.weight, 0
        self.nuisances.count_head(weight)

    def _head_of(self, stream_id: int, fields: tuple[Field, ...]) -> RequestHead:
        try:
            head = RequestHead(fields)
        except MalformedRequest:
            raise StreamFailed(stream_id, ErrorCode.PROTOCOL_ERROR) from None
        if head.bytes <= HEAD_BYTES_MAX:
            if len(self._heads) >= HEADS_MAX:
                self._heads.clear()
            self._heads[fields] = head
        return head

    def _on_trailers(self, stream: Stream, fields: tuple[Field, ...], *, ends: bool) -> None:
        if stream.is_ended:
            raise StreamFailed(stream.id, ErrorCode.STREAM_CLOSED)
        if not ends:
            raise StreamFailed(stream.id, ErrorCode.PROTOCOL_ERROR)
        try:
            check_trailers(fields)
        except MalformedRequest:
            raise StreamFailed(stream.id, ErrorCode.PROTOCOL_ERROR) from None
        self._end(stream)

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        self._receive_window -= size
        if self._receive_window < 0:
            raise ConnectionFailed(ErrorCode.FLOW_CONTROL_ERROR, "more than the window allows")
        if self._receive_window < self._credit_at:
            # At once and whoever reads: one reader that is slow must not hold the others up. What
            # a stream sends ahead of its reader is bounded by the stream's own window.
            credit = self._limits.connection_window_bytes - self._receive_window
            self.out.append(h2.window_update(0, credit))
            self._receive_window += credit
        stream = self.streams.get(stream_id)
        if stream is None:
            self._on_late_data(stream_id)
            return
        if stream.is_ended:
            raise StreamFailed(stream_id, ErrorCode.STREAM_CLOSED)
        if flags & h2.PADDED:
            payload = h2.unpadded(payload)
            stream.to_credit += size - len(payload)
        stream.receive_window -= size
        if stream.receive_window < 0:
            raise StreamFailed(stream_id, ErrorCode.FLOW_CONTROL_ERROR)
        if not payload:
            if flags & h2.END_STREAM:
                self._end(stream)
            else:
                self.nuisances.count_control()
            return
        self.nuisances.count_data(len(payload), ends=flags & h2.END_STREAM != 0)
        stream.body_bytes += len(payload)
        stream.pieces += 1
        if flags & h2.END_STREAM:
            self._check_whole(stream)
            self._listener.received(stream, payload, True)
        else:
            self._listener.received(stream, payload, False)

    def _on_late_data(self, stream_id: int) -> None:
        self.nuisances.count_control()
        if stream_id == 0 or stream_id > self._ids.last:
            raise protocol_error("data for a stream that nobody has opened")
        if not self.is_leaving and not self._ids.is_abandoned(stream_id):
            raise ConnectionFailed(ErrorCode.STREAM_CLOSED, "data for a stream that is over")

    def _end(self, stream: Stream) -> None:
        self._check_whole(stream)
        self._listener.ended(stream)

    def _check_whole(self, stream: Stream) -> None:
        """Note that a request has said everything; it has to be what it said that it would be."""
        if stream.content_length >= 0 and stream.content_length != stream.body_bytes:
            raise StreamFailed(stream.id, ErrorCode.PROTOCOL_ERROR)
        stream.is_ended = True

    def _on_reset(self, _: int, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "a reset has four bytes")
        stream = self.streams.get(stream_id)
        if stream is None:
            if stream_id == 0 or stream_id > self._ids.last:
                raise protocol_error("a reset of a stream that nobody has opened")
            self.nuisances.count_control()
            return
        self.nuisances.count_reset()
        self._forget(stream)
        self._listener.given_up(stream)

    # --- the connection's own matters -------------------------------------------------------------

    def _on_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise protocol_error("settings are those of a connection")
        if flags & h2.ACK:
            if payload:
                raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "an acknowledgement is empty")
            self.nuisances.count_control()
            self._acknowledged += 1
            if self._has_asked_for_no_table and self._acknowledged == _SETTINGS_SENT:
                self._decoder.table_bytes_max = 0
            return
        if len(payload) % 6:
            raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "a setting has six bytes")
        count = len(payload) // 6
        if count > SETTINGS_MAX:
            raise too_much("too many settings in one frame")
        # A frame with other windows costs as much as there are streams.
        self.nuisances.count_control(1 + count // SETTINGS_PER_WEIGHT + len(self.streams) // 16)
        window = self.sender.stream_window
        for setting, value in h2.read_settings(payload):
            self.sender.set(setting, value)
        self.out.append(_ACKNOWLEDGED)
        if self.sender.stream_window != window:
            self.sender.widen(self.streams.values(), self.sender.stream_window - window)

    def _on_ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise protocol_error("pings are for a connection")
        if len(payload) != 8:
            raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "a ping has eight bytes")
        self.nuisances.count_control()
        if flags & h2.ACK:
            self.has_been_pinged_back = True
        else:
            self.out.append(_PONG + payload)
            self.pongs += 1

    def _on_goaway(self, _: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise protocol_error("leaving is for a connection")
        if len(payload) < 8:
            raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "who leaves says two numbers")
        # It takes no streams of ours, and we open none. Its own are answered, until it goes.
        self.nuisances.count_control()

    def _on_priority(self, _: int, stream_id: int, payload: bytes) -> None:
        """Pass over what nobody has to heed any more (section 5.3)."""
        if not stream_id:
            raise protocol_error("priority is for a stream")
        if len(payload) != 5:
            raise StreamFailed(stream_id, ErrorCode.FRAME_SIZE_ERROR)
        if h2.read_long(payload)[0] & h2.STREAM_ID_MAX == stream_id:
            raise StreamFailed(stream_id, ErrorCode.PROTOCOL_ERROR)
        self.nuisances.count_control()

    def _on_push_promise(self, _: int, __: int, ___: bytes) -> None:
        raise protocol_error("clients promise nothing")

    def _on_window_update(self, _: int, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "a window update has four bytes")
        self.nuisances.count_control()
        increment = h2.read_long(payload)[0] & h2.WINDOW_MAX
        if not increment:
            if stream_id:
                raise StreamFailed(stream_id, ErrorCode.PROTOCOL_ERROR)
            raise protocol_error("a window update of nothing")
        if not stream_id:
            sender = self.sender
            sender.window += increment
            if sender.window > h2.WINDOW_MAX:
                raise ConnectionFailed(ErrorCode.FLOW_CONTROL_ERROR, "a window too large")
            if sender.stalled:
                sender.send_stalled()
            return
        stream = self.streams.get(stream_id)
        if stream is None:
            if stream_id > self._ids.last:
                raise protocol_error("a window update of a stream that nobody has opened")
            return  # it was on its way when the stream ended
        stream.send_window += increment
        if stream.send_window > h2.WINDOW_MAX:
            raise StreamFailed(stream_id, ErrorCode.FLOW_CONTROL_ERROR)
        if stream.waiting:
            self.sender.send_waiting(stream)

    # --- writing ----------------------------------------------------------------------------------

    def consumed(self, stream: Stream, size: int) -> None:
        """Let a client send as much again as was read, once it is worth a frame."""
        stream.to_credit += size
        if stream.to_credit >= self._limits.window_bytes // 2 and not stream.is_ended:
            self.out.append(h2.window_update(stream.id, stream.to_credit))
            stream.receive_window += stream.to_credit
            stream.to_credit = 0

    def reset(self, stream_id: int, code: ErrorCode) -> None:
        """End a stream at once."""
        self.out.append(h2.reset_frame(stream_id, code))
        stream = self.streams.get(stream_id)
        if stream is not None:
            self._forget(stream)
            self._listener.given_up(stream)
        self._ids.abandon(stream_id)

    def ping(self) -> None:
        """Ask whether anybody is there."""
        self.has_been_pinged_back = False
        self.out.append(h2.frame(h2.PING, 0, 0, bytes(8)))

    def leave(self) -> None:
        """Take no further request; those under way are answered."""
        self.is_leaving = True
        self._last_taken = self._ids.last
        self.out.append(h2.goaway_frame(self._last_taken, ErrorCode.NO_ERROR))

    def fail(self, code: ErrorCode, reason: str) -> None:
        """End the connection, and say why."""
        if not self.is_over:
            last = self._ids.last if self._last_taken is None else self._last_taken
            self.out.append(h2.goaway_frame(last, code, reason))
            self.is_over = True

    def lost(self) -> None:
        """Hear that there is nobody any more."""
        self.is_over = True
        for stream in list(self.streams.values()):
            self._forget(stream)
            self._listener.given_up(stream)

    def _finish(self, stream: Stream) -> None:
        """Close a stream whose answer is whole."""
        stream.is_finished = True
        if not stream.is_ended:
            self.out.append(h2.reset_frame(stream.id, ErrorCode.NO_ERROR))
            self._ids.abandon(stream.id)
        self._forget(stream)

    def _forget(self, stream: Stream) -> None:
        stream.is_closed = True
        self.streams.pop(stream.id, None)
        if stream.waiting:
            self.sender.forget(stream)


class _Block:
    """A header block that goes on in the next frame."""

    __slots__ = ("count", "data", "ends", "is_own_parent", "stream_id")

    def __init__(self, stream_id: int, data: bytes, *, ends: bool, is_own_parent: bool) -> None:
        self.stream_id = stream_id
        self.data = data
        self.ends = ends
        self.is_own_parent = is_own_parent
        """Its stream depends on itself (RFC 7540, section 5.3.1)."""
        self.count = 0
