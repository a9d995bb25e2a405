"""Headers and trailers of calls: what gRPC says in them, and how binary values travel."""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import quote

from angarium.wire.grpc.codes import GrpcCode
from angarium.wire.http2.header_blocks import STATUS_200, literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from angarium.wire.http2.header_blocks import Field

Pairs: TypeAlias = "Sequence[tuple[str, str | bytes]]"
"""Metadata: names in lower case; those that end in `-bin` have bytes, all others have text."""

BINARY: Final = b"-bin"
ACCEPTED_ENCODINGS: Final = b"identity,gzip"

TIMEOUT_DIGITS_MAX: Final = 8
_SECONDS: Final = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}

_RESERVED: Final = frozenset((b"te", b"content-type", b"user-agent", b"content-length"))
"""Headers that are HTTP's, and no metadata."""

HEAD: Final = STATUS_200 + literal(b"content-type", b"application/grpc")
"""What every answer begins with."""
OK_TRAILERS: Final = literal(b"grpc-status", b"0")
"""What every answer that is one ends with."""
GZIP_HEAD: Final = HEAD + literal(b"grpc-encoding", b"gzip")
"""What an answer begins with whose messages may be compressed."""


def timeout_of(text: bytes) -> float | None:
    """Return the seconds that a call has; None if that is no timeout."""
    digits, unit = text[:-1], _SECONDS.get(text[-1:])
    if unit is None or not digits.isdigit() or len(digits) > TIMEOUT_DIGITS_MAX:
        return None
    return int(digits) * unit


def pairs_of(fields: Iterable[Field]) -> tuple[tuple[str, str | bytes], ...]:
    """Return the metadata that a client sent.

    A value is text as far as it can be; binary ones that are no base64 are left out.
    """
    found: list[tuple[str, str | bytes]] = []
    for name, value in fields:
        if name in _RESERVED or name.startswith(b"grpc-"):
            continue
        if not name.endswith(BINARY):
            found.append((name.decode(), value.decode("latin-1")))
            continue
        for part in value.split(b","):
            text = part.strip(b" ").rstrip(b"=")
            try:
                data = base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
            except binascii.Error:
                continue
            found.append((name.decode(), data))
    return tuple(found)


def block_of(pairs: Pairs) -> bytes:
    """Return metadata as part of a header block."""
    return b"".join([literal(name.encode(), _value(name, value)) for name, value in pairs])


def trailers_of(code: GrpcCode, message: str, pairs: Pairs = ()) -> bytes:
    """Return the header block that ends a call."""
    if code is GrpcCode.OK and not message:
        return _ok_trailers(tuple(pairs)) if pairs else OK_TRAILERS
    status = literal(b"grpc-status", str(int(code)).encode())
    # Everything but printable ASCII, and the sign itself, is escaped as in addresses.
    said = quote(message, safe=" !\"#$&'()*+,/:;<=>?@[\\]^`{|}", errors="replace").encode()
    return status + literal(b"grpc-message", said) + block_of(pairs)


@lru_cache(maxsize=64)
def _ok_trailers(pairs: tuple[tuple[str, str | bytes], ...]) -> bytes:
    """Return the same of a call that ended well: what is told then, many calls are told."""
    return OK_TRAILERS + block_of(pairs)


def _value(name: str, value: str | bytes) -> bytes:
    if name.endswith("-bin"):
        data = value.encode() if isinstance(value, str) else value
        return base64.b64encode(data).rstrip(b"=")
    return value.encode() if isinstance(value, str) else value
