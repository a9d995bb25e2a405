"""Listening: accepts peers and clients up to a limit, and lets them go in good order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.errors import LimitExceeded
from angarium.wire.connection import Connection
from angarium.wire.descriptors import own_descriptors
from angarium.wire.errors import CertificateRefused
from angarium.wire.handshake import Role
from angarium.wire.listening import Cut, HandshakeLimits, listen, port_of
from angarium.wire.wire_limits import WireLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.wire.handlers import Handlers, Welcome
    from angarium.wire.handshake import Hello
    from angarium.wire.listening import Context, Listening


class Server:
    """One listening address and the connections accepted on it."""

    def __init__(
        self,
        *,
        greeting: Callable[[], Hello],
        welcome: Welcome,
        limits: WireLimits,
        on_foreign: Callable[[Hello], None] | None = None,
    ) -> None:
        self.connections: set[Connection] = set()
        """Everybody who is connected, those still in the handshake included."""
        self._newcomers: dict[Connection, None] = {}
        """In the order in which they came; those who have proven themselves are passed over."""
        self.refused = 0
        """Connections refused: `connections_max` was reached, the server is draining, or few
        descriptors are left."""
        self._greeting = greeting
        self._welcome = welcome
        self._on_foreign = on_foreign
        self._limits = limits
        self._listener: Listening | None = None
        self._descriptors = own_descriptors()
        self._is_draining = False
        self._certificate_required = False

    @classmethod
    async def listen(
        cls,
        *,
        host: str,
        port: int,
        greeting: Callable[[], Hello],
        welcome: Welcome,
        on_foreign: Callable[[Hello], None] | None = None,
        limits: WireLimits | None = None,
        tls: Context | None = None,
        certificate_required: bool = False,
    ) -> Server:
        """Listen on `host` and `port`; port 0 takes a free one.

        `greeting` is asked for each newcomer, because a node learns its cluster's id while it
        runs. `welcome` says what a newcomer may do, or refuses it; `on_foreign` hears who belongs
        to another cluster. With `tls`, which returns the newest context, nothing else is spoken;
        with `certificate_required` who has shown no certificate is told so and refused.
        """
        server = cls(
            greeting=greeting,
            welcome=welcome,
            limits=limits or WireLimits(),
            on_foreign=on_foreign,
        )
        server._certificate_required = certificate_required
        handshakes = HandshakeLimits(handshake_timeout_s=server._limits.handshake_timeout_s)
        server._listener = await listen(server._accept, host, port, tls=tls, limits=handshakes)
        return server

    @property
    def port(self) -> int:
        """The port listened on."""
        assert self._listener is not None
        return port_of(self._listener)

    async def drain(self, reason: str = "the node is stopping", *, timeout_s: float = 5.0) -> None:
        """Accept nobody new, let what is under way finish, and close every connection in time."""
        self._is_draining = True
        if self._listener is not None:
            self._listener.close()
        async with asyncio.TaskGroup() as farewells:
            for connection in list(self.connections):
                farewells.create_task(connection.close(reason, timeout_s=timeout_s))

    def _accept(self) -> asyncio.BaseProtocol:
        if self._is_draining or len(self.connections) >= 2 * self._limits.connections_max:
            self.refused += 1
            return Cut()
        is_full = len(self.connections) >= self._limits.connections_max
        is_short = self._descriptors.are_short
        if (is_full or is_short) and self._make_room():
            is_full = is_short = False
        welcome = self._welcome_shown
        if is_full:
            welcome = self._refuse
        elif is_short:
            welcome = self._welcome_node
        connection = Connection(
            hello=self._greeting(),
            welcome=welcome,
            limits=self._limits,
            is_dialled=False,
            on_gone=self._gone,
            on_foreign=self._on_foreign,
        )
        self.connections.add(connection)
        self._newcomers[connection] = None
        return connection

    def _make_room(self) -> bool:
        """Send away whoever has been here the longest without saying who it is; False if all have.

        So whoever opens connections and proves nothing shuts nobody out.
        """
        while self._newcomers:
            oldest = next(iter(self._newcomers))
            del self._newcomers[oldest]
            if oldest.is_newcomer:
                oldest.fail(LimitExceeded("connections_max", "others wait; say who you are sooner"))
                return True
        return False

    def _gone(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._newcomers.pop(connection, None)

    def _welcome_shown(self, connection: Connection) -> Handlers:
        # Not left to TLS, which would close without a word that a client could understand.
        if self._certificate_required and connection.peer_certificate is None:
            raise CertificateRefused(
                "this node asks clients for a certificate; give one (tls.cert and tls.key)"
            )
        return self._welcome(connection)

    def _welcome_node(self, connection: Connection) -> Handlers:
        """Let another node in where clients are refused: without it nothing can be committed."""
        if connection.peer.hello.role is Role.CLIENT:
            self.refused += 1
            raise self._descriptors.refusal()
        return self._welcome_shown(connection)

    def _refuse(self, connection: Connection) -> Handlers:
        del connection
        self.refused += 1
        raise LimitExceeded(
            "connections_max", f"{self._limits.connections_max} connections are open already"
        )
