"""Bytes in, whole requests out: what llhttp finds is gathered, and held to its bounds.

What a request is, is llhttp's decision; how much of it may come is decided here, as early as it is
known: a body that says it will be too long is refused before it is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import httptools

from angarium.errors import AngariumError, InvalidArgument, TooLarge
from angarium.wire.http.messages import Head, Request

if TYPE_CHECKING:
    from angarium.wire.http.connection import Connection
    from angarium.wire.http.http_limits import HttpLimits
    from angarium.wire.http.known_heads import KnownHeads
    from angarium.wire.http.messages import Headers

CHUNK_BYTES_LEAST: Final = 64
"""Before login smaller parts of a body, but for the first, are counted as control frames."""

CHUNK_BYTES_LEAST_PROVEN: Final = 5
"""The same after login, as with DATA of HTTP/2: larger parts are work, which quotas bound."""

_HTTP_2: Final = b"PRI * HTTP/2.0\r\n"
"""How every connection of HTTP/2 begins."""
_NO_HTTP_2: Final = (
    "this port speaks HTTP/1.1, not HTTP/2; gRPC is at the node's gRPC port (7401 unless set"
    " otherwise)"
)


ONCE: Final = (
    b"host",
    b"authorization",
    b"origin",
    b"referer",
    b"sec-fetch-dest",
    b"sec-fetch-site",
    b"user-agent",
    b"content-type",
    b"idempotency-key",
    b"angarium-sequence",
    b"last-event-id",
)
"""Headers that decide something. A request that has one of them twice is answered 400: a proxy in
front, or the next check, may go by the other value."""


class RequestRefused(InvalidArgument):
    """A request that HTTP has a status of its own for; `headers` go with the answer."""

    def __init__(self, message: str, *, status: int, headers: Headers = ()) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class RequestReader:
    """Reads the requests of one connection, one after the other."""

    def __init__(self, connection: Connection, limits: HttpLimits, heads: KnownHeads) -> None:
        self._connection = connection
        self._limits = limits
        self._heads = heads
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._named: dict[bytes, bytes] = {}
        self._said_bytes = 0
        self._body: list[bytes | bytearray] = []
        """Parts of the present body; small ones are gathered, so that each does not cost memory of
        its own."""
        self.parts = 0
        """Parts of bodies in the piece that was fed last."""
        self._read: list[Head] = []
        """Those of the requests that the present piece of bytes has completed."""
        self._head_bytes = 0
        self._piece_bytes = 0
        self._is_split = False
        """Whether the head that is being read had begun before this piece."""
        self._body_bytes = 0
        self._framing_bytes = 0
        self._small = 0
        """Parts of the present body that are smaller than they should be."""
        self.is_proven = True
        """Whether who sends the present body is known."""
        self.in_head = False
        """Whether the head of a request has begun and not ended."""
        self.in_body = False
        """The same for its body."""

    @property
    def authorization(self) -> bytes | None:
        """The credentials in the head that was read last."""
        return self._named.get(b"authorization")

    def recognised(self, data: bytes) -> Request | None:
        """Return the request that `data` is, whole and alone, if its head has come before; else
        it has to be fed. Only for a connection that waits for a request."""
        if self.in_head or self.in_body:
            return None
        known = self._heads.recognised(data)
        return None if known is None else Request(self._connection, *known)

    def feed(self, data: bytes, *, is_idle: bool) -> None:
        """Take bytes; raises what is wrong with them: `RequestRefused` or `TooLarge`."""
        is_new = is_idle and not self.in_head and not self.in_body
        read = self._read = []
        self.parts = 0
        self._piece_bytes = len(data)
        self._is_split = self.in_head
        if self.in_head or is_idle:
            self._head_bytes += len(data)
        elif self.in_body:
            # Less what `on_body` will find in it.
            self._framing_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # What follows the head of an upgrade is the new protocol's; its client has to wait for
            # the answer before it speaks it.
            if len(data) > upgrade.args[0]:
                raise RequestRefused("speak after the upgrade is accepted", status=400) from None
        except httptools.HttpParserError as error:
            raise _refusal_of(error, data) from None
        if is_new and len(read) == 1 and not self.in_head and not self.in_body:
            self._heads.remember(data, read[0])
            return
        if self.in_head and self._head_bytes > self._limits.head_bytes_max:
            raise self._head_too_long()
        if self.in_body and self._framing_bytes > self._limits.body_bytes_max:
            # Sizes, extensions and trailers of chunks have no end of their own.
            raise self._body_too_long()

    def end(self) -> None:
        """Let go of the connection and of the parser, both of which know this reader.

        A ring is freed only when the garbage collector comes by. Of clients that connect for each
        request thousands would be kept until then, and the next ones would find no warm memory.
        """
        del self._connection, self._parser

    # --- what the parser calls ------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A request begins."""
        self._target = b""
        self._headers = []
        self._body = []
        self._body_bytes = 0
        self._framing_bytes = 0
        self._small = 0
        self.in_head = True

    def on_url(self, url: bytes) -> None:
        """Take (a part of) what is asked for."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header. What comes behind a body (trailers) is asked for by nobody."""
        if self.in_head:
            # llhttp leaves the blanks that may stand behind a value; they are no part of it.
            self._headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Check the head."""
        self.in_head = False
        self.in_body = True
        headers, limits = self._headers, self._limits
        # A head that came in one piece is no longer than the piece.
        if self._is_split or self._piece_bytes > limits.head_bytes_max:
            size = sum([len(name) + len(value) + 4 for name, value in headers], len(self._target))
            if size > limits.head_bytes_max:
                raise self._head_too_long()
        if len(headers) > limits.headers_max:
            raise self._head_too_long()
        named = self._named = dict(reversed(headers))
        is_twice = len(named) != len(headers)
        if is_twice:
            for once in ONCE:
                if sum([name == once for name, _ in headers]) > 1:
                    said = f"a request has one {once.decode().title()} header"
                    raise RequestRefused(said, status=400)
        if b"host" not in named and self._is_http_1_1:
            raise RequestRefused("a request has one Host header", status=400)
        # llhttp refuses a second length.
        self._said_bytes = int(named.get(b"content-length", 0))
        if self._said_bytes > limits.body_bytes_max:
            raise self._body_too_long()
        has_body = self._said_bytes > 0 or b"transfer-encoding" in named
        self.is_proven = not has_body or self._connection.check_proof(named.get(b"authorization"))
        if b"content-encoding" in named:
            self._check_encodings()
        if named.get(b"expect", b"").lower() == b"100-continue":
            self._connection.leave_wanted()

    def _check_encodings(self) -> None:
        # Stored as they are, such bytes would be taken for the value; and what they would become
        # has no end that could be known beforehand.
        for name, value in self._headers:
            if name == b"content-encoding" and value.strip().lower() != b"identity":
                raise RequestRefused("send the body as it is, without Content-Encoding", status=415)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._body_bytes += len(body)
        self._framing_bytes -= len(body)
        if self._body_bytes > self._limits.body_bytes_max:
            raise self._body_too_long()
        if not self.is_proven:
            self._connection.take_unproven(len(body))
        self.parts += 1
        size, flood = len(body), self._connection.flood
        if size < (CHUNK_BYTES_LEAST_PROVEN if self.is_proven else CHUNK_BYTES_LEAST):
            self._small += 1
            if self._small > 1:  # a small body comes in one
                flood.note()
        elif flood.control and self.is_proven:
            flood.work += 1
        last = self._body[-1] if self._body else None
        if last is None or size >= CHUNK_BYTES_LEAST:
            self._body.append(body)
        elif isinstance(last, bytearray):
            last += body
        else:
            self._body.append(bytearray(body))

    def on_message_complete(self) -> None:
        """Hand the request on."""
        self.in_body = False
        self._head_bytes = 0
        body = self._body
        head = Head(
            method=self._parser.get_method(),
            target=self._target,
            headers=self._headers,
            named=self._named,
            body_bytes=self._said_bytes,
            keep_alive=self._parser.should_keep_alive(),
            is_http_1_1=self._is_http_1_1,
        )
        whole = bytes(body[0]) if len(body) == 1 else b"".join(body)
        self._read.append(head)
        self._connection.request_read(Request(self._connection, head, whole))

    @property
    def _is_http_1_1(self) -> bool:
        return self._parser.get_http_version() == "1.1"

    def _head_too_long(self) -> RequestRefused:
        limits = self._limits
        return RequestRefused(
            f"a head has up to {limits.head_bytes_max} bytes and {limits.headers_max} headers",
            status=431,
        )

    def _body_too_long(self) -> TooLarge:
        return TooLarge("body_bytes_max", f"a body has up to {self._limits.body_bytes_max} bytes")


def _refusal_of(error: httptools.HttpParserError, data: bytes) -> AngariumError:
    """Return what is wrong with bytes that llhttp did not take to their end."""
    if isinstance(error.__context__, AngariumError):
        return error.__context__  # we stopped it
    if data.startswith(_HTTP_2):
        # As HTTP/1.1, which libraries of gRPC know when they see it: they give up. Frames of
        # HTTP/2 would make them connect again, hundreds of times a second.
        return RequestRefused(_NO_HTTP_2, status=505)
    return RequestRefused(f"this is not HTTP/1.1: {error}", status=400)
