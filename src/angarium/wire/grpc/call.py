"""One call, from its headers to its trailers.

Handlers see its metadata and deadline, write messages to it and end it. It ends once: with an
answer, a refusal, its deadline, or the client's going away. Whatever a handler does after that
reaches nobody.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NoReturn

from angarium.errors import InvalidArgument, LimitExceeded, QuotaExceeded
from angarium.wire.grpc.codes import GrpcCode
from angarium.wire.grpc.messages import (
    PREFIX_BYTES,
    CallRefused,
    MessageReader,
    framed,
    framed_gzip,
    is_one_plain,
)
from angarium.wire.grpc.metadata import (
    HEAD,
    OK_TRAILERS,
    block_of,
    pairs_of,
    trailers_of,
)
from angarium.wire.grpc.requests import Requests
from angarium.wire.http2.sender import WholeAnswer

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from angarium.security.tls import Certificate
    from angarium.wire.grpc.metadata import Pairs
    from angarium.wire.grpc.methods import Method
    from angarium.wire.grpc.server import GrpcServer
    from angarium.wire.http2 import RequestHead, Stream
    from angarium.wire.http2.server import Http2Socket


class CallEnded(Exception):
    """The call is over: there is nobody to read or write for."""


class ReadyAnswer(WholeAnswer):
    """An answer of one message that many calls get, made ready once."""

    __slots__ = ("message",)

    def __init__(self, message: bytes, *, first: Pairs = (), last: Pairs = ()) -> None:
        """Prepare; `first` and `last` are the metadata before and behind the message."""
        trailers = trailers_of(GrpcCode.OK, "", last)
        super().__init__(HEAD + block_of(first), framed(message), trailers)
        self.message = message


class Call:
    """One call under way."""

    __slots__ = (
        "_began",
        "_deadline",
        "_drain",
        "_has_begun",
        "_has_failed",
        "_head",
        "_held_bytes",
        "_is_gzip",
        "_is_known",
        "_may_be_gzip",
        "_method",
        "_queued_bytes",
        "_reader",
        "_requests",
        "_server",
        "_socket",
        "_stream",
        "_task",
        "_trailing",
        "_unary",
        "is_over",
    )

    def __init__(
        self,
        server: GrpcServer,
        socket: Http2Socket,
        stream: Stream,
        head: RequestHead,
        method: Method,
        *,
        timeout_s: float | None,
        gzip: bool,
    ) -> None:
        self._server = server
        self._socket = socket
        self._stream = stream
        self._head = head
        self._method = method
        self._reader: MessageReader | None = None
        self._may_be_gzip = gzip
        self._unary: bytes | None = None
        self._requests: Requests | None = None
        self._held_bytes = self._queued_bytes = 0
        """Bytes that are kept of what came, and those of them that wait in `_requests`."""
        self._task: asyncio.Task[None] | None = None
        self._deadline: float | None = None
        self._has_begun = False
        self._has_failed = False
        self._is_gzip = False
        self._is_known = not server.asks_who
        self._trailing: Pairs = ()
        self._drain: asyncio.Future[None] | None = None
        self.is_over = False
        self._began = server.loop.time()
        if timeout_s is not None:
            self._deadline = self._began + timeout_s
            server.deadlines.add(self, self._deadline)
        if method.streaming is not None:
            server.meters.streams += 1
            self._requests = Requests(self._credit)
            self._run(method.streaming(self._requests, self), finishes=True)

    # --- what handlers do -------------------------------------------------------------------------

    def invocation_metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        """Return what the client sent along."""
        return pairs_of(self._head.fields)

    @property
    def authorization(self) -> str | None:
        """What the client sent as proof of who it is."""
        value = self._head.values.get(b"authorization")
        return None if value is None else value.decode("latin-1")

    @property
    def source(self) -> str:
        """The client's host; what a login that fails is counted for."""
        return self._socket.host

    def proven(self) -> None:
        """Note that the principal behind this call is known: the frames of its connection are work
        from now on, as far as they belong to such calls."""
        self._is_known = True
        self._socket.connection.nuisances.is_proven = True

    @property
    def peer_certificate(self) -> Certificate | None:
        """The certificate that the client has shown, and that was believed."""
        return self._socket.peer_certificate

    def time_remaining(self) -> float | None:
        """Return the seconds until the call is too late; None if it has no deadline."""
        return None if self._deadline is None else self._deadline - self._server.loop.time()

    async def send_initial_metadata(self, pairs: Pairs = ()) -> None:
        """Send the answer's headers now, rather than with its first message."""
        self.begin(pairs)

    def begin(self, pairs: Pairs = ()) -> None:
        """Do the same without waiting."""
        if not self.is_over and not self._has_begun:
            self._has_begun = True
            head = self._server.gzip_head if self._is_gzip else self._server.head
            self._socket.connection.sender.send_headers(self._stream, head + block_of(pairs))
            self._socket.flush_soon()

    def set_trailing_metadata(self, pairs: Pairs) -> None:
        """Have `pairs` sent behind an answer that is one."""
        self._trailing = pairs

    def may_compress(self) -> None:
        """Say in the headers that messages may be compressed."""
        self._is_gzip = True

    async def write(self, message: bytes, *, compressed: bool = False) -> None:
        """Send a message, and wait while the client has no room for more; raises `CallEnded`."""
        await self._write(framed_gzip(message) if compressed else framed(message))

    async def write_all(self, messages: Iterable[bytes]) -> None:
        """Send messages as one piece, which costs little more than to send one of them."""
        await self._write(b"".join(map(framed, messages)))

    async def _write(self, data: bytes) -> None:
        if self.is_over:
            raise CallEnded
        self.begin()
        socket, stream = self._socket, self._stream
        socket.connection.sender.send_data(stream, data)
        socket.flush_soon(len(data))
        while stream.waiting or not socket.is_writable:
            if self._drain is None:
                self._drain = self._server.loop.create_future()
            await asyncio.shield(self._drain)
            if self.is_over:
                raise CallEnded

    async def abort(self, code: GrpcCode, message: str, pairs: Pairs = ()) -> NoReturn:
        """End the call with an error."""
        raise CallRefused(code, message, pairs)

    def finish(self, message: bytes | None = None) -> None:
        """End the call well, with `message` as its only or last one."""
        if self.is_over:
            return
        trailing = self._trailing
        trailers = trailers_of(GrpcCode.OK, "", trailing) if trailing else OK_TRAILERS
        connection, stream = self._socket.connection, self._stream
        self._close(GrpcCode.OK)
        if not self._has_begun and message is not None:
            head = self._server.gzip_head if self._is_gzip else self._server.head
            connection.sender.answer(stream, head, framed(message), trailers)
        else:
            if not self._has_begun:
                connection.sender.send_headers(stream, self._server.head)
            if message is not None:
                connection.sender.send_data(stream, framed(message))
            connection.sender.send_trailers(stream, trailers)
        self._socket.flush_soon(0 if message is None else len(message))

    def finish_with(self, answer: ReadyAnswer) -> None:
        """End the call well, with a message that was made ready before."""
        if self._has_begun or self._trailing or self._is_gzip:
            self.finish(answer.message)
        elif not self.is_over:
            self._close(GrpcCode.OK)
            self._socket.connection.sender.answer_with(self._stream, answer)
            self._socket.flush_soon(answer.size)

    def refuse(self, code: GrpcCode, message: str, pairs: Pairs = ()) -> None:
        """End the call with an error. What was written before still goes out."""
        if self.is_over:
            return
        trailers = trailers_of(code, message, pairs)
        connection, stream = self._socket.connection, self._stream
        self._close(code)
        if self._has_begun:
            connection.sender.send_trailers(stream, trailers)
        else:
            connection.sender.send_headers(stream, self._server.head + trailers, ends=True)
        self._socket.flush_soon()

    def fail(self, error: Exception) -> None:
        """End the call with what the server makes of `error`."""
        if not self.is_over and not self._has_failed:
            self._has_failed = True
            work = self._task
            self._task = self._owned(self._refused(error))
            if work is not None:
                # A handler that knows of nothing would wait for requests that nobody reads.
                work.cancel()

    def attend(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something for the call that ends it, or begins what will; it ends with the call."""
        self._run(work, finishes=False)

    # --- what the connection tells ----------------------------------------------------------------

    def received(self, data: bytes, *, ends: bool) -> None:
        """Take a piece of the request's body, and perhaps its end."""
        if self.is_over or self._has_failed:
            return
        if ends and self._requests is None and self._reader is None and self._unary is None:
            server = self._server
            if (
                is_one_plain(data, server.limits.message_bytes_max)
                and server.received_bytes <= server.limits.received_bytes_max
            ):
                self._begin_unary(data[PREFIX_BYTES:])
                return
        elif self._is_next_message(data) and not ends:
            # Of a stream: most messages come so, and there may be as many as records.
            self._hold(len(data))
            self._queued_bytes += len(data)
            assert self._requests is not None
            self._requests.add([data[PREFIX_BYTES:]], len(data), len(data))
            return
        self._hold(len(data))
        try:
            self._take(data)
        except Exception as error:  # each becomes an answer
            self.fail(error)
        if ends:
            self.ended()

    def ended(self) -> None:
        """Hear that the request's body is whole."""
        if self.is_over or self._has_failed:
            return
        if self._reader is not None and self._reader.held_bytes:
            self.fail(InvalidArgument("the request ends within a message"))
        elif self._requests is not None:
            self._requests.end()
        elif self._unary is None:
            self.fail(InvalidArgument("this call has one request, and none came"))
        else:
            self._begin_unary(self._unary)

    def given_up(self) -> None:
        """Hear that nobody waits for an answer any more."""
        if self.is_over:
            return
        self._close(GrpcCode.CANCELLED)
        if self._requests is not None:
            self._requests.end(CallEnded())
        if self._task is not None:
            self._task.cancel()

    def expire(self) -> None:
        """Hear that the deadline has passed."""
        task = self._task
        self.refuse(GrpcCode.DEADLINE_EXCEEDED, "the call's deadline has passed")
        if task is not None:
            task.cancel()

    def drained(self) -> None:
        """Hear that there is room again."""
        if self._drain is not None and self._socket.is_writable:
            self._drain.set_result(None)
            self._drain = None

    # --- within -----------------------------------------------------------------------------------

    def _is_next_message(self, data: bytes) -> bool:
        """Tell whether a piece is one whole message of a stream, and nothing of another waits."""
        server, reader = self._server, self._reader
        return (
            self._requests is not None
            and (reader is None or not reader.held_bytes)
            and server.received_bytes + len(data) <= server.limits.received_bytes_max
            and is_one_plain(data, server.limits.message_bytes_max)
        )

    def _take(self, data: bytes) -> None:
        server = self._server
        if server.received_bytes > server.limits.received_bytes_max:
            raise LimitExceeded("received_bytes_max", "too many bytes of requests wait here")
        if self._reader is None:
            bytes_max = server.limits.message_bytes_max
            if self._requests is None and self._unary is None and is_one_plain(data, bytes_max):
                self._unary = data[PREFIX_BYTES:]
                return
            self._reader = MessageReader(bytes_max=bytes_max, gzip=self._may_be_gzip)
        messages = self._reader.feed(data)
        if self._reader.is_gzip:
            # What is kept is as large as it was before it was compressed.
            self._hold(sum(map(len, messages)))
        if not messages and (self._requests is None or not self._requests.has_unread):
            # Part of one that has to become whole: its client must not wait for us.
            self._socket.connection.consumed(self._stream, len(data))
        elif self._requests is not None:
            kept = self._held_bytes - self._reader.held_bytes - self._queued_bytes
            self._queued_bytes += kept
            self._requests.add(messages, len(data), kept)
        elif self._unary is None and len(messages) == 1:
            self._unary = messages[0]
        else:
            raise InvalidArgument("this call has one request, and more came")

    def _begin_unary(self, message: bytes) -> None:
        self._unary = None
        if self._held_bytes:
            self._hold(-self._held_bytes)
        assert self._method.unary is not None
        try:
            work = self._method.unary(message, self)
        except Exception as error:  # each becomes an answer
            self.fail(error)
        else:
            if work is not None:
                self._run(work, finishes=True)

    def _run(self, work: Coroutine[Any, Any, bytes | None], *, finishes: bool) -> None:
        task = self._owned(self._attended(work, finishes=finishes))
        # A task that is cancelled before its first step leaves what it was to do behind.
        task.add_done_callback(lambda _: work.close())
        self._task = task

    def _owned(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._server.loop.create_task(work)
        self._server.tasks.add(task)
        task.add_done_callback(self._server.tasks.discard)
        return task

    async def _attended(self, work: Coroutine[Any, Any, bytes | None], *, finishes: bool) -> None:
        try:
            # Before the work, which may be much; and behind it, as others were at work as well.
            self._check_room()
            message = await work
            if finishes and not self._has_failed:
                if message is not None:
                    self._check_room()
                self.finish(message)
        except asyncio.CancelledError:
            # By somebody else, if the call goes on: it would never end, and be counted for ever.
            if not self._has_failed:
                self.refuse(GrpcCode.CANCELLED, "what this call waited for was given up")
            raise
        except Exception as error:  # each becomes an answer
            if not self._has_failed:
                await self._refused(error)
        finally:
            if not self._has_failed:  # else it is the refusal's
                self._task = None

    def _check_room(self) -> None:
        if self._requests is None and not self._server.has_room_on(self._socket):
            what = "too much that was sent waits to be read"
            raise CallRefused(GrpcCode.RESOURCE_EXHAUSTED, what)

    async def _refused(self, error: Exception) -> None:
        # Of a call that is over there is nobody to tell: a handler that was writing to it hears of
        # its end as an error.
        if not self.is_over:
            if isinstance(error, QuotaExceeded) and not self._has_begun:
                self._was_no_work()
            refusal = await self._server.refusal_of(error)
            self.refuse(refusal.code, refusal.message, refusal.pairs)

    def _credit(self, travelled_bytes: int, kept_bytes: int) -> None:
        if not self.is_over:
            self._hold(-kept_bytes)
            self._queued_bytes -= kept_bytes
            self._socket.connection.consumed(self._stream, travelled_bytes)
            self._socket.flush_soon()

    def _hold(self, size: int) -> None:
        self._held_bytes += size
        self._server.received_bytes += size

    def _was_no_work(self) -> None:
        self._socket.connection.nuisances.count_refused(self._stream.pieces)

    def _close(self, code: GrpcCode) -> None:
        self.is_over = True
        if not self._is_known:
            self._was_no_work()
        server = self._server
        if self._requests is None:
            server.meters.ended(code, server.loop.time() - self._began)
        else:
            server.meters.stream_ended(code)
        self._stream.owner = None
        if self._held_bytes:
            self._hold(-self._held_bytes)
        server.calls -= 1
        if self._deadline is not None:
            server.deadlines.discard(self)
        if self._drain is not None:
            self._drain.set_result(None)
            self._drain = None
