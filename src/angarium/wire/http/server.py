"""Listening, counting, and looking at the clock for all connections."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Protocol

from angarium.closing import Closings
from angarium.errors import LimitExceeded
from angarium.wire.http.connection import Connection, State
from angarium.wire.http.known_heads import KnownHeads
from angarium.wire.listening_server import ListeningServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.wire.http.http_limits import HttpLimits
    from angarium.wire.http.messages import Answer, Request, Response
    from angarium.wire.listening import Context


class Problem(Protocol):
    """Turns errors into answers."""

    def __call__(self, error: Exception, /, *, status: int | None = None) -> Response:
        """Return what to tell about `error`, with another status than its own if one is given."""


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
    ) -> None:
        """Prepare; `on_answered` is told the status of each answer and how many seconds it took.

        `closings` is what handlers close with; the server stops when it is all closed.
        """
        super().__init__()
        self.on_answered = on_answered
        self.handler = handler
        self.problem = problem
        self.limits = limits
        self.date = b""
        """The Date header, as of this second."""
        self.requests = 0
        """Under way."""
        self.requests_total = 0
        self.connections: set[Connection] = set()
        self.streams: set[Connection] = set()
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

    def admit(self, connection: Connection) -> bool:
        """Count a new connection; False if it is one too many.

        At the bound the one that has waited for its next request the longest makes room: whoever
        opens connections and says nothing shuts nobody out.
        """
        self.connections.add(connection)
        if len(self.connections) > self.limits.connections_max:
            idle = [one for one in self.connections if one.state is State.IDLE]
            idle.remove(connection)
            if not idle:
                return False
            min(idle, key=lambda one: one.deadline).close()
        return not self.is_stopping

    def left(self, connection: Connection) -> None:
        """Count a connection no longer, nor what it was doing."""
        self.connections.discard(connection)
        self.streams.discard(connection)

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

    # --- the clock ------------------------------------------------------------------------------

    def _look(self, now: float) -> None:
        self._note_date()
        for connection in [one for one in self.connections if one.deadline < now]:
            if connection.state is not State.GIVEN:
                connection.overdue()

    def _note_date(self) -> None:
        self.date = f"Date: {formatdate(time.time(), usegmt=True)}\r\n".encode()
