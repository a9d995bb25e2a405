"""Listening, counting, and looking at the clock for all connections."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from angarium.closing import Closings
from angarium.errors import LimitExceeded
from angarium.wire.http.connection import Connection, State
from angarium.wire.http.dates import http_date
from angarium.wire.http.known_heads import KnownHeads
from angarium.wire.listening_server import ListeningServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from angarium.wire.http.http_limits import HttpLimits
    from angarium.wire.http.messages import Answer, Request, Response
    from angarium.wire.listening import Context


class Problem(Protocol):
    """Turns errors into answers."""

    def __call__(self, error: Exception, /, *, status: int | None = None) -> Response:
        """Return what to tell about `error`, with another status than its own if one is given."""


async def _unchecked(_: str | None, __: Connection) -> None:
    """Take every client for known."""


class HttpServer(ListeningServer):
    """Serves HTTP/1.1 on one address, on the running event loop."""

    def __init__(
        self,
        handler: Callable[[Request], Answer],
        problem: Problem,
        limits: HttpLimits,
        *,
        on_answered: Callable[[int, float], None] | None = None,
        closings: Closings | None = None,
        is_known: Callable[[str | None, Connection], bool] | None = None,
        prove: Callable[[str | None, Connection], Awaitable[object]] = _unchecked,
        served_by: Callable[[], Iterable[tuple[str, str]]] = tuple,
    ) -> None:
        """Prepare; `on_answered` is told the status of each answer and how many seconds it took.

        `closings` is what handlers close with; the server stops when it is all closed. `is_known`
        tells at once whether a request with this `Authorization`, or on this connection, comes from
        somebody known, and raises `Unauthenticated` for who brings nothing; it is asked before a
        body is read. Without it everybody is. `prove` checks the same with as
        much work as that takes, and raises why it fails. `served_by` returns headers that every
        answer has; it is asked every second.
        """
        self._served_by = served_by
        super().__init__()
        self.on_answered = on_answered
        self.handler = handler
        self.problem = problem
        self.limits = limits
        self.date = b""
        """The Date header, as of this second, and what every answer says beside it."""
        self.requests = 0
        """Under way."""
        self.requests_total = 0
        self.connections: set[Connection] = set()
        self.streams: set[Connection] = set()
        self.guests: dict[Connection, None] = {}
        """WebSockets of who has not said yet who it is, in the order in which they came."""
        self.unread: dict[Connection, tuple[int, float]] = {}
        """Clients that do not read what was sent to them, with how many bytes wait and since
        when."""
        self.is_known = is_known
        self.prove = prove
        self.unproven_bytes = 0
        """Of bodies that are kept for requests whose proof was not looked at yet."""
        self.heads = KnownHeads()
        self.closings = closings or Closings()

    async def start(self, *, host: str, port: int, tls: Context | None = None) -> int:
        """Listen; return the port. `OSError` if the address cannot be had."""
        self._note_date()
        return await self._listen(lambda: Connection(self), host=host, port=port, tls=tls)

    async def stop(self, grace_s: float) -> None:
        """Close: streams end at once, requests under way have `grace_s`."""
        await super().stop(grace_s)
        await self.closings.drained()

    def _clients(self) -> set[Connection]:
        return self.connections

    # --- what connections ask -------------------------------------------------------------------

    def admit(self, connection: Connection) -> LimitExceeded | None:
        """Count a new connection; return why it is one too many, if it is.

        At the bound the connection that has waited for its next request the longest is closed, so
        idle connections keep no new client out. Where few descriptors are left, only one that has
        sent no request yet is closed.
        """
        self.connections.add(connection)
        is_full = len(self.connections) > self.limits.connections_max
        if is_full or self.descriptors.are_short:
            idle = [one for one in self.connections if one.state is State.IDLE]
            idle.remove(connection)
            if not is_full:
                idle = [one for one in idle if not one.has_asked]
            if not idle:
                return _too_many() if is_full else self.descriptors.refusal()
            min(idle, key=lambda one: one.deadline).close()
        return _too_many() if self.is_stopping else None

    def left(self, connection: Connection) -> None:
        """Count a connection no longer, nor what it was doing."""
        self.connections.discard(connection)
        self.streams.discard(connection)
        self.guests.pop(connection, None)
        self.unread.pop(connection, None)

    def begin_request(self) -> bool:
        """Count a request; False if it is one too many. `end_request` follows in either case."""
        self.requests += 1
        self.requests_total += 1
        return self.requests <= self.limits.requests_max

    def end_request(self) -> None:
        """Count it no longer."""
        self.requests -= 1

    def begin_stream(self, connection: Connection) -> None:
        """Count a stream; raises `LimitExceeded`."""
        if len(self.streams) >= self.limits.streams_max:
            raise LimitExceeded("streams_max", "too many streams; try another node")
        self.streams.add(connection)

    def begin_guest(self, connection: Connection) -> None:
        """Count a WebSocket whose client has still to say who it is; the oldest makes room."""
        while len(self.guests) >= self.limits.guests_max:
            oldest = next(iter(self.guests))
            del self.guests[oldest]
            oldest.send_away()
        self.guests[connection] = None

    def admit_guest(self, connection: Connection) -> None:
        """Count it as a stream from now on; raises `LimitExceeded`."""
        self.begin_stream(connection)
        self.guests.pop(connection, None)

    def take_unproven(self, size: int) -> None:
        """Count bytes of a body whose sender is not known; raises `LimitExceeded`."""
        if self.unproven_bytes + size > self.limits.unproven_bytes_max:
            raise LimitExceeded(
                "unproven_bytes_max", "too much waits here of who is not known yet", retry_after=1.0
            )
        self.unproven_bytes += size

    # --- the clock ------------------------------------------------------------------------------

    def _look(self, now: float) -> None:
        self._note_date()
        for connection in [one for one in self.connections if one.deadline < now]:
            if connection.state is not State.GIVEN:
                connection.overdue()
        self._cut_unread(now)

    def _cut_unread(self, now: float) -> None:
        """Cut clients that have read nothing for too long, whatever they send meanwhile."""
        for connection, (size, since) in list(self.unread.items()):
            left = connection.unread_bytes
            if left < size:
                self.unread[connection] = (left, now)
            elif now - since > self.limits.stalled_seconds_max:
                connection.abort()

    def _note_date(self) -> None:
        headers = (("Date", http_date(time.time())), *self._served_by())
        self.date = "".join(f"{name}: {value}\r\n" for name, value in headers).encode("latin-1")


def _too_many() -> LimitExceeded:
    return LimitExceeded("connections_max", "too many connections; try another node")
