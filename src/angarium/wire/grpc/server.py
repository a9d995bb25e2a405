"""gRPC on one address: which call goes where, within the limits.

What a request's headers say is looked at once for all requests that have the same ones, whatever
their deadlines.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.closing import CLOSE_S_MAX, Closings
from angarium.wire.grpc.call import Call
from angarium.wire.grpc.call_meters import CallMeters
from angarium.wire.grpc.codes import GrpcCode
from angarium.wire.grpc.deadlines import Deadlines
from angarium.wire.grpc.messages import CallRefused
from angarium.wire.grpc.metadata import (
    ACCEPTED_ENCODINGS,
    GZIP_HEAD,
    HEAD,
    Pairs,
    block_of,
    timeout_of,
    trailers_of,
)
from angarium.wire.http2.header_blocks import literal
from angarium.wire.http2.server import Http2Server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from angarium.telemetry.exposition import Family
    from angarium.wire.grpc.call_limits import CallLimits
    from angarium.wire.grpc.methods import Method
    from angarium.wire.http2 import RequestHead, Stream
    from angarium.wire.http2.server import Http2Socket
    from angarium.wire.listening import Context

TIMEOUT_SECONDS_MAX: Final = 10_000_000.0
"""A third of a year. A call with a later deadline has this one."""

LITTLE_UNREAD_BYTES: Final = 256 << 10
"""What any connection may have waiting, whatever the others have."""

HEARD_BYTES_MAX: Final = 64 << 10
"""Of a request that is no gRPC. Then it is answered without waiting for its end; the window, which
nobody opens again for it, is larger."""

_TOO_MANY_CALLS: Final = HEAD + trailers_of(
    GrpcCode.RESOURCE_EXHAUSTED, "too many calls are under way here"
)
_TOO_MUCH_UNREAD: Final = HEAD + trailers_of(
    GrpcCode.RESOURCE_EXHAUSTED, "too much that was sent on this connection waits to be read"
)
_TIMEOUT: Final = b"grpc-timeout"
_WHAT_TIMEOUTS_ARE: Final = "grpc-timeout is up to eight digits and a unit"
_NO_TIMEOUT: Final = HEAD + trailers_of(GrpcCode.INTERNAL, _WHAT_TIMEOUTS_ARE)
_ENCODINGS: Final = (("grpc-accept-encoding", ACCEPTED_ENCODINGS.decode()),)


class Route:
    """What the headers of a request lead to."""

    __slots__ = ("answer", "body", "gzip", "method")

    def __init__(
        self,
        method: Method | None,
        *,
        gzip: bool = False,
        answer: bytes = b"",
        body: bytes = b"",
    ) -> None:
        self.method = method
        """None: `answer` is the header block, and `body` the text, that is all there is to say."""
        self.gzip = gzip
        self.answer = answer
        self.body = body


class GrpcServer:
    """Serves methods, by their paths, on the running event loop."""

    def __init__(
        self,
        methods: Mapping[str, Method],
        limits: CallLimits,
        *,
        refusal_of: Callable[[Exception], Awaitable[CallRefused]],
        asks_who: bool = False,
    ) -> None:
        """Prepare; a path is `/package.Service/Method`, and `refusal_of` says how a call ends whose
        handler, or whose bytes, led to an error. With `asks_who` handlers say by `Call.proven` that
        a principal is known: until then all frames of a connection are counted, and a call that
        ends before that is never work."""
        self.refusal_of = refusal_of
        self.asks_who = asks_who
        self.limits = limits
        self.calls = 0
        """Under way."""
        self.meters = CallMeters()
        self.received_bytes = 0
        """Of requests that no handler has read."""
        self.stopping = asyncio.Event()
        """Set when streams are to end."""
        self.tasks: set[asyncio.Task[None]] = set()
        """What runs for calls. A call that has ended may still be closing what it had opened."""
        self.loop: asyncio.AbstractEventLoop
        self.deadlines: Deadlines
        self.head = HEAD
        """What every answer begins with."""
        self.gzip_head = GZIP_HEAD
        """The same of one whose messages may be compressed."""
        self._methods: dict[bytes, Method] = {}
        self.serve(methods)
        self._server = Http2Server(
            self._calls_of, limits.http2, varying=_TIMEOUT, asks_who=asks_who
        )
        self.closings = Closings()
        """What handlers close with; the server stops when it is all closed."""

    def serve(self, methods: Mapping[str, Method]) -> None:
        """Add methods, by their paths."""
        self._methods |= {path.encode(): method for path, method in methods.items()}

    def begin_with(self, pairs: Pairs) -> None:
        """Have every answer begin with `pairs` as its metadata, from now on."""
        block = block_of(pairs)
        self.head, self.gzip_head = HEAD + block, GZIP_HEAD + block

    async def start(self, *, host: str, port: int, tls: Context | None = None) -> int:
        """Listen; return the port. `OSError` if the address cannot be had."""
        self.loop = asyncio.get_running_loop()
        self.deadlines = Deadlines(self.loop)
        try:
            return await self._server.start(host=host, port=port, tls=tls)
        except OSError as error:
            raise OSError(error.errno, f"gRPC cannot listen on {host}:{port}: {error}") from None

    async def stop(self, grace_s: float) -> None:
        """Close: streams are told to end at once, other calls have `grace_s` to finish."""
        self.stopping.set()
        await self._server.stop(grace_s)
        if self.tasks:
            await asyncio.wait(set(self.tasks), timeout=CLOSE_S_MAX)
        await self.closings.drained()

    def families(self) -> Iterator[Family]:
        """Yield metrics of the calls that reached a method."""
        return self.meters.families(connections=len(self._server.sockets), calls=self.calls)

    def has_room_on(self, socket: Http2Socket) -> bool:
        """Tell whether a client reads its answers as it should, and others do."""
        unread = socket.unread_bytes
        if unread <= LITTLE_UNREAD_BYTES:
            return True
        most = self.limits.answers_bytes_max
        return unread <= most // 8 and self._server.unread_bytes <= most

    def route(self, head: RequestHead) -> Route:
        """Return where a request goes."""
        if head.method != b"POST":
            return _no_grpc(405, "POST is the only method of gRPC", (b"allow", b"POST"))
        kind = head.values.get(b"content-type", b"")
        if kind != b"application/grpc" and not kind.startswith(
            (b"application/grpc+", b"application/grpc;")
        ):
            return _no_grpc(415, "this port speaks gRPC: content-type is application/grpc")
        try:
            return self._route_of_call(head)
        except CallRefused as refusal:
            block = HEAD + trailers_of(refusal.code, refusal.message, refusal.pairs)
            return Route(None, answer=block)

    def _route_of_call(self, head: RequestHead) -> Route:
        if head.bytes > self.limits.metadata_bytes_max:
            what = f"metadata has up to {self.limits.metadata_bytes_max} bytes"
            raise CallRefused(GrpcCode.RESOURCE_EXHAUSTED, what)
        method = self._methods.get(head.path)
        if method is None:
            path = head.path.decode("latin-1")
            raise CallRefused(GrpcCode.UNIMPLEMENTED, f"there is no method {path[:256]!r}")
        encoding = head.values.get(b"grpc-encoding", b"identity")
        if encoding not in (b"identity", b"gzip"):
            what = f"messages may be compressed with gzip, not {encoding.decode('latin-1')[:64]!r}"
            raise CallRefused(GrpcCode.UNIMPLEMENTED, what, _ENCODINGS)
        if _TIMEOUT in head.values:  # a second one, or no short word
            raise CallRefused(GrpcCode.INTERNAL, _WHAT_TIMEOUTS_ARE)
        return Route(method, gzip=encoding == b"gzip")

    def _calls_of(self, socket: Http2Socket) -> _Calls:
        return _Calls(self, socket)


class _Calls:
    """The calls of one connection: hears what HTTP/2 has to tell."""

    __slots__ = ("_server", "_socket")

    def __init__(self, server: GrpcServer, socket: Http2Socket) -> None:
        self._server = server
        self._socket = socket

    def begun(self, stream: Stream, head: RequestHead) -> None:
        server = self._server
        route = head.note
        if route is None:
            route = head.note = server.route(head)
        sender = self._socket.connection.sender
        if route.method is None:
            self._socket.connection.nuisances.count_unproven()
            if route.body:
                stream.owner = _Refusal(self._socket, stream, route)
            else:
                # At once: who calls for a stream may wait for our word before its own last one.
                sender.send_headers(stream, route.answer, ends=True)
            return
        if server.calls >= server.limits.calls_max:
            sender.send_headers(stream, _TOO_MANY_CALLS, ends=True)
            return
        if self._socket.unread_bytes > server.limits.unread_bytes_max:
            sender.send_headers(stream, _TOO_MUCH_UNREAD, ends=True)
            return
        timeout_s = None
        if stream.varying is not None:
            timeout_s = timeout_of(stream.varying)
            if timeout_s is None:
                sender.send_headers(stream, _NO_TIMEOUT, ends=True)
                return
            timeout_s = min(timeout_s, TIMEOUT_SECONDS_MAX)
        server.calls += 1
        stream.owner = Call(
            server,
            self._socket,
            stream,
            head,
            route.method,
            timeout_s=timeout_s,
            gzip=route.gzip,
        )

    def received(self, stream: Stream, data: bytes, ends: bool) -> None:
        if stream.owner is not None:
            stream.owner.received(data, ends=ends)

    def ended(self, stream: Stream) -> None:
        if stream.owner is not None:
            stream.owner.ended()

    def given_up(self, stream: Stream) -> None:
        if stream.owner is not None:
            stream.owner.given_up()

    def drained(self, stream: Stream) -> None:
        if stream.owner is not None:
            stream.owner.drained()


class _Refusal:
    """A request that is no gRPC: told so when its client has said all it wanted to say, or more
    than anybody has to hear to the end. What it says is not read."""

    __slots__ = ("_heard_bytes", "_route", "_socket", "_stream")

    def __init__(self, socket: Http2Socket, stream: Stream, route: Route) -> None:
        self._socket = socket
        self._stream = stream
        self._route = route
        self._heard_bytes = 0

    def ended(self) -> None:
        connection, route = self._socket.connection, self._route
        self._stream.owner = None
        connection.sender.send_headers(self._stream, route.answer, ends=not route.body)
        if route.body:
            connection.sender.send_data(self._stream, route.body, ends=True)

    def received(self, data: bytes, *, ends: bool) -> None:
        self._socket.connection.nuisances.count_unproven()
        self._heard_bytes += len(data)
        if ends or self._heard_bytes > HEARD_BYTES_MAX:
            self.ended()

    def given_up(self) -> None:
        pass

    def drained(self) -> None:
        pass


def _no_grpc(status: int, text: str, *fields: tuple[bytes, bytes]) -> Route:
    """Answer what is no gRPC in words that whoever asked can read."""
    block = literal(b":status", str(status).encode()) + literal(b"content-type", b"text/plain")
    return Route(
        None, answer=block + b"".join(literal(*one) for one in fields), body=text.encode() + b"\n"
    )
