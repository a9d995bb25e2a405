"""A connection: requests, one-way messages and streams in both directions over one channel.

Guarantees, beside those of `Channel`:

- Every request ends: with its answer, with the error its handler raised (of the same class), or
  with `DeadlineExceeded`, `ConnectionLost` or the caller's own cancellation. `Unreachable` and
  `LimitExceeded` mean that it took no effect.
- Requests and streams are bounded in number, streams also in bytes (`WireLimits`).
- Tasks made for handlers belong to the connection and end with it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from angarium.errors import AngariumError, LimitExceeded, QuotaExceeded
from angarium.wire.calls import Calls
from angarium.wire.channel import NOTHING, Channel
from angarium.wire.decoder import SCRATCH_BYTES
from angarium.wire.error_codec import Failure, error_of, failure_of
from angarium.wire.errors import (
    ConnectionLost,
    HandshakeRefused,
    InvalidFrame,
    Unreachable,
    UnsupportedOperation,
    WireError,
    WrongCluster,
)
from angarium.wire.flooding import DECLARED, Counts, Door
from angarium.wire.frames import Frame, FrameKind
from angarium.wire.handlers import Handlers
from angarium.wire.handshake import (
    MAGIC,
    Hello,
    Peer,
    Role,
    answer_to,
    completed,
    greeting_in,
    negotiated,
)
from angarium.wire.serving import Serving
from angarium.wire.stream_table import StreamTable
from angarium.wire.tls_refusals import ALERT, closed_after_handshake, refusal_of, speaks_tls

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from angarium.ids import Buffer
    from angarium.wire.frames import Header
    from angarium.wire.handlers import Welcome
    from angarium.wire.streams import Stream
    from angarium.wire.wire_limits import WireLimits

_log = logging.getLogger(__name__)


class _State(Enum):
    GREETING = "in its handshake"
    OPEN = "open"
    CLOSING = "closing"
    """Goodbye was said or heard: what is under way may finish, nothing new begins."""
    CLOSED = "closed"


class Connection(Channel):
    """One side of a connection. Made by `Server` and `dial`."""

    def __init__(
        self,
        *,
        hello: Hello,
        welcome: Welcome,
        limits: WireLimits,
        is_dialled: bool,
        on_gone: Callable[[Connection], None] | None = None,
        on_foreign: Callable[[Hello], None] | None = None,
        prove: Callable[[Connection], None] | None = None,
    ) -> None:
        """`on_foreign` hears who greeted as one of another cluster, and is refused.

        `prove` raises unless the other side is who it has to be, before anything of it is read.
        """
        super().__init__(limits=limits, is_dialled=is_dialled)
        self.handlers = Handlers()
        """What the other side may ask of us; nothing before the handshake is done."""
        self.messages_dropped = 0
        """One-way messages that were not sent: not open, or the peer does not keep up."""
        self._hello = completed(hello, limits)
        self._welcome = welcome
        self._on_gone = on_gone
        self._on_foreign = on_foreign
        self._prove = prove
        self._state = _State.GREETING
        self._peer: Peer | None = None
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

    @property
    def peer(self) -> Peer:
        """Who is on the other side; known from the handshake on."""
        assert self._peer is not None, "nobody has introduced themselves yet"
        return self._peer

    @property
    def is_newcomer(self) -> bool:
        """Tell whether the other side has still to greet, or to prove who it is."""
        if self._state is _State.GREETING:
            return True
        # A node that asks to be let in is served without a proof, and waits for its answer.
        return self._state is _State.OPEN and bool(self.handlers.proofs) and not self.is_serving

    @property
    def is_serving(self) -> bool:
        """Tell whether a request of the other side is under way."""
        return len(self._serving) > 0

    @property
    def is_open(self) -> bool:
        """Tell whether something new may be sent."""
        return self._state is _State.OPEN

    # --- sending ----------------------------------------------------------------------------

    def send(self, operation: int, header: Header = b"", payload: Sequence[Buffer] = ()) -> bool:
        """Send a one-way message; False if it was dropped: not open, or the peer is too slow.

        True means that it was sent, not that it arrived. Raises `LimitExceeded` for a message
        larger than the peer takes. The buffers must be left alone until they are written.
        """
        if self._state is not _State.OPEN or self._outgoing.is_full:
            self.messages_dropped += 1
            return False
        self.put(_MESSAGE, operation, 0, header, payload)
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
        call_id, answer = self._ask(operation, header, payload, deadline)
        try:
            return await answer
        except asyncio.CancelledError:
            if self._calls.forget(call_id):
                self._tell_cancelled(call_id)
            raise

    def begin_request(
        self,
        operation: int,
        header: Header = b"",
        payload: Sequence[Buffer] = (),
        *,
        timeout_s: float,
    ) -> asyncio.Future[Frame]:
        """Send a request at once, and return what will hold its answer: no task is needed.

        It does not wait for room; callers look at `is_congested` before. Cancelling the
        future only means that the answer is not looked at.
        """
        return self._ask(operation, header, payload, self.loop.time() + timeout_s)[1]

    def open_stream(
        self, operation: int, header: Header = b"", payload: Sequence[Buffer] = ()
    ) -> Stream:
        """Open a stream; raises `Unreachable` or `LimitExceeded`.

        A refusal by the peer shows at the first `receive` or at a later `send`.
        """
        self._check_open()
        self._streams.check_room()
        if self._outgoing.is_full:
            raise LimitExceeded("outgoing_bytes_max", f"{self.address} does not keep up")
        stream_id = self._take_id()
        self.put(FrameKind.STREAM_OPEN, operation, stream_id, header, payload)
        return self._streams.add(Frame(FrameKind.STREAM_OPEN, 0, operation, stream_id, b""))

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

    def abort(self) -> None:
        """Cut the connection without a word, as if this process had been killed."""
        self._abort()

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

    def admit(self, handlers: Handlers) -> None:
        """Serve more: the other side has proven who it is."""
        self.handlers = handlers
        self._widen()

    # --- for the other modules of this room -------------------------------------------------

    def start(
        self,
        work: Coroutine[Any, Any, None],
        on_finished: Callable[[asyncio.Task[None]], None],
    ) -> asyncio.Task[None]:
        """Run `work` as a task of this connection, and hear when it is done."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(on_finished)
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

    def _charge_control(self, frames: int) -> None:
        tolled = self.handlers.tolled
        toll = None if tolled is None else tolled.toll
        if toll is None:
            return
        rest_s = 0.0
        try:
            for _ in range(frames):
                rest_s = toll.take_request()
        except QuotaExceeded as error:
            rest_s = getattr(error, "retry_after", 0.0)
        self.rest(rest_s)

    # --- beginning and end ------------------------------------------------------------------

    def _begin(self) -> None:
        self._set_deadline(self._limits.handshake_timeout_s)
        if self.is_dialled:
            self.put(FrameKind.HELLO, 0, MAGIC, self._hello, ())

    def _take_greeting(self, frame: Frame) -> None:
        if self._prove is not None:
            self._prove(self)
        if frame.kind == FrameKind.GOODBYE and self.is_dialled:
            self._take_goodbye(frame)
            return
        theirs = greeting_in(frame)
        try:
            self._peer = negotiated(self._hello, theirs)
        except WrongCluster:
            if self._on_foreign is not None:
                self._on_foreign(theirs)
            raise
        self.handlers = self._welcome(self)
        self._peer_frame_bytes_max = self._peer.hello.frame_bytes_max
        self._peer_header_bytes_max = self._peer.hello.header_bytes_max
        if not self.handlers.proofs:
            self._widen()
        if not self.is_dialled:
            ours = answer_to(self._peer.hello, self._hello, self.handlers.proofs)
            self.put(FrameKind.HELLO, 0, MAGIC, ours, ())
        self._state = _State.OPEN
        self._stop_deadline()
        self._keepalive.start()
        self._opened.set_result(None)

    def _widen(self) -> None:
        """Take frames of full length; somebody unknown may send no longer ones than a greeting."""
        self._decoder.set_limits(
            frame_bytes_max=self._limits.frame_bytes_max,
            header_bytes_max=self._limits.header_bytes_max,
        )
        self._outgoing.set_bound(self._limits.outgoing_bytes_max)
        self._read_bytes = SCRATCH_BYTES
        self._flood.is_proven = True
        if not self.is_dialled:
            # Other nodes have proven what they are, and one that is late cancels a great deal.
            is_node = self.peer.hello.role in {Role.PEER, Role.PEER_BULK}
            self._counted = NOTHING if is_node else COUNTED

    def _late(self) -> None:
        if self._state is not _State.GREETING or self._is_cut:
            super()._late()
            return
        limit = self._limits.handshake_timeout_s
        self.fail(HandshakeRefused(f"no greeting within {limit:g} s; is the port the wire port?"))

    def _say_goodbye(self, failure: Failure) -> None:
        self.put(FrameKind.GOODBYE, 0, 0, failure, ())
        if self._state is _State.OPEN:
            self._state = _State.CLOSING

    def _end(self, cause: Exception | None) -> None:
        state, self._state = self._state, _State.CLOSED
        if self.error is None and state is _State.GREETING and self.is_dialled:
            self.error = self._tls_refusal(cause)
        if self.error is None and state is not _State.CLOSING:
            why = f"the connection to {self.address} ended: {cause or 'the other side closed it'}"
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

    def _tls_refusal(self, cause: Exception | None) -> WireError | None:
        """Return what ended our greeting, if TLS did: one side speaks it and the other does not,
        or our certificate was refused, which TLS 1.3 tells us when we have greeted already."""
        if isinstance(cause, ssl.SSLError):
            return refusal_of(cause, self.address)
        if self._decoder.begun().startswith(ALERT):
            return speaks_tls(self.address)
        # uvloop's listeners close without saying why. It may have been something else, so this is
        # a failure that may pass.
        return closed_after_handshake(self.address) if self.tls_context is not None else None

    # --- frames -----------------------------------------------------------------------------

    def _take_frame(self, frame: Frame) -> None:
        if self._state is _State.GREETING:
            self._take_greeting(frame)
            return
        take = _TAKERS.get(frame.kind)
        if take is None:
            raise InvalidFrame(f"a frame of kind {frame.kind} makes no sense here")
        take(self, frame)

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

    def _take_answer(self, frame: Frame) -> None:
        self._calls.answer(frame)
        if self._quiet is not None:
            self.notice_quiet()

    def _take_failure(self, frame: Frame) -> None:
        error = error_of(frame.read(Failure))
        if not self._streams.take_failure(frame.id, error):
            self._calls.fail(frame.id, error)
            self.notice_quiet()

    # --- small parts ------------------------------------------------------------------------

    @property
    def _has_requests(self) -> bool:
        return (
            self._state is not _State.CLOSED and len(self._serving) + len(self._calls.waiting) > 0
        )

    def _check_open(self) -> None:
        if self._state is not _State.OPEN:
            raise Unreachable(f"the connection to {self.address} is {self._state.value}")

    def _ask(
        self, operation: int, header: Header, payload: Sequence[Buffer], deadline: float
    ) -> tuple[int, asyncio.Future[Frame]]:
        self._check_open()
        if len(self._calls.waiting) >= self._limits.requests_in_flight_max:
            count = self._limits.requests_in_flight_max
            raise LimitExceeded("requests_in_flight_max", f"{count} requests wait for an answer")
        call_id = self._take_id()
        self.put(_REQUEST, operation, call_id, header, payload)
        return call_id, self._calls.add(call_id, deadline)

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

    def _loss(self) -> ConnectionLost:
        return ConnectionLost(str(self.error or "the connection was closed"))


COUNTED: Final = frozenset(
    int(FrameKind[name]) for name, counts in DECLARED[Door.WIRE].items() if counts is Counts.ALWAYS
)
"""Kinds of frames that are counted from every client, before and after login."""

# Plain numbers: looking an enum's member up is dear where it is done for every frame.
_MESSAGE: Final = int(FrameKind.MESSAGE)
_REQUEST: Final = int(FrameKind.REQUEST)

_TAKERS: Final[dict[int, Callable[[Connection, Frame], None]]] = {
    int(FrameKind.GOODBYE): Connection._take_goodbye,
    int(FrameKind.PING): Connection._take_ping,
    int(FrameKind.PONG): Connection._take_pong,
    _MESSAGE: Connection._take_message,
    _REQUEST: lambda connection, frame: connection._serving.take(frame),
    int(FrameKind.ANSWER): Connection._take_answer,
    int(FrameKind.FAILURE): Connection._take_failure,
    int(FrameKind.CANCEL): lambda connection, frame: connection._serving.take_cancel(frame),
    int(FrameKind.STREAM_OPEN): lambda connection, frame: connection._streams.take_open(frame),
    int(FrameKind.STREAM_DATA): lambda connection, frame: connection._streams.take_data(frame),
    int(FrameKind.STREAM_CREDIT): lambda connection, frame: connection._streams.take_credit(frame),
    int(FrameKind.STREAM_END): lambda connection, frame: connection._streams.take_end(frame),
}
