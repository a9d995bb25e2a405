"""The connections of a client: one per node, dialled when it is needed, by one caller for all."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.client.shared import heard, shared
from angarium.errors import AngariumError, Unauthenticated
from angarium.security.tls import client_tls
from angarium.wire import ConnectionLost, Handlers, Hello, Role, Unreachable, dial

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.client.addresses import Address
    from angarium.client.login import Login
    from angarium.client.settings import ClientSettings
    from angarium.wire import Connection

REST_S: Final = 0.1
"""An address that just refused is not dialled again for so long; it counts as unreachable."""

REMEMBERED_S: Final = 60.0
"""When an address refused last is remembered for so long at the least."""


class Pool:
    """Open connections by address. A lost one is dialled again when it is needed next."""

    def __init__(self, settings: ClientSettings, login: Login) -> None:
        self.cluster = ""
        """The cluster's id, once a node has told it. Nodes of another cluster are refused then."""
        self.on_change: Callable[[], None] = _nobody_hears
        """Called when a connection has come or gone."""
        self.settings = settings
        self._login = login
        self._tls = client_tls(settings.tls)
        self._open: dict[Address, Connection] = {}
        self._dialling: dict[Address, asyncio.Task[Connection]] = {}
        self._refused: dict[Address, tuple[float, AngariumError]] = {}
        self._is_closed = False

    def open_connection(self, address: Address) -> Connection | None:
        """Return the connection to `address` if there is an open one."""
        connection = self._open.get(address)
        return connection if connection is not None and connection.is_open else None

    def open_addresses(self) -> list[Address]:
        """Return where there are open connections, the oldest first."""
        return [address for address, connection in self._open.items() if connection.is_open]

    def refused_at(self, address: Address) -> float:
        """Return when an address refused last, in the event loop's time; 0 if it did not."""
        refused = self._refused.get(address)
        return 0.0 if refused is None else refused[0]

    async def connection(self, address: Address) -> Connection:
        """Return an open connection; raises `Unreachable`, or why the node refuses us."""
        connection = self.open_connection(address)
        if connection is not None:
            return connection
        if self._is_closed:
            raise Unreachable("the client is closed")
        dialling = self._dialling.get(address)
        if dialling is None:
            self._check_rest(address)
            dialling = asyncio.get_running_loop().create_task(self._dial(address))
            self._dialling[address] = dialling
            dialling.add_done_callback(heard)
        return await shared(dialling)

    def cut(self) -> None:
        """Cut every connection without a word, as a crash would; for tests and benchmarks."""
        for connection in self._open.values():
            connection.abort()

    async def close(self, *, timeout_s: float) -> None:
        """Say goodbye to every node."""
        self._is_closed = True
        dialling = list(self._dialling.values())
        for task in dialling:
            task.cancel()
        if dialling:
            await asyncio.wait(dialling)
        connections, self._open = self._open, {}
        async with asyncio.TaskGroup() as farewells:
            for connection in connections.values():
                farewells.create_task(
                    connection.close("the client is closing", timeout_s=timeout_s)
                )

    async def _dial(self, address: Address) -> Connection:
        try:
            connection = await dial(
                host=address.host,
                port=address.port,
                welcome=lambda _: Handlers(on_closed=lambda *_: self.on_change()),
                hello=Hello(role=Role.CLIENT, cluster=self.cluster, auth=self._login.greeting()),
                limits=self.settings.wire,
                timeout_s=self.settings.dial_timeout_s,
                tls=self._tls,
            )
            await self._prove(connection)
        except AngariumError as error:
            self._note_refusal(address, error)
            raise
        finally:
            del self._dialling[address]
        self._refused.pop(address, None)
        self._note_cluster(connection)
        self._open = {where: one for where, one in self._open.items() if one.is_open}
        self._open[address] = connection
        self.on_change()
        return connection

    def _note_refusal(self, address: Address, error: AngariumError) -> None:
        now = asyncio.get_running_loop().time()
        # Nodes come and go under ever new addresses: those of old are not kept for ever.
        self._refused = {
            at: known for at, known in self._refused.items() if known[0] > now - REMEMBERED_S
        }
        self._refused[address] = (now, error)

    def _note_cluster(self, connection: Connection) -> None:
        """Keep to the cluster of the first node, and to what becomes of it if it is recovered."""
        theirs = connection.peer.hello
        if not self.cluster or theirs.successor_of(self.cluster) is not None:
            self.cluster = theirs.cluster
            for one in self._open.values():
                if one.peer.hello.cluster not in ("", theirs.cluster):
                    # A node of what the cluster was: what it says does not count any more.
                    one.fail(Unreachable("the cluster was recovered without this node"))

    async def _prove(self, connection: Connection) -> None:
        try:
            # The node may be busy with other people's guesses, and waits for nobody itself.
            await self._login.prove(connection, timeout_s=2 * self.settings.dial_timeout_s)
        except BaseException as error:
            connection.fail(Unreachable("the login failed"))
            # The node closes behind a refusal: which of the two comes first says nothing more.
            if isinstance(error, ConnectionLost) and isinstance(connection.error, Unauthenticated):
                raise connection.error from None
            raise

    def _check_rest(self, address: Address) -> None:
        refused = self._refused.get(address)
        if refused is not None:
            since, error = refused
            if asyncio.get_running_loop().time() < since + REST_S:
                if isinstance(error, Unauthenticated):
                    raise Unauthenticated(str(error))  # it was reached, and says the same again
                raise Unreachable(f"{address} was tried a moment ago: {error}")


def _nobody_hears() -> None:
    pass
