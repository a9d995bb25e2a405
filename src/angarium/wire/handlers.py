"""What one side of a connection does with what comes in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from angarium.errors import AngariumError
    from angarium.wire.connection import Connection
    from angarium.wire.frames import Frame
    from angarium.wire.serving import Request
    from angarium.wire.streams import Stream

MessageHandler: TypeAlias = "Callable[[Connection, Frame], None]"
"""Takes a one-way message. Called inside the read, so it must return at once."""

RequestHandler: TypeAlias = "Callable[[Request], Coroutine[Any, Any, None] | None]"
"""Serves a request.

One that knows the answer, or hands the request to somebody who will, answers through
`Request.answer` and returns None: no task is made. One that has to wait is a coroutine; the
connection runs it as a task of its own, and an error it raises is the answer.
"""

StreamHandler: TypeAlias = "Callable[[Stream], Coroutine[Any, Any, None]]"
"""Serves a stream, as a task of the connection's. When it returns, the stream is finished in both
directions; an error it raises ends the stream with that error on the other side."""

ClosedHandler: TypeAlias = "Callable[[Connection, AngariumError | None], None]"
"""Hears once that an opened connection is gone; None means that both sides said goodbye."""


class Toll(Protocol):
    """Counts what somebody uses of what it may."""

    def take_request(self) -> float:
        """Count a request; return for how long nothing more is to be taken from the other side.

        Raises `QuotaExceeded` if that would be too long.
        """
        ...


class Tolled(Protocol):
    """Somebody who may be counted; that can change at any time."""

    @property
    def toll(self) -> Toll | None:
        """What counts; None for who may use as much as there is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    """Handlers by operation. An operation that is missing is refused: as unsupported, or as not
    served to who has not said who it is."""

    messages: Mapping[int, MessageHandler] = field(default_factory=dict)
    requests: Mapping[int, RequestHandler] = field(default_factory=dict)
    streams: Mapping[int, StreamHandler] = field(default_factory=dict)
    on_closed: ClosedHandler | None = None
    proofs: tuple[str, ...] = ()
    """Ways in which the other side may prove who it is, and has to before anything else is served.
    Our greeting tells them; `Connection.admit` ends it."""
    on_unproven: Callable[[], object] | None = None
    """Told when the other side asks for something before it has proven who it is."""
    tolled: Tolled | None = None
    """Who asks, where requests are counted."""

    def and_requests(self, more: Mapping[int, RequestHandler]) -> Handlers:
        """Return these handlers, and some more for requests."""
        return replace(self, requests={**self.requests, **more}) if more else self


Welcome: TypeAlias = "Callable[[Connection], Handlers]"
"""Called when the handshake has been read and `Connection.peer` is known: returns what this peer
may do here, by its role, or raises the `AngariumError` with which it is refused."""
