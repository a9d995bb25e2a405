"""Listening, with or without TLS.

With TLS the handshake comes first: nobody who listens hears of a connection before it is done. How
many handshakes are under way is bounded and each has a deadline, so whoever opens connections and
says nothing, or nothing that is TLS, costs a socket for a few seconds. Each handshake takes the
context that is the newest then: certificates change without a restart, and connections stay.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast

from angarium.bounds import Bounds
from angarium.wire.descriptors import own_descriptors

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    Context: TypeAlias = "Callable[[], ssl.SSLContext]"
    """Returns the context for one more connection."""

BACKLOG: Final = 1_024

REST_S: Final = 0.2
"""Pause after a connection could not be accepted, as when no descriptor is free."""

TELL_EVERY_S: Final = 10.0
"""How often the log has that handshakes fail; anybody can make them fail."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandshakeLimits(Bounds):
    """The bounds of TLS handshakes of one listener."""

    handshakes_max: int = 512
    """Handshakes under way. One more is closed as soon as it comes."""

    handshake_timeout_s: float = 5.0
    """From the connection's start to the end of its handshake; then it is cut."""


class Listening(Protocol):
    """One listening address."""

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """What is listened on."""

    def close(self) -> None:
        """Accept nobody any more; connections stay."""


async def listen(
    accept: Callable[[], asyncio.BaseProtocol],
    host: str,
    port: int,
    *,
    tls: Context | None = None,
    limits: HandshakeLimits | None = None,
    backlog: int = BACKLOG,
) -> Listening:
    """Listen; `accept` makes what hears of a connection. `OSError` if the address cannot be had.

    With TLS `accept` is called when the handshake begins; one that fails is told to what it made
    by `connection_lost` alone.
    """
    loop = asyncio.get_running_loop()
    descriptors = own_descriptors()
    if tls is None:

        def accept_or_cut() -> asyncio.BaseProtocol:
            return Cut() if descriptors.are_gone else accept()

        return await loop.create_server(accept_or_cut, host, port, backlog=backlog)
    sockets = await _bound(host, port, backlog)
    return TlsListener(sockets, accept, tls, limits or HandshakeLimits())


def port_of(listening: Listening) -> int:
    """Return the port that is listened on."""
    port: int = listening.sockets[0].getsockname()[1]
    return port


class Cut(asyncio.Protocol):
    """Cuts a new connection: there is no room, or no time, even for a refusal."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).abort()


class TlsListener:
    """Accepts connections and takes them through their handshakes."""

    def __init__(
        self,
        sockets: tuple[socket.socket, ...],
        accept: Callable[[], asyncio.BaseProtocol],
        tls: Context,
        limits: HandshakeLimits,
    ) -> None:
        self.sockets = sockets
        self.refused = 0
        """Closed as soon as they came: too many handshakes were under way, or too few descriptors
        are left."""
        self.failed = 0
        """Handshakes that came to nothing."""
        self._accept = accept
        self._tls = tls
        self._limits = limits
        self._under_way: set[asyncio.Task[None]] = set()
        self._told_at = self._told_of_accepting_at = -TELL_EVERY_S
        self._descriptors = own_descriptors()
        self._loop = asyncio.get_running_loop()
        self._accepting = [self._loop.create_task(self._run(one)) for one in sockets]

    @property
    def under_way(self) -> int:
        """Handshakes that are not done."""
        return len(self._under_way)

    def close(self) -> None:
        """Accept nobody any more, and give up handshakes under way."""
        for task in (*self._accepting, *self._under_way):
            task.cancel()
        for one in self.sockets:
            self._loop.remove_reader(one)
            one.close()

    async def _run(self, listening: socket.socket) -> None:
        while True:
            try:
                one, address = await self._loop.sock_accept(listening)
            except OSError as error:
                self._tell_of_accepting(error)
                await asyncio.sleep(REST_S)
                continue
            if len(self._under_way) >= self._limits.handshakes_max or self._descriptors.are_gone:
                self.refused += 1
                one.close()
                continue
            task = self._loop.create_task(self._secure(one, address))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _secure(self, one: socket.socket, address: tuple[str, int]) -> None:
        made: list[asyncio.BaseProtocol] = []

        def accept() -> asyncio.BaseProtocol:
            made.append(self._accept())
            return made[0]

        try:
            await self._loop.connect_accepted_socket(
                accept,
                one,
                ssl=self._tls(),
                ssl_handshake_timeout=self._limits.handshake_timeout_s,
            )
        except Exception as error:
            # Whatever a stranger's bytes lead to ends their connection and nothing else.
            self.failed += 1
            self._tell(address, error)
            for protocol in made:
                protocol.connection_lost(error)
        except asyncio.CancelledError:
            for protocol in made:
                protocol.connection_lost(None)
            raise

    def _tell_of_accepting(self, error: OSError) -> None:
        now = self._loop.time()
        if now - self._told_of_accepting_at >= TELL_EVERY_S:
            self._told_of_accepting_at = now
            _log.warning("cannot accept", extra={"reason": error.strerror})

    def _tell(self, address: tuple[str, int], error: Exception) -> None:
        now = self._loop.time()
        if now - self._told_at >= TELL_EVERY_S:
            self._told_at = now
            reason = getattr(error, "reason", None) or str(error) or type(error).__name__
            _log.info(
                "a TLS handshake failed",
                extra={
                    "address": f"{address[0]}:{address[1]}",
                    "reason": reason,
                    "failed": self.failed,
                    "refused": self.refused,
                },
            )


async def _bound(host: str, port: int, backlog: int) -> tuple[socket.socket, ...]:
    """Return sockets that listen on every address of `host`."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, kind, number, _, address in dict.fromkeys(found):
            one = socket.socket(family, kind, number)
            sockets.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                one.bind(address)
            except OSError as error:
                what = f"{host}:{port}: {os.strerror(error.errno or 0).lower()}"
                raise OSError(error.errno, what) from None
            one.listen(backlog)
            one.setblocking(False)
    except OSError:
        for one in sockets:
            one.close()
        raise
    return tuple(sockets)
