"""Proving who one is, as frames."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from angarium.wire.handshake import AUTH_BYTES_MAX

BEARER: Final = "BEARER"
"""The way of tokens and JWTs, beside SASL's names of SCRAM."""


NOT_BY_CERTIFICATE: Final = b"-"
"""Instead of a token in a greeting: whatever certificate was shown, it does not say who this is. A
proof follows, or none."""


class AuthenticateHeader(msgspec.Struct, frozen=True, array_like=True):
    """One line of a login. By SCRAM it takes two of them, by a token one."""

    way: Annotated[str, msgspec.Meta(max_length=64)]
    """`BEARER`, or a mechanism of SCRAM; the same throughout a login."""
    line: Annotated[bytes, msgspec.Meta(max_length=AUTH_BYTES_MAX)]

    def __repr__(self) -> str:
        return f"AuthenticateHeader({self.way!r}, …)"


class AuthenticateAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The node's line, and whether the caller is served from here on."""

    line: bytes
    is_done: bool
