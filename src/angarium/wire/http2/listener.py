"""Whom a connection tells what its client asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from angarium.wire.http2.request_heads import RequestHead
    from angarium.wire.http2.streams import Stream


class Listener(Protocol):
    """Whoever answers requests."""

    def begun(self, stream: Stream, head: RequestHead) -> None:
        """Hear of a new request. If it has no body, `ended` follows."""

    def received(self, stream: Stream, data: bytes, ends: bool) -> None:
        """Hear a piece of a request's body, and whether that makes it whole: if so, `ended` does
        not follow. `Connection.consumed` lets the client send more."""

    def ended(self, stream: Stream) -> None:
        """Hear that a request's body is whole."""

    def given_up(self, stream: Stream) -> None:
        """Hear that the client wants no answer any more, or may not have one."""

    def drained(self, stream: Stream) -> None:
        """Hear that nothing of the answer waits any more."""
