"""A link: the lasting relation to one peer, whether it is reachable or not.

It dials, and dials again with growing, jittered pauses, for as long as it runs. One-way messages
sent while it is down are dropped and counted: whatever repeats itself, as Raft does, needs no queue
that would only deliver stale news. Requests fail at once as `Unreachable`, which is definite.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING

from angarium.errors import AngariumError
from angarium.retrying import Backoff
from angarium.wire.dial import dial
from angarium.wire.errors import NotRegistered, StillJoining, Unreachable
from angarium.wire.wire_limits import WireLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.ids import Buffer, NodeId
    from angarium.security.tls import Dialling
    from angarium.wire.connection import Connection
    from angarium.wire.frames import Frame, Header
    from angarium.wire.handlers import Welcome
    from angarium.wire.handshake import Hello

_log = logging.getLogger(__name__)


class Link:
    """A connection to one address that comes back. Its owner runs `run` in a task group."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        greeting: Callable[[], Hello],
        welcome: Welcome | None = None,
        expected_node: NodeId | None = None,
        limits: WireLimits | None = None,
        backoff: Backoff | None = None,
        dial_timeout_s: float = 2.0,
        tls: Dialling | None = None,
        chance: Callable[[], float] = random.random,
        on_change: Callable[[Link], None] | None = None,
        on_refused: Callable[[AngariumError], None] | None = None,
    ) -> None:
        self.host, self.port = host, port
        self.last_error: AngariumError | None = None
        """Why it is down, or was last."""
        self._dropped_while_down = 0
        self._dropped_before = 0
        self._greeting = greeting
        self._welcome = welcome
        self._expected_node = expected_node
        self._limits = limits or WireLimits()
        self._backoff = backoff or Backoff()
        self._dial_timeout_s = dial_timeout_s
        self._tls = tls
        self._chance = chance
        self._on_change = on_change
        self._on_refused = on_refused
        self._connection: Connection | None = None
        self._stopping = asyncio.Event()

    @property
    def is_up(self) -> bool:
        """Tell whether messages sent now would leave."""
        return self._connection is not None and self._connection.is_open

    @property
    def connection(self) -> Connection | None:
        """The connection, while there is one."""
        return self._connection if self.is_up else None

    @property
    def messages_dropped(self) -> int:
        """One-way messages not sent: the link was down, or the peer did not keep up."""
        now = self._connection.messages_dropped if self._connection is not None else 0
        return self._dropped_while_down + self._dropped_before + now

    def send(self, operation: int, header: Header = b"", payload: Sequence[Buffer] = ()) -> bool:
        """Send a one-way message; False if it was dropped."""
        if self._connection is None:
            self._dropped_while_down += 1
            return False
        return self._connection.send(operation, header, payload)

    def flush(self) -> None:
        """Hand what was sent to the system now, instead of at the end of the loop's turn."""
        if self._connection is not None:
            self._connection.flush()

    async def request(
        self,
        operation: int,
        header: Header = b"",
        payload: Sequence[Buffer] = (),
        *,
        timeout_s: float,
    ) -> Frame:
        """Send a request; raises `Unreachable` at once while the link is down."""
        if self._connection is None:
            why = f": {self.last_error}" if self.last_error is not None else ""
            raise Unreachable(f"{self.host}:{self.port} is not connected{why}")
        return await self._connection.request(operation, header, payload, timeout_s=timeout_s)

    async def run(self) -> None:
        """Keep the link up until `stop`, or until cancelled."""
        attempt = 0
        while not self._stopping.is_set():
            lived_s = await self._dial_and_live()
            # A peer that accepts and hangs up again at once is not worth a quick return.
            attempt = 0 if lived_s > self._backoff.longest_s else attempt + 1
            await self._pause(self._backoff.pause_s(max(attempt - 1, 0), self._chance()))

    async def stop(self, reason: str = "the node is stopping", *, timeout_s: float = 5.0) -> None:
        """Close in good order and let `run` return."""
        self._stopping.set()
        if self._connection is not None:
            await self._connection.close(reason, timeout_s=timeout_s)

    async def _dial_and_live(self) -> float:
        """Dial and wait for the connection's end; return how many seconds it lived."""
        loop = asyncio.get_running_loop()
        try:
            connection = await dial(
                host=self.host,
                port=self.port,
                hello=self._greeting(),
                welcome=self._welcome,
                expected_node=self._expected_node,
                limits=self._limits,
                timeout_s=self._dial_timeout_s,
                tls=self._tls,
            )
        except AngariumError as error:
            if str(error) != str(self.last_error):
                is_usual = isinstance(error, StillJoining | NotRegistered)
                level = logging.DEBUG if is_usual else logging.WARNING
                _log.log(level, "%s:%s: %s", self.host, self.port, error)
            self._ended(error)
            return 0.0
        started = loop.time()
        self._connection = connection
        self._changed()
        try:
            if self._stopping.is_set():
                connection.fail(Unreachable("the node is stopping"))
            await connection.wait_closed()
        finally:
            self._ended(connection.error)
            self._dropped_before += connection.messages_dropped
            self._connection = None
            connection.fail(Unreachable("the link is no longer needed"))
            self._changed()
        return loop.time() - started

    def _ended(self, error: AngariumError | None) -> None:
        self.last_error = error
        if error is not None and self._on_refused is not None:
            self._on_refused(error)

    async def _pause(self, pause_s: float) -> None:
        try:
            async with asyncio.timeout(pause_s):
                await self._stopping.wait()
        except TimeoutError:
            return

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change(self)
