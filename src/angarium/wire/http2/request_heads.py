"""What a request begins with: its fields, found to be what RFC 9113 (section 8) allows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from angarium.wire.http2.header_blocks import Field

_NAMES: Final = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9a-z]+\n)*").fullmatch
"""Names of fields, a line each. Capitals are not allowed."""
_FORBIDDEN: Final = re.compile(rb"[\0\r\n]").search
"""What no value has in it: somebody behind us might take it for the end of a line."""

_OF_A_CONNECTION: Final = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)
"""Headers of HTTP/1.1 that say something of a connection, and have no meaning here."""

CONTENT_LENGTH_DIGITS_MAX: Final = 18
"""More than any body has. Reading a number takes longer than its digits, and Python reads none of
over 4,300."""

VARYING_BYTES_MAX: Final = 16
"""What a value has that is told beside the head of a request."""

_PSEUDO: Final = frozenset((b":method", b":scheme", b":path", b":authority"))


class MalformedRequest(ValueError):
    """A request that HTTP/2 does not allow. It ends its stream, not the connection."""


class RequestHead:
    """A request's method, path and headers. The same for as many requests as look alike."""

    __slots__ = (
        "authority",
        "bytes",
        "content_length",
        "fields",
        "method",
        "note",
        "path",
        "scheme",
        "values",
    )

    def __init__(self, fields: tuple[Field, ...]) -> None:
        """Read the fields of a header block; raises `MalformedRequest`."""
        self.note: Any = None
        """What the listener made of it: the same for all requests that look alike."""
        pseudo, self.fields = _parted(fields)
        self.bytes = sum(len(name) + len(value) + 32 for name, value in fields)
        self.values: dict[bytes, bytes] = dict(self.fields)
        """The last value of each header."""
        self.method = pseudo.get(b":method", b"")
        self.scheme = pseudo.get(b":scheme", b"")
        self.path = pseudo.get(b":path", b"")
        self.authority = pseudo.get(b":authority", b"")
        if not (self.method and self.scheme and self.path):
            raise MalformedRequest("a request has a method, a scheme and a path")
        if not _OF_A_CONNECTION.isdisjoint(self.values):
            raise MalformedRequest("a header of HTTP/1.1 that HTTP/2 does not have")
        if b"te" in self.values and self._only_value(b"te") != b"trailers":
            raise MalformedRequest("te is `trailers` or nothing")
        if b"authorization" in self.values:
            self._only_value(b"authorization")
        self.content_length = self._content_length()
        """What the client says its body has; -1 if it does not say."""

    def _content_length(self) -> int:
        if b"content-length" not in self.values:
            return -1
        text = self._only_value(b"content-length")
        if not text.isdigit() or len(text) > CONTENT_LENGTH_DIGITS_MAX:
            raise MalformedRequest("a content-length is a number")
        return int(text)

    def _only_value(self, name: bytes) -> bytes:
        """Return the value of a header; of one that says different things nobody knows which."""
        if len({value for key, value in self.fields if key == name}) > 1:
            raise MalformedRequest("a header that says two things")
        return self.values[name]


def without(name: bytes, fields: tuple[Field, ...]) -> tuple[tuple[Field, ...], bytes | None]:
    """Return the fields without the first one of this name, and its value.

    One that is no short word, or stands where it may not, stays, to be looked at with the others.
    """
    for at, (one, value) in enumerate(fields):
        if one == name:
            rest = fields[at + 1 :]
            if is_short_word(value) and not _is_pseudo(rest[:1]):
                return fields[:at] + rest, value
            break
    return fields, None


def is_short_word(value: bytes) -> bool:
    """Tell whether a value is told beside the head: then nobody has to look at it for what no
    value has in it."""
    return len(value) <= VARYING_BYTES_MAX and value.isalnum()


def _is_pseudo(fields: tuple[Field, ...]) -> bool:
    return any(name.startswith(b":") for name, _ in fields)


def check_trailers(fields: tuple[Field, ...]) -> None:
    """See that `fields` may stand behind a body; raises `MalformedRequest`."""
    pseudo, _ = _parted(fields)
    if pseudo:
        raise MalformedRequest("trailers have no pseudo-header")


def _parted(fields: tuple[Field, ...]) -> tuple[dict[bytes, bytes], tuple[Field, ...]]:
    """Return the pseudo-headers, which come first, each once, and the headers."""
    pseudo: dict[bytes, bytes] = {}
    count = 0
    for name, value in fields:
        if not name.startswith(b":"):
            break
        if name not in _PSEUDO or name in pseudo:
            raise MalformedRequest("a pseudo-header that is unknown, or comes twice")
        pseudo[name] = value
        count += 1
    rest = fields[count:]
    names = b"".join([name + b"\n" for name, _ in rest])
    # A name with a line's end in it would look like two good ones.
    if not _NAMES(names) or names.count(b"\n") != len(rest):
        raise MalformedRequest(
            "a header's name is in lower case, and made of what a name is made of"
        )
    if _FORBIDDEN(b"".join([value for _, value in fields])):
        raise MalformedRequest("a header's value is one line")
    return pseudo, rest
