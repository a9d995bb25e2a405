"""Sockets for HTTP/2: listening, writing what gathered, and looking at the clock for all.

What came in one piece is answered in one piece: whatever is written while the loop does one turn's
work goes out in one call at its end.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final, cast

from angarium.wire.flooding import gate_of, take_turn
from angarium.wire.http2.connection import Connection
from angarium.wire.http2.frames import ErrorCode
from angarium.wire.listening import HandshakeLimits
from angarium.wire.listening_server import ListeningServer
from angarium.wire.peer_certificates import certificate_shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.security.tls import Certificate
    from angarium.wire.http2.http2_limits import Http2Limits
    from angarium.wire.http2.listener import Listener
    from angarium.wire.listening import Context

FLUSH_BYTES: Final = 64 << 10
"""What is larger is sent without waiting for what else this turn brings."""

PONG_SECONDS: Final = 0.01
"""The answer to a ping waits for so long at the least, and twice as long at the most, for another
frame to go with, on a connection with requests under way. gRPC's libraries ping with every answer
that they get, to measure the connection, and send their next request along: a write of its own for
each such ping doubles the writes."""

TURN_BYTES: Final = 128 << 10
"""After a piece of this size others have their turn: uvloop would go on and read 32 such pieces
from one client, some 8 MB, before it looks at anybody else."""

TOO_MANY: Final = "too many connections; try another node"

LINGER_SECONDS: Final = 1.0
"""How long a connection that we end stays open for what was said last. Closing at once, with more
to read, would reset it, and the client might never see why."""


class Http2Socket(asyncio.Protocol):
    """One client's socket."""

    def __init__(self, server: Http2Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self.peer_certificate: Certificate | None = None
        """What the client has shown, verified; None without one, or without TLS."""
        self._will_flush = False
        self._is_reading = False
        self._is_waiting = False
        """For its next turn."""
        self.is_writable = True
        self.heard_at = self.busy_at = self._began_at = self._loop.time()
        """When it last said anything, and when it was last seen to have a call."""
        self._newest_seen = 0
        self._ends_at: float | None = None
        self.listener = server.listener_of(self)
        self.connection = Connection(self.listener, server.limits, varying=server.varying)
        self.connection.nuisances.is_proven = not server.asks_who
        self.connection.nuisances.unproven = gate_of(self._loop).unproven
        self.connection.nuisances.look(self._began_at)

    # --- what the loop calls --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin. Our greeting waits for the client's: whoever speaks HTTP/1 could not read it."""
        self._transport = cast("asyncio.Transport", transport)
        self.peer_certificate = certificate_shown(transport)
        self._transport.set_write_buffer_limits(high=self._server.limits.write_bytes_high)
        refusal = self._server.admit(self)
        if refusal:
            self.connection.fail(ErrorCode.ENHANCE_YOUR_CALM, refusal)
            self.flush()

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        now = self.heard_at = self._loop.time()
        connection = self.connection
        if connection.is_over:
            return
        if self._is_waiting:
            connection.keep(data)
            return
        if connection.nuisances.control:
            connection.nuisances.look(now, size=len(data))
            if connection.nuisances.is_flooding:
                connection.keep(data)
                self._wait_for_turn()
                return
        self._receive(data)
        if len(data) >= TURN_BYTES:
            self._wait_for_turn()

    def _receive(self, data: bytes = b"") -> None:
        connection = self.connection
        self._is_reading = True  # so that whatever is written meanwhile goes out once, below
        try:
            connection.receive(data, frames_max=self._server.limits.frames_per_turn)
        finally:
            self._is_reading = False
        # One that is leaving may have lost its last stream, with nothing to say about it.
        if len(connection.out) > connection.pongs or connection.is_leaving:
            self.flush()
        elif connection.pongs:
            self._server.flush_later(self)
        if connection.has_more and not connection.is_over:
            self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        """Read no further in this turn of the loop."""
        if not self._is_waiting and self._transport is not None:
            self._is_waiting = True
            self._transport.pause_reading()
            take_turn(self._loop, self.connection.nuisances, self._turn_came)

    def _turn_came(self) -> None:
        self._is_waiting = False
        self._go_on()

    def _go_on(self) -> None:
        """Take up what waits, unless the client does not read, and read on."""
        if self._transport is None or not self.is_writable or self._is_waiting:
            return
        if self.connection.has_more:
            self._receive()
        self._read_on()

    def _read_on(self) -> None:
        if self._transport is None or not self.is_writable or self._is_waiting:
            return
        nuisances = self.connection.nuisances
        nuisances.is_behind = False
        # What a flood sends while it is told that it is over is not worth reading.
        is_read = not (self.connection.is_over and nuisances.is_flooding)
        if is_read and not self._transport.is_closing():
            self._transport.resume_reading()

    def eof_received(self) -> bool:
        """Take the end of what a client says for its end."""
        return False

    def connection_lost(self, _: Exception | None) -> None:
        """End: whatever was being done for this client is given up."""
        self._transport = None
        self.is_writable = True
        self.connection.lost()
        self._server.left(self)

    def pause_writing(self) -> None:
        """Wait with further bytes, and read none: whoever does not read its answers may not ask."""
        self.is_writable = False
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on."""
        self.is_writable = True
        self._go_on()
        for stream in list(self.connection.streams.values()):
            if not stream.waiting:
                self.listener.drained(stream)

    # --- writing --------------------------------------------------------------------------------

    @property
    def unread_bytes(self) -> int:
        """What waits to be sent: for the client's windows, or for it to read what was sent."""
        waiting = self.connection.sender.waiting_bytes
        # While it is writable little is written and unsent: not worth asking for every call.
        if self.is_writable or self._transport is None:
            return waiting
        return waiting + self._transport.get_write_buffer_size()

    def flush_soon(self, size: int = 0) -> None:
        """Send what is in `out` when this turn's work is done, or now if `size`, what was written
        to it last, is much: whoever writes more is to see whether the client reads it."""
        if size > FLUSH_BYTES:
            self.flush()
        elif not self._will_flush and not self._is_reading:
            self._will_flush = True
            self._server.flush_soon(self)

    def flush(self) -> None:
        """Send what is in `out`, and close if that was the last of it."""
        self._will_flush = False
        out = self.connection.out
        if self._transport is not None and self._ends_at is None and out:
            self._transport.write(b"".join(out))
        out.clear()
        connection = self.connection
        connection.pongs = 0
        if connection.is_over or (connection.is_leaving and not connection.streams):
            self._end()

    def _end(self) -> None:
        if self._ends_at is not None:
            return
        self.connection.is_over = True
        self._ends_at = self._loop.time() + LINGER_SECONDS
        if self._transport is not None and self.connection.nuisances.is_flooding:
            self._transport.pause_reading()
        if self._transport is not None and self._transport.can_write_eof():
            # The client may have closed it a moment ago, which uvloop calls a RuntimeError.
            with contextlib.suppress(OSError, RuntimeError):
                self._transport.write_eof()
        elif self._transport is not None:
            self._transport.close()

    # --- ending ---------------------------------------------------------------------------------

    def leave(self) -> None:
        """Take no further request, and close when those under way are answered."""
        if not self.connection.is_leaving and not self.connection.is_over:
            self.connection.leave()
            self.flush()

    @property
    def is_ending(self) -> bool:
        """All is said, and the socket stays open only for it to be heard."""
        return self._ends_at is not None

    def abort(self) -> None:
        """Close at once, whatever was still to be sent."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def host(self) -> str:
        """The host that this talks to."""
        where = self._transport.get_extra_info("peername") if self._transport else None
        return str(where[0]) if where else ""

    @property
    def peer(self) -> str:
        """Whom this talks to, for logs."""
        where = self._transport.get_extra_info("peername") if self._transport else None
        return str(where)

    def note_calls(self, now: float) -> None:
        """Note whether there is a call, or was one since this was asked last."""
        newest = self.connection.newest_stream
        if self.connection.streams or newest != self._newest_seen:
            self.busy_at = now
        self._newest_seen = newest

    def look(self, now: float) -> None:
        """Do what is right at this moment: ping, close what is idle, cut what is gone."""
        limits, connection = self._server.limits, self.connection
        if not connection.nuisances.is_flooding:  # else what is read next tells
            connection.nuisances.look(now)
        self.note_calls(now)
        if self._ends_at is not None:
            if now >= self._ends_at:
                self.abort()
        elif not connection.is_greeted:
            if now - self._began_at > limits.handshake_seconds_max:
                self.abort()
        elif now - self.busy_at > limits.idle_seconds_max:
            self.leave()
        elif now - self.heard_at > 2 * limits.keepalive_interval_s:
            self.abort()
        elif now - self.heard_at > limits.keepalive_interval_s and connection.has_been_pinged_back:
            connection.ping()
            self.flush()


class Http2Server(ListeningServer):
    """Serves HTTP/2 on one address, on the running event loop."""

    def __init__(
        self,
        listener_of: Callable[[Http2Socket], Listener],
        limits: Http2Limits,
        *,
        varying: bytes = b"",
        asks_who: bool = False,
    ) -> None:
        """Prepare; `listener_of` makes what hears the requests of one connection, and `varying` is
        the header that requests differ in which are alike otherwise. With `asks_who` all frames of
        a connection are counted until one of its requests comes from a known principal."""
        super().__init__()
        self.listener_of = listener_of
        self.varying = varying
        self.asks_who = asks_who
        self.limits = limits
        self.sockets: set[Http2Socket] = set()
        self._soon: list[Http2Socket] = []
        """Those that send what they have when this turn's work is done."""
        self._late: set[Http2Socket] = set()
        self._later: set[Http2Socket] = set()
        """Those with answers to pings, and nothing else, to send: since the turn of the clock
        before the last one, and since the last one."""
        self._pong_timer: asyncio.TimerHandle | None = None

    async def start(self, *, host: str, port: int, tls: Context | None = None) -> int:
        """Listen; return the port. `OSError` if the address cannot be had."""
        limits = HandshakeLimits(handshake_timeout_s=self.limits.handshake_seconds_max)
        return await self._listen(
            lambda: Http2Socket(self), host=host, port=port, tls=tls, limits=limits
        )

    def _clients(self) -> set[Http2Socket]:
        return self.sockets

    @property
    def unread_bytes(self) -> int:
        """What waits to be sent, over all connections."""
        return sum([one.unread_bytes for one in self.sockets])

    def admit(self, socket: Http2Socket) -> str:
        """Count a new connection; return why it is one too many, empty if it is not.

        At the bound the connection that has been without a call the longest is closed, so idle
        connections keep no new client out. Those that were told to close earlier are cut first:
        waiting for them would let the number of connections grow beyond the bound. Where few
        descriptors are left, only a connection that has made no call yet is cut.
        """
        self.sockets.add(socket)
        if len(self.sockets) > self.limits.connections_max:
            staying = [one for one in self.sockets if not one.is_ending]
            for one in self.sockets.difference(staying):
                one.abort()
            if len(staying) > self.limits.connections_max:
                idle = [one for one in staying if not one.connection.streams and one is not socket]
                if not idle:
                    return TOO_MANY
                now = asyncio.get_running_loop().time()
                for one in idle:
                    one.note_calls(now)
                min(idle, key=lambda one: one.busy_at).leave()
        elif self.descriptors.are_short:
            others = (one for one in self.sockets if one is not socket)
            idle = [one for one in others if not one.connection.newest_stream]
            if not idle:
                return str(self.descriptors.refusal())
            min(idle, key=lambda one: one.busy_at).abort()
        return TOO_MANY if self.is_stopping else ""

    def left(self, socket: Http2Socket) -> None:
        """Count a connection no longer."""
        self.sockets.discard(socket)
        self._late.discard(socket)
        self._later.discard(socket)

    def flush_soon(self, socket: Http2Socket) -> None:
        """Send what a socket has when this turn's work is done."""
        if not self._soon:  # one callback for all
            asyncio.get_running_loop().call_soon(self._flush_all)
        self._soon.append(socket)

    def _flush_all(self) -> None:
        sockets, self._soon = self._soon, []
        for socket in sockets:
            socket.flush()

    def flush_later(self, socket: Http2Socket) -> None:
        """Send answers to pings: at once, or with what is sent next if that is to be soon."""
        if not socket.connection.streams:
            socket.flush()
            return
        self._late.discard(socket)  # what it had to send then has gone out
        self._later.add(socket)
        if self._pong_timer is None:  # one for all: a timer for each costs as much as a write
            loop = asyncio.get_running_loop()
            self._pong_timer = loop.call_later(PONG_SECONDS, self._flush_late)

    def _flush_late(self) -> None:
        late, self._late, self._later = self._late, self._later, set()
        for socket in late:
            if socket.connection.out:
                socket.flush()
        self._pong_timer = None
        if self._late:
            loop = asyncio.get_running_loop()
            self._pong_timer = loop.call_later(PONG_SECONDS, self._flush_late)

    def _look(self, now: float) -> None:
        for socket in list(self.sockets):
            socket.look(now)
