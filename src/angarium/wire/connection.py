"""A connection: requests, one-way messages and streams in both directions over one socket.

Guarantees:

- Frames leave in the order in which they were put, those of one turn of the event loop together.
- Every request ends: with its answer, with the error its handler raised (of the same class), or
  with `DeadlineExceeded`, `ConnectionLost` or the caller's own cancellation. `Unreachable` and
  `LimitExceeded` mean that it took no effect.
- Nothing grows without a bound (`WireLimits`), whatever the peer does.
- A peer that is silent, or does not take its bytes, is given up.
- Tasks made for handlers belong to the connection and end with it.

Only the accepting side ever stops reading because its own answers are not taken. The dialling side
always reads, so the two can never wait for each other.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

from angarium.errors import AngariumError, LimitExceeded
from angarium.wire.calls import Calls
from angarium.wire.decoder import SCRATCH_BYTES, FrameDecoder
from angarium.wire.error_codec import Failure, error_of, failure_of
from angarium.wire.errors import (
    ConnectionLost,
    HandshakeRefused,
    InvalidFrame,
    Unreachable,
    UnsupportedOperation,
    WireError,
)
from angarium.wire.frames import Frame, FrameKind, frame_head
from angarium.wire.handlers import Handlers
from angarium.wire.handshake import MAGIC, Hello, Peer, completed, greeting_in, negotiated
from angarium.wire.keepalive import Keepalive
from angarium.wire.outgoing import Outgoing
from angarium.wire.serving import Serving
from angarium.wire.stream_table import StreamTable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from angarium.ids import Buffer
    from angarium.wire.frames import Header
    from angarium.wire.handlers import Welcome
    from angarium.wire.limits import WireLimits
    from angarium.wire.streams import Stream

_log = logging.getLogger(__name__)


class _Scratch(threading.local):
    """Where bytes land first, one per thread and so per event loop; see the decoder."""

    def __init__(self) -> None:
        self.buffer = bytearray(SCRATCH_BYTES)


_scratch: Final = _Scratch()


class _State(Enum):
    GREETING = "in its handshake"
    OPEN = "open"
    CLOSING = "closing"
    """Goodbye was said or heard: what is under way may finish, nothing new begins."""
    CLOSED = "closed"


class Connection(asyncio.BufferedProtocol):
    """One side of a connection. Made by `Server` and `dial`."""

    def __init__(
        self,
        *,
        hello: Hello,
        welcome: Welcome,
        limits: WireLimits,
        is_dialled: bool,
        on_gone: Callable[[Connection], None] | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_dialled = is_dialled
        self.handlers = Handlers()
        """What the other side may ask of us; nothing before the handshake is done."""
        self.error: AngariumError | None = None
        """Why it ended, or is about to; None while it works and after an orderly goodbye."""
        self.messages_dropped = 0
        """One-way messages that were not sent: not open, or the peer does not keep up."""
        self._hello = completed(hello, limits)
        self._welcome = welcome
        self._limits = limits
        self._on_gone = on_gone
        self._state = _State.GREETING
        self._transport: asyncio.Transport | None = None
        self._peer: Peer | None = None
        self._peer_frame_bytes_max = limits.handshake_bytes_max
        self._peer_header_bytes_max = limits.handshake_bytes_max
        self._decoder = FrameDecoder(
            frame_bytes_max=limits.handshake_bytes_max,
            header_bytes_max=limits.handshake_bytes_max,
            scratch=_scratch.buffer,
        )
        self._outgoing = Outgoing(
            self.loop, bytes_max=limits.outgoing_bytes_max, on_room=self._read_on
        )
        self._keepalive = Keepalive(
            self.loop, self._outgoing, limits=limits, ping=self._ping, give_up=self._give_up
        )
        # Ids of the two sides never meet: the dialling side takes the odd ones.
        self._next_id = 1 if is_dialled else 2
        self._calls = Calls(self.loop, on_late=self._tell_cancelled)
        self._serving = Serving(self, requests_max=limits.requests_in_flight_max)
        self._streams = StreamTable(
            self, streams_max=limits.streams_max, window=limits.stream_window_bytes
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._opened: asyncio.Future[None] = self.loop.create_future()
        self._closed: asyncio.Future[None] = self.loop.create_future()
        self._quiet: asyncio.Future[None] | None = None
        # The end of the handshake's time, or of the time for the last bytes.
        self._deadline: asyncio.TimerHandle | None = None
        self._is_reading = True

    # --- what is known about it -------------------------------------------------------------

    @property
    def peer(self) -> Peer:
        """Who is on the other side; known from the handshake on."""
        assert self._peer is not None, "nobody has introduced themselves yet"
        return self._peer

    @property
    def is_open(self) -> bool:
        """Tell whether something new may be sent."""
        return self._state is _State.OPEN

    @property
    def is_congested(self) -> bool:
        """Tell whether one-way messages would be dropped now, because the peer does not keep up."""
        return self._outgoing.is_full

    @property
    def address(self) -> str:
        """The other side's address, for logs."""
        name = self._transport.get_extra_info("peername") if self._transport else None
        return f"{name[0]}:{name[1]}" if name else "nowhere"

    # --- sending ----------------------------------------------------------------------------

    def send(self, operation: int, header: Header = b"", payload: Sequence[Buffer] = ()) -> bool:
        """Send a one-way message; False if it was dropped: not open, or the peer is too slow.

        True means that it was sent, not that it arrived. Raises `LimitExceeded` for a message
        larger than the peer takes. The buffers must be left alone until they are written.
        """
        if self._state is not _State.OPEN or self._outgoing.is_full:
            self.messages_dropped += 1
            return False
        self.put(FrameKind.MESSAGE, operation, 0, header, payload)
        return True

    async def request(
        self,
        operation: int,
        header: Header = b"",
        payload: Sequence[Buffer] = (),
        *,
        timeout_s: float,
    ) -> Frame:
        """Send a request and return its answer; raises the error that was answered instead.

        If the caller is cancelled or the time is up, the peer is told, so that it may stop.
        """
        deadline = self.loop.time() + timeout_s
        if self._outgoing.is_full:
            await self._room_before(deadline)
        self._check_open()
        if len(self._calls) >= self._limits.requests_in_flight_max:
            count = self._limits.requests_in_flight_max
            raise LimitExceeded("requests_in_flight_max", f"{count} requests wait for an answer")
        call_id = self._take_id()
        self.put(FrameKind.REQUEST, operation, call_id, header, payload)
        answer = self._calls.add(call_id, deadline)
        try:
            return await answer
        except asyncio.CancelledError:
            if self._calls.forget(call_id):
                self._tell_cancelled(call_id)
            raise

    def open_stream(
        self, operation: int, header: Header = b"", payload: Sequence[Buffer] = ()
    ) -> Stream:
        """Open a stream; raises `Unreachable` or `LimitExceeded`.

        A refusal by the peer shows at the first `receive` or at a later `send`.
        """
        self._check_open()
        self._streams.check_room()
        stream_id = self._take_id()
        self.put(FrameKind.STREAM_OPEN, operation, stream_id, header, payload)
        return self._streams.add(Frame(FrameKind.STREAM_OPEN, 0, operation, stream_id, b""))

    async def room(self) -> None:
        """Wait until the peer has taken enough for more to be sent, or is gone."""
        await self._outgoing.room()

    # --- its life ---------------------------------------------------------------------------

    async def opened(self) -> None:
        """Wait until the handshake is done; raises the refusal, or why the connection ended."""
        await asyncio.shield(self._opened)

    async def close(self, reason: str = "closed", *, timeout_s: float = 5.0) -> None:
        """Say goodbye, let requests under way finish, end the streams, and close.

        Whatever is not done within `timeout_s` is cut off.
        """
        try:
            async with asyncio.timeout(timeout_s):
                self._say_goodbye(Failure("", reason))
                while self._has_requests:
                    self._quiet = self.loop.create_future()
                    await self._quiet
                self._streams.cancel_all(ConnectionLost(reason))
                self._close_transport()
                await self.wait_closed()
        except TimeoutError:
            self._abort()
            await self.wait_closed()

    def fail(self, error: AngariumError) -> None:
        """Tell the peer why, and close without waiting for anything under way."""
        if self._state is _State.CLOSED or self.error is not None:
            return
        self.error = error
        self._say_goodbye(failure_of(error))
        self._cut()

    async def wait_closed(self) -> None:
        """Wait until the socket is closed and every task of the connection has ended."""
        await asyncio.shield(self._closed)
        if self._tasks:
            await asyncio.wait(self._tasks)

    # --- called by the transport ------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin: the dialling side greets, the accepting one waits for it."""
        self._transport = cast(asyncio.Transport, transport)
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in {socket.AF_INET, socket.AF_INET6}:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._transport.set_write_buffer_limits(high=self._limits.write_buffer_bytes)
        self._outgoing.attach(self._transport)
        self._deadline = self.loop.call_later(self._limits.handshake_timeout_s, self._greet_in_vain)
        if self.is_dialled:
            self.put(FrameKind.HELLO, 0, MAGIC, self._hello, ())

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes belong."""
        del sizehint
        return self._decoder.writable()

    def buffer_updated(self, nbytes: int) -> None:
        """Handle the frames that these bytes complete."""
        self._keepalive.heard()
        # What handlers answer at once leaves together, when all frames of this read are handled.
        self._outgoing.hold()
        try:
            for frame in self._decoder.advance(nbytes):
                if self.error is not None:
                    return
                self._take_frame(frame)
            if self._decoder.error is not None:
                self.fail(self._decoder.error)
        except AngariumError as error:
            self.fail(error)
        except Exception:
            _log.exception("a frame from %s met a mistake of ours", self.address)
            self.fail(WireError("the node met an unexpected error; its log has it"))
        finally:
            self._outgoing.release()
        if self._outgoing.is_full:
            self._stop_reading()

    def eof_received(self) -> None:
        """Let the transport close itself: half a connection is of no use."""

    def pause_writing(self) -> None:
        """Hear that the transport has enough."""
        self._outgoing.pause()

    def resume_writing(self) -> None:
        """Hear that the transport has room again."""
        self._outgoing.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        """End everything that was under way."""
        state, self._state = self._state, _State.CLOSED
        self._keepalive.stop()
        self._stop_deadline()
        self._outgoing.detach()
        if self.error is None and state is not _State.CLOSING:
            why = f"the connection to {self.address} was lost: {exc or 'the other side closed it'}"
            self.error = Unreachable(why) if state is _State.GREETING else ConnectionLost(why)
        self._calls.fail_all(self._loss)
        self._streams.fail_all(self._loss)
        self._serving.end_all()
        for task in self._tasks:
            task.cancel()
        self.notice_quiet()
        if not self._opened.done():
            self._opened.set_exception(self.error or Unreachable("the other side left"))
            self._opened.exception()  # whoever waits still gets it; nobody has to
        if self.handlers.on_closed is not None:
            self.handlers.on_closed(self, self.error)
        if self._on_gone is not None:
            self._on_gone(self)
        self._closed.set_result(None)

    # --- for the other modules of this room -------------------------------------------------

    def put(
        self,
        kind: int,
        operation: int,
        frame_id: int,
        header: Header,
        payload: Sequence[Buffer],
        *,
        flags: int = 0,
    ) -> int:
        """Queue a frame and return its size; a closed connection drops it.

        Raises `LimitExceeded` for one larger than the peer takes; nothing has happened then.
        """
        head, size = frame_head(
            kind,
            operation,
            frame_id,
            header,
            payload,
            flags=flags,
            frame_bytes_max=self._peer_frame_bytes_max,
            header_bytes_max=self._peer_header_bytes_max,
        )
        if self._state is not _State.CLOSED:
            self._outgoing.put(head, payload, size)
        return size

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` as a task of this connection."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def has_stream(self, stream: Stream) -> bool:
        """Tell whether `stream` is open on this connection."""
        return self._streams.has(stream)

    def forget_stream(self, stream: Stream) -> None:
        """Let go of a stream that has ended."""
        self._streams.forget(stream)

    def notice_quiet(self) -> None:
        """Let `close` go on when the last request is done."""
        if self._quiet is not None and not self._quiet.done() and not self._has_requests:
            self._quiet.set_result(None)

    # --- frames -----------------------------------------------------------------------------

    def _take_frame(self, frame: Frame) -> None:
        if self._state is _State.GREETING:
            self._take_greeting(frame)
            return
        take = _TAKERS.get(frame.kind)
        if take is None:
            raise InvalidFrame(f"a frame of kind {frame.kind} makes no sense here")
        take(self, frame)

    def _take_greeting(self, frame: Frame) -> None:
        if frame.kind == FrameKind.GOODBYE and self.is_dialled:
            self._take_goodbye(frame)
            return
        self._peer = negotiated(self._hello, greeting_in(frame))
        self.handlers = self._welcome(self)
        self._peer_frame_bytes_max = self._peer.hello.frame_bytes_max
        self._peer_header_bytes_max = self._peer.hello.header_bytes_max
        self._decoder.set_limits(
            frame_bytes_max=self._limits.frame_bytes_max,
            header_bytes_max=self._limits.header_bytes_max,
        )
        if not self.is_dialled:
            self.put(FrameKind.HELLO, 0, MAGIC, self._hello, ())
        self._state = _State.OPEN
        self._stop_deadline()
        self._keepalive.start()
        self._opened.set_result(None)

    def _take_goodbye(self, frame: Frame) -> None:
        failure = frame.read(Failure)
        if failure.code:
            self.error = error_of(failure)
            self._cut()
        else:
            self._state = _State.CLOSING

    def _take_ping(self, frame: Frame) -> None:
        # A peer that pings without end and never reads must not fill our memory with answers.
        if not self._outgoing.is_full:
            self.put(FrameKind.PONG, 0, frame.id, b"", ())

    def _take_pong(self, frame: Frame) -> None:
        """That something came at all is what was asked for."""

    def _take_message(self, frame: Frame) -> None:
        handler = self.handlers.messages.get(frame.operation)
        if handler is None:
            raise UnsupportedOperation(f"messages of kind {frame.operation} are not taken here")
        try:
            handler(self, frame)
        except WireError:
            raise
        except Exception:
            _log.exception("a message from %s was dropped", self.address)

    def _take_request(self, frame: Frame) -> None:
        self._serving.take(frame)

    def _take_cancel(self, frame: Frame) -> None:
        self._serving.take_cancel(frame)

    def _take_answer(self, frame: Frame) -> None:
        self._calls.answer(frame)
        if self._quiet is not None:
            self.notice_quiet()

    def _take_failure(self, frame: Frame) -> None:
        error = error_of(frame.read(Failure))
        if not self._streams.take_failure(frame.id, error):
            self._calls.fail(frame.id, error)
            self.notice_quiet()

    def _take_stream_open(self, frame: Frame) -> None:
        self._streams.take_open(frame)

    def _take_stream_data(self, frame: Frame) -> None:
        self._streams.take_data(frame)

    def _take_stream_credit(self, frame: Frame) -> None:
        self._streams.take_credit(frame)

    def _take_stream_end(self, frame: Frame) -> None:
        self._streams.take_end(frame)

    # --- small parts ------------------------------------------------------------------------

    @property
    def _has_requests(self) -> bool:
        return self._state is not _State.CLOSED and len(self._serving) + len(self._calls) > 0

    def _check_open(self) -> None:
        if self._state is not _State.OPEN:
            raise Unreachable(f"the connection to {self.address} is {self._state.value}")

    def _take_id(self) -> int:
        taken = self._next_id
        self._next_id += 2
        return taken

    def _tell_cancelled(self, call_id: int) -> None:
        self.put(FrameKind.CANCEL, 0, call_id, b"", ())
        self.notice_quiet()

    async def _room_before(self, deadline: float) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await self._outgoing.room()
        except TimeoutError:
            raise Unreachable(f"{self.address} did not take our bytes in time") from None

    def _ping(self) -> None:
        if not self._outgoing.is_full:
            self.put(FrameKind.PING, 0, 0, b"", ())

    def _give_up(self, why: str) -> None:
        if self.error is None:
            self.error = ConnectionLost(f"{self.address} {why}")
        self._abort()

    def _greet_in_vain(self) -> None:
        limit = self._limits.handshake_timeout_s
        self.fail(HandshakeRefused(f"no greeting within {limit:g} s; is the port the wire port?"))

    def _stop_reading(self) -> None:
        assert self._transport is not None
        if self._is_reading and not self.is_dialled and not self._transport.is_closing():
            self._transport.pause_reading()
            self._is_reading = False
            self._keepalive.listen(False)

    def _read_on(self) -> None:
        if not self._is_reading and self._transport is not None:
            self._is_reading = True
            self._keepalive.listen(True)
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def _say_goodbye(self, failure: Failure) -> None:
        self.put(FrameKind.GOODBYE, 0, 0, failure, ())
        if self._state is _State.OPEN:
            self._state = _State.CLOSING

    def _close_transport(self) -> None:
        if self._transport is not None:
            self._outgoing.hand_over()
            self._transport.close()

    def _cut(self) -> None:
        """Close once the last bytes are out, or have had their time."""
        self._close_transport()
        self._stop_deadline()
        self._deadline = self.loop.call_later(self._limits.farewell_timeout_s, self._abort)

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _loss(self) -> ConnectionLost:
        return ConnectionLost(str(self.error or "the connection was closed"))


_TAKERS: Final[dict[int, Callable[[Connection, Frame], None]]] = {
    int(FrameKind.GOODBYE): Connection._take_goodbye,
    int(FrameKind.PING): Connection._take_ping,
    int(FrameKind.PONG): Connection._take_pong,
    int(FrameKind.MESSAGE): Connection._take_message,
    int(FrameKind.REQUEST): Connection._take_request,
    int(FrameKind.ANSWER): Connection._take_answer,
    int(FrameKind.FAILURE): Connection._take_failure,
    int(FrameKind.CANCEL): Connection._take_cancel,
    int(FrameKind.STREAM_OPEN): Connection._take_stream_open,
    int(FrameKind.STREAM_DATA): Connection._take_stream_data,
    int(FrameKind.STREAM_CREDIT): Connection._take_stream_credit,
    int(FrameKind.STREAM_END): Connection._take_stream_end,
}
