"""Requests and responses, as handlers see them."""

from __future__ import annotations

from enum import Enum
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import parse_qsl, unquote

import msgspec

from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from angarium.wire.http.connection import Connection

JSON: Final = b"application/json"
QUERY_FIELDS_MAX: Final = 64
"""Parameters of a query; more are refused."""

_REASONS: Final = {one.value: one.phrase for one in HTTPStatus} | {499: "Client Closed Request"}
_STATUS_LINES: Final = {
    code: f"HTTP/1.1 {code} {phrase}\r\n".encode() for code, phrase in _REASONS.items()
}


Headers: TypeAlias = "tuple[tuple[bytes, bytes], ...]"


NO_STORE: Final[Headers] = ((b"Cache-Control", b"no-store"),)
"""Of an answer that has a secret in it: neither a browser nor a proxy keeps it."""

OF_A_PAGE: Final[Headers] = (
    (b"X-Content-Type-Options", b"nosniff"),
    (b"X-Frame-Options", b"DENY"),
    (b"Referrer-Policy", b"same-origin"),
)
"""Of an answer that a browser shows as a page, beside its own Content-Security-Policy."""


class Response(msgspec.Struct, frozen=True, gc=False):
    """A whole answer."""

    status: int = 200
    body: bytes = b""
    type: bytes = JSON
    """The body's media type."""
    headers: Headers = ()


Answer: TypeAlias = "Response | Coroutine[None, None, Response | None] | None"
"""What a handler returns: an answer, or work that ends with one. None: it has been answered, or
`Request.answer` will be called later."""


class Page(Enum):
    """Which web page has a browser send a request."""

    UNNAMED = "no header names one"
    ADMITTED = "one of our own, one that the settings name, or none: its address was typed"
    LINK = "one of another origin that links to this"


_UNNAMED: Final = Page.UNNAMED
"""Looked up for every request; an enum's member takes longer than the rest of it."""


class Head:
    """What a request says before its body; one that came before is shared by those that say it."""

    __slots__ = (
        "body_bytes",
        "headers",
        "is_http_1_1",
        "keep_alive",
        "method",
        "named",
        "note",
        "target",
        "way",
    )

    def __init__(
        self,
        *,
        method: bytes,
        target: bytes,
        headers: list[tuple[bytes, bytes]],
        named: Mapping[bytes, bytes],
        body_bytes: int,
        keep_alive: bool,
        is_http_1_1: bool,
    ) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        """All of them, with names in lower case."""
        self.named = named
        """The first header of each name in lower case: what is asked for with every request."""
        self.body_bytes = body_bytes
        self.keep_alive = keep_alive
        self.is_http_1_1 = is_http_1_1
        """Whether the client speaks the version that knows chunks."""
        self.note: object = None
        """What a handler has worked out from it, for the next request that says the same."""
        self.way: Callable[[Request], Answer] | None = None
        """Who answers such a request, once a handler has found that but for its body all is known
        of it: it is admitted, it may be served whoever sends it, and there is one who serves it."""


class Request:
    """One request, with its whole body."""

    __slots__ = (
        "answer_headers",
        "body",
        "connection",
        "head",
        "is_answered",
        "named",
        "page",
        "target",
    )

    def __init__(self, connection: Connection, head: Head, body: bytes) -> None:
        self.connection = connection
        self.head = head
        self.body = body
        self.is_answered = False
        self.answer_headers: Headers = ()
        """What every answer to it has besides its own headers."""
        self.page = _UNNAMED
        """Which page a browser asks for, as far as the listener has found out."""
        self.target = head.target
        self.named = head.named

    @property
    def method(self) -> bytes:
        """What is to be done with the target."""
        return self.head.method

    @property
    def source(self) -> str:
        """The client's host; what a login that fails is counted for."""
        return self.connection.host

    def header(self, name: bytes) -> bytes | None:
        """Return a header's value by its name in lower case; the first, if there are several."""
        return self.named.get(name)

    def text_header(self, name: bytes) -> str | None:
        """Return a header as text; latin-1 is what HTTP says of bytes beyond ASCII."""
        value = self.header(name)
        return None if value is None else value.decode("latin-1")

    def headers_with(self, prefix: bytes) -> list[tuple[str, bytes]]:
        """Return the headers whose names begin so, whole names in lower case."""
        return [
            (name.decode("latin-1"), value)
            for name, value in self.head.headers
            if name.startswith(prefix)
        ]

    @property
    def media_type(self) -> bytes:
        """The body's media type in lower case, without parameters; empty if there is none."""
        value = self.header(b"content-type")
        return b"" if value is None else value.partition(b";")[0].strip().lower()

    def segments(self) -> list[str]:
        """Return the path's parts, unquoted; `InvalidArgument` if it is no path of text."""
        path = self.target.partition(b"?")[0]
        try:
            if not path.startswith(b"/") or b"#" in self.target:
                raise InvalidArgument("the target of a request is a path and a query, no URL")
            # Cut before unquoting: a quoted slash belongs to the name it stands in.
            return [
                unquote(part, errors="strict") if "%" in part else part
                for part in path[1:].decode("ascii").split("/")
            ]
        except UnicodeDecodeError:
            raise InvalidArgument("the path is not UTF-8") from None

    def query(self) -> dict[str, str]:
        """Return the query's parameters; `InvalidArgument` if one comes twice or is no text."""
        text = self.target.partition(b"?")[2]
        if not text:
            return {}
        try:
            pairs = parse_qsl(
                text.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=QUERY_FIELDS_MAX,
            )
        except (UnicodeDecodeError, ValueError):
            raise InvalidArgument("the query is not a list of name=value in UTF-8") from None
        found = dict(pairs)
        if len(found) != len(pairs):
            raise InvalidArgument("a parameter of the query is given twice")
        return found

    def answer(self, response: Response) -> None:
        """Answer it, once. If the client has gone meanwhile, nothing happens."""
        if not self.is_answered:
            self.is_answered = True
            self.connection.answered(self, response)


def response_bytes(
    response: Response, date: bytes, *, keep_alive: bool, is_head: bool = False
) -> bytes:
    """Return an answer as it goes out; to HEAD, without its body."""
    status, body, kind, headers = response.status, response.body, response.type, response.headers
    if body and keep_alive and not headers and not is_head:
        # Most answers are of this kind, and formatting is faster than joining.
        return b"%b%bContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (
            *(_STATUS_LINES[status], date, kind, len(body), body),
        )
    parts = [_STATUS_LINES[status], date]
    if body:
        parts += (b"Content-Type: ", kind, b"\r\n")
    if status != HTTPStatus.NO_CONTENT:
        parts += (b"Content-Length: ", str(len(body)).encode(), b"\r\n")
    for name, value in headers:
        parts += (name, b": ", value, b"\r\n")
    parts.append(b"\r\n" if keep_alive else b"Connection: close\r\n\r\n")
    if not is_head:
        parts.append(body)
    return b"".join(parts)


def head_bytes(status: int, headers: tuple[tuple[bytes, bytes], ...], *, date: bytes) -> bytes:
    """Return the head of an answer whose body has no length yet."""
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    return b"".join((_STATUS_LINES[status], date, lines, b"\r\n"))
