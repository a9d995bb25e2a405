"""One connection: its requests go to a handler, the answers back in their order.

A connection does one thing at a time: it waits for a request, reads it, has it answered, or has
been given over to a stream or a WebSocket for good. Requests that a client sends ahead wait, and
while some wait no more is read. Each state has a moment at which it has taken too long; the server
looks at those twice a second, so that no request costs a timer of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from angarium.errors import AngariumError, LimitExceeded, TooLarge
from angarium.wire.errors import DeadlineExceeded
from angarium.wire.flooding import FloodMeter, gate_of, take_turn
from angarium.wire.flooding.meter import TOO_MANY
from angarium.wire.http.messages import Response, head_bytes, response_bytes
from angarium.wire.http.request_reader import RequestReader, RequestRefused
from angarium.wire.http.stream import Stream
from angarium.wire.peer_certificates import certificate_shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.security.tls import Certificate
    from angarium.wire.http.messages import Answer, Request
    from angarium.wire.http.server import HttpServer
    from angarium.wire.http.websocket import WebSocket

DRAIN_SECONDS: Final = 2.0
"""After a refusal that ends a connection, how long what the client still sends is thrown away.
Closing at once would reset the connection, and the client might never see why."""

GOING_AWAY: Final = 1001
"""The close code that tells a WebSocket's client to come back elsewhere."""

TRY_AGAIN_LATER: Final = 1013
"""The close code that tells a WebSocket's client that there is no room at the moment."""

PIECE_BYTES: Final = 4 << 10
"""What is parsed at once: thousands of small requests may come in one read."""

BODY_PIECE_BYTES: Final = 16 << 10
"""The same while a body is read."""

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

UNAUTHORIZED: Final = 401

_log = logging.getLogger(__name__)


class State(Enum):
    """What a connection is doing."""

    IDLE = "waiting for a request"
    HEAD = "reading a head"
    BODY = "reading a body"
    BUSY = "having a request answered"
    GIVEN = "given over to a stream or a WebSocket"
    CLOSING = "throwing away what still comes"


_READING: Final = (State.IDLE, State.HEAD, State.BODY)
"""While a connection has nothing to answer."""


class Connection(asyncio.Protocol):
    """One client, from its first byte to its last."""

    def __init__(self, server: HttpServer) -> None:
        self.deadline = 0.0
        """On the loop's clock: when what goes on has taken too long."""
        self.state = State.IDLE
        self.has_asked = False
        """Whether a request has come that was whole."""
        self.is_writable = asyncio.Event()
        self.is_writable.set()
        self._server = server
        self.limits = server.limits
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self.peer_certificate: Certificate | None = None
        """What the client has shown, verified; None without one, or without TLS."""
        self.is_encrypted = False
        """Whether the client speaks TLS to this very listener."""
        self._reader = RequestReader(self, server.limits, server.heads)
        self._ahead: deque[Request] = deque()
        self._request: Request | None = None
        self._task: asyncio.Task[None] | None = None
        self._proving: asyncio.Task[None] | None = None
        self._is_refuted = False
        """Whether the credentials of the present body were checked, and are wrong."""
        """Checks the credentials of a body that is not complete."""
        self._websocket: WebSocket | None = None
        self._is_last = False
        self._thrown_away = 0
        self._unproven_bytes = 0
        self.flood = FloodMeter(
            frames_max=server.limits.control_frames_max,
            is_proven=server.is_known is None,
            unproven=gate_of(self._loop).unproven,
        )
        """Counts frames and requests that bring nothing further."""
        self.flood.look(self._loop.time())
        self._pending = b""
        """What has come and was not parsed: requests before it have still to be answered."""
        self._is_waiting = False
        """For its next turn, or for the end of a rest."""
        self._turn = 0
        """Number of the turn that is waited for; one with another number is out of date."""
        self._is_reading = True
        self.is_stuck = False
        """The client does not read: nothing is read from it either."""

    # --- what the loop calls --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self.peer_certificate = certificate_shown(transport)
        self.is_encrypted = transport.get_extra_info("sslcontext") is not None
        self._transport.set_write_buffer_limits(high=self.limits.write_bytes_high)
        self.deadline = self._loop.time() + self.limits.idle_seconds_max
        refusal = self._server.admit(self)
        if refusal is not None:
            self._refuse(refusal, status=503)

    @property
    def host(self) -> str:
        """The host that this talks to."""
        where = self._transport.get_extra_info("peername") if self._transport else None
        return str(where[0]) if where else ""

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        if self.flood.control:
            self.flood.look(self._loop.time(), size=len(data))
            if self.flood.is_flooding and not self._is_waiting and self.state is not State.CLOSING:
                self._keep(data)
                self.wait_for_turn()
                return
        if self._websocket is not None or self._is_waiting or self._pending:
            self._keep(data)
            if not self._is_waiting:
                self._go_on()
            return
        if self.state is State.IDLE and not self._ahead:
            request = self._reader.recognised(data)
            if request is not None:
                self._serve(request)  # without a look at the clock for what is being read
                return
        elif self.state is State.CLOSING or self.state is State.GIVEN:
            self._throw_away(len(data))
            return
        self._parse(data)

    def _keep(self, data: bytes) -> None:
        if self._websocket is not None:
            self._websocket.keep(data)
        else:
            self._pending += data

    def _parse(self, data: bytes) -> None:
        """Parse piece by piece, as far as requests are answered at once."""
        at, size = 0, len(data)
        while at < size:
            if self._ahead or self.is_stuck or self._is_waiting:
                self._pending = data[at:]
                self._mind_reading()
                return
            if self.state is State.CLOSING or self.state is State.GIVEN:
                self._throw_away(size - at)
                return
            in_body = self._reader.in_body
            is_much = self._reader.parts > self.limits.frames_per_turn
            if at and (is_much or not in_body):
                # What was parsed may have been a hundred requests, all of them answered.
                self._pending = data[at:]
                self.wait_for_turn()
                return
            end = at + (BODY_PIECE_BYTES if in_body else PIECE_BYTES)
            self._parse_piece(data[at:end] if end < size or at else data)
            at = end

    def _parse_piece(self, data: bytes) -> None:
        try:
            self._reader.feed(data, is_idle=self.state is State.IDLE)
        except TooLarge as error:
            self._refuse(error, status=413)
        except AngariumError as error:
            self._refuse(error)
        else:
            self._note_reading()
            if self.flood.is_over:
                self._refuse(_too_many())
            elif self.flood.is_flooding and not self._is_waiting:
                if self._reader.in_body and not (self._reader.is_proven or self._is_refuted):
                    self._proving = self._loop.create_task(self._prove(self._begin_waiting()))
                else:
                    self.wait_for_turn()

    async def _prove(self, go_on: Callable[[], None]) -> None:
        """Check the credentials of a body before it is complete, and read on after that.

        It comes in small parts: they are work if the client can log in, and a flood if not. A flood
        is not refused at once: the client would connect again, and each connection gets its first
        read at full speed.
        """
        try:
            await self._server.prove(_text(self._reader.authorization), self)
        except AngariumError:
            self._is_refuted = True
        finally:
            self._proving = None
        if self._transport is None:
            return
        if self._is_refuted:
            take_turn(self._loop, self.flood, go_on)
            return
        if self.state is not State.CLOSING:
            self._reader.is_proven = self.flood.is_proven = True
            self.flood.begin_anew()
            self._forget_unproven()
        go_on()

    def wait_for_turn(self) -> None:
        """Read no further in this turn of the loop."""
        if not self._is_waiting:
            take_turn(self._loop, self.flood, self._begin_waiting())

    def rest(self, seconds: float) -> None:
        """Take nothing more for so long: the client is over its quota."""
        if not self._is_waiting and seconds > 0:
            self._loop.call_later(seconds, self._begin_waiting())

    def _begin_waiting(self) -> Callable[[], None]:
        """Read nothing more; return what ends that, unless another wait has begun by then."""
        self._turn += 1
        self._is_waiting = True
        self._mind_reading()
        return partial(self._turn_came, self._turn)

    def _turn_came(self, turn: int) -> None:
        if turn == self._turn:
            self._is_waiting = False
            self._go_on()

    def _go_on(self) -> None:
        """Take up what waits, unless something is still in the way."""
        if self._transport is None or self._is_waiting or self.is_stuck:
            return
        if self._websocket is not None:
            self._websocket.go_on()
        elif self.state is State.IDLE and self._ahead:
            self._serve_next()
        elif self._pending and not self._ahead:
            data, self._pending = self._pending, b""
            self._parse(data)
        if not self._is_waiting:
            self.flood.is_behind = False
        self._mind_reading()

    def _mind_reading(self) -> None:
        """Read from the socket if nothing waits; else let its bytes wait there."""
        is_full = self._websocket is not None and self._websocket.is_full
        reads = not (self._is_waiting or self.is_stuck or self._ahead or self._pending or is_full)
        if reads is self._is_reading or self._transport is None:
            return
        self._is_reading = reads
        if not self._transport.is_closing():
            (self._transport.resume_reading if reads else self._transport.pause_reading)()

    def eof_received(self) -> bool:
        """Take the end of what a client says for its end: whoever waits for an answer stays."""
        return False

    def connection_lost(self, _: Exception | None) -> None:
        """End: whatever was being done for this client is given up."""
        self._transport = None
        self.state = State.CLOSING
        self._reader.end()
        self._ahead.clear()
        self._pending = b""
        self._forget_unproven()
        self.is_writable.set()
        if self._websocket is not None:
            self._websocket.lost()
        if self._request is not None:
            self._request = None
            self._server.end_request()
        if self._task is not None:
            self._task.cancel()
        if self._proving is not None:
            self._proving.cancel()
        self._server.left(self)

    def pause_writing(self) -> None:
        """Wait with further bytes, and read none: the client does not read its answers."""
        self.is_writable.clear()
        if self._transport is not None and self._is_asking:
            self.is_stuck = True
            self._server.unread[self] = (self._transport.get_write_buffer_size(), self._loop.time())
            self._mind_reading()

    def resume_writing(self) -> None:
        """Go on writing."""
        self.is_writable.set()
        if self.is_stuck:
            self.is_stuck = False
            self._server.unread.pop(self, None)
            self._go_on()

    @property
    def _is_asking(self) -> bool:
        """Whether what the client sends is answered: a stream only writes."""
        return self.state is not State.GIVEN or self._websocket is not None

    @property
    def unread_bytes(self) -> int:
        """Bytes that wait for the client to read."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def check_proof(self, authorization: bytes | None) -> bool:
        """Tell whether a request that has a body comes from somebody known.

        Raises `Unauthenticated` if it does not and brings nothing that could be looked at.
        """
        is_known = self._server.is_known
        if is_known is None:
            return True
        self._is_refuted = False
        self.flood.is_proven = is_known(_text(authorization), self)
        return self.flood.is_proven

    def take_unproven(self, size: int) -> None:
        """Keep a part of a body whose sender is not known; raises `LimitExceeded`."""
        self._server.take_unproven(size)
        self._unproven_bytes += size

    def _forget_unproven(self) -> None:
        if self._unproven_bytes:
            self._server.unproven_bytes -= self._unproven_bytes
            self._unproven_bytes = 0

    # --- what the reader tells ------------------------------------------------------------------

    def leave_wanted(self) -> None:
        """Hear that a client wants leave to send the body of the head that was just read."""
        if not self._ahead:
            self._write(_CONTINUE)

    def request_read(self, request: Request) -> None:
        """Have a request served, or have it wait for its turn."""
        if self.state in _READING and not self._ahead:
            self._serve(request)
            return
        self._ahead.append(request)
        self._mind_reading()

    def _note_reading(self) -> None:
        """See what a connection that has nothing to answer is reading, and until when it may.

        A request that came in one piece is being answered by now, and has cost no look at the
        clock.
        """
        if self.state not in _READING:
            return
        reader, limits = self._reader, self.limits
        if reader.in_head:
            state, seconds = State.HEAD, limits.head_seconds_max
        elif reader.in_body:
            state, seconds = State.BODY, limits.body_seconds_max
        else:
            return  # it was answered at once, and waits for the next one
        if state is not self.state:
            self.state = state
            self.deadline = self._loop.time() + seconds

    # --- serving --------------------------------------------------------------------------------

    def _serve(self, request: Request) -> None:
        self.state = State.BUSY
        self.has_asked = True
        self._request = request
        self.deadline = self._loop.time() + self.limits.request_seconds_max
        if not self._server.begin_request():
            refusal = LimitExceeded("requests_max", "too many requests under way")
            request.answer(self._server.problem(refusal))
            return
        answer: Answer
        try:
            answer = (request.head.way or self._server.handler)(request)
        except Exception as error:  # each becomes an answer
            answer = self._server.problem(error)
        if isinstance(answer, Response):
            request.answer(answer)
        elif answer is not None:
            self._task = self._loop.create_task(self._run(request, answer))

    async def _run(self, request: Request, work: object) -> None:
        assert asyncio.iscoroutine(work)
        try:
            response = await work
            if response is not None:
                request.answer(response)
        except asyncio.CancelledError:
            if self._transport is not None and self.state is State.BUSY:
                request.answer(self._server.problem(_too_late()))
            raise
        except Exception as error:  # each becomes an answer
            if self.state is State.GIVEN:
                _log.error("a stream met a mistake of ours", exc_info=error)
                self.abort()
            else:
                request.answer(self._server.problem(error))
        finally:
            self._task = None

    def answered(self, request: Request, response: Response) -> None:
        """Send a request's answer, and turn to the next one."""
        if request is not self._request or self.state is not State.BUSY:
            return
        self._request = None
        self._forget_unproven()
        server, now = self._server, self._loop.time()
        server.requests -= 1
        if server.on_answered is not None:
            began = self.deadline - self.limits.request_seconds_max
            server.on_answered(response.status, now - began)
        head = request.head
        keep_alive = head.keep_alive and not server.is_stopping
        if request.answer_headers:
            headers = response.headers + request.answer_headers
            response = Response(response.status, response.body, response.type, headers)
        data = response_bytes(
            response, server.date, keep_alive=keep_alive, is_head=head.method == b"HEAD"
        )
        if self._transport is not None:
            self._transport.write(data)
        if response.status == UNAUTHORIZED:
            self.flood.is_proven = server.is_known is None
            self.flood.note()
        if not keep_alive or self._is_last or self.flood.is_over:
            self.close()
            return
        self.state = State.IDLE
        self.deadline = now + self.limits.idle_seconds_max
        if not self._ahead:
            if self._reader.in_head or self._reader.in_body:
                # The next request has come in part while this one was being answered.
                self._note_reading()
            if self._pending:
                self.wait_for_turn()
        else:
            # Not from here: a thousand requests sent ahead must not become a thousand frames.
            self.wait_for_turn()

    def _serve_next(self) -> None:
        request = self._ahead.popleft()
        self._serve(request)
        if not self._ahead and self._pending:
            # While that one is being answered, one more is read.
            self.wait_for_turn()

    # --- giving over ----------------------------------------------------------------------------

    def begin_stream(
        self, request: Request, *, status: int, headers: tuple[tuple[bytes, bytes], ...]
    ) -> Stream:
        """Answer with a body that goes on and on; `LimitExceeded` if there are too many."""
        assert request is self._request
        self._server.begin_stream(self)
        request.is_answered = True
        self._server.end_request()
        self._request = None
        self.state = State.GIVEN
        # What was sent ahead is never answered; that the client hangs up is heard all the same.
        self._ahead.clear()
        self._pending = b""
        self._turn += 1  # one that was waited for is out of date
        self._is_waiting = self.flood.is_behind = False
        self._mind_reading()
        is_chunked = request.head.is_http_1_1
        headers += request.answer_headers
        if is_chunked:
            headers = (*headers, (b"Transfer-Encoding", b"chunked"))
        self._write(head_bytes(status, headers, date=self._server.date))
        return Stream(self, is_chunked=is_chunked)

    def begin_websocket(
        self, request: Request, websocket: WebSocket, answer: bytes, *, is_guest: bool = False
    ) -> None:
        """Let `websocket` have everything that comes from now on; of a guest it is not known yet
        who it is."""
        assert request is self._request
        if is_guest:
            self._server.begin_guest(self)
        else:
            self._server.begin_stream(self)
        request.is_answered = True
        self._server.end_request()
        self._request = None
        self.state = State.GIVEN
        self._websocket = websocket
        self.flood.is_proven = not is_guest
        self._write(answer)
        if self._pending:
            websocket.keep(self._pending)
            self._pending = b""
            self.wait_for_turn()

    def admit_guest(self) -> None:
        """Hear that a WebSocket's client has said who it is; raises `LimitExceeded`."""
        self._server.admit_guest(self)
        self.flood.is_proven = True

    def send_away(self) -> None:
        """Close a WebSocket: others wait, and this one has said nothing for the longest."""
        if self._websocket is not None:
            self._websocket.close(TRY_AGAIN_LATER, "others wait; say who you are sooner")

    @property
    def is_open(self) -> bool:
        """Whether there is somebody to write to."""
        return self._transport is not None and self.state is not State.CLOSING

    def write_now(self, data: bytes) -> None:
        """Write as a stream or WebSocket that it was given to."""
        self._write(data)

    def write_if_room(self, data: bytes) -> bool:
        """Write, unless something waits already or nobody is there any more."""
        transport = self._transport
        if transport is None or self.state is State.CLOSING or not self.is_writable.is_set():
            return False
        transport.write(data)
        return True

    # --- ending ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Close after what was written has gone out."""
        self.state = State.CLOSING
        self.deadline = self._loop.time() + DRAIN_SECONDS
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once, whatever was still to be sent."""
        if self._transport is not None:
            self._transport.abort()

    def overdue(self) -> None:
        """Do what is right when the present state has lasted too long."""
        match self.state:
            case State.IDLE:
                self.close()
            case State.HEAD | State.BODY:
                self._refuse(RequestRefused("the request came too slowly", status=408))
            case State.BUSY:
                if self._task is not None:
                    self._task.cancel()  # which answers
                elif self._request is not None:
                    request = self._request
                    request.answer(self._server.problem(_too_late()))
            case State.CLOSING:
                self.abort()
            case State.GIVEN:
                pass

    def leave(self) -> None:
        """Close if there is nothing under way."""
        if self.state in _READING:
            self.close()
        elif self.state is State.GIVEN and self._websocket is not None:
            self._websocket.close(GOING_AWAY, "this node is stopping")
        elif self.state is State.GIVEN and self._task is not None:
            self._task.cancel()

    def _refuse(self, error: AngariumError, *, status: int | None = None) -> None:
        """Answer bytes that are no request, or will not be one, and end the connection."""
        if self.state is State.BUSY:
            # Requests sent ahead of an answer: the answer under way matters more.
            self._is_last = True
            self._ahead.clear()
            self._begin_waiting()  # for nothing: the connection ends with that answer
            return
        response = self._server.problem(error, status=status or getattr(error, "status", None))
        self._write(response_bytes(response, self._server.date, keep_alive=False))
        self.state = State.CLOSING
        self._forget_unproven()
        if self.flood.is_over:
            self._begin_waiting()  # to the end: a flood is not worth reading
        self.deadline = self._loop.time() + DRAIN_SECONDS
        if self._transport is not None and self._transport.can_write_eof():
            with contextlib.suppress(OSError):
                self._transport.write_eof()

    def _throw_away(self, size: int) -> None:
        """Read on after the last request, so that the client can hear us; but not for ever."""
        self._thrown_away += size
        if self._thrown_away > self.limits.body_bytes_max:
            self.abort()

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


def _text(header: bytes | None) -> str | None:
    return None if header is None else header.decode("latin-1")


def _too_many() -> RequestRefused:
    return RequestRefused(TOO_MANY, status=429)


def _too_late() -> DeadlineExceeded:
    return DeadlineExceeded("the request was not answered in time; it may have taken effect")
