"""Something between two sides of a connection that can be shut: the bytes then pile up."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from tests.component.wire.running import CLIENT, LOCALHOST, listening

from angarium.wire import Connection, Handlers, WireLimits, dial

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Gate:
    """Passes bytes on while it is open. While it is shut each side seems not to read."""

    def __init__(self, onward: int) -> None:
        self._onward = onward
        self._is_open = {"to the server": asyncio.Event(), "to the client": asyncio.Event()}
        self.open()
        self._passing: set[asyncio.Task[None]] = set()

    def shut(self, *ways: str) -> None:
        """Let nothing pass, in either way unless one is named."""
        for way in ways or self._is_open:
            self._is_open[way].clear()

    def open(self) -> None:
        for is_open in self._is_open.values():
            is_open.set()

    async def let_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward_reader, onward_writer = await asyncio.open_connection(LOCALHOST, self._onward)
        for way, read, write in (
            ("to the server", reader, onward_writer),
            ("to the client", onward_reader, writer),
        ):
            passing = self._pass(read, write, self._is_open[way])
            self._passing.add(asyncio.create_task(passing))

    async def end(self) -> None:
        for task in self._passing:
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_open: asyncio.Event
    ) -> None:
        try:
            with suppress(ConnectionError):
                while piece := await reader.read(1 << 16):
                    await is_open.wait()
                    writer.write(piece)
                    await writer.drain()
        finally:
            writer.close()


@asynccontextmanager
async def gated(
    serves: Handlers, *, limits: WireLimits, client_limits: WireLimits
) -> AsyncIterator[tuple[Connection, Connection, Gate]]:
    """A client's side and a server's side of one connection, and the gate between them."""
    async with listening(serves, limits=limits) as server:
        gate = Gate(server.port)
        at_the_gate = await asyncio.start_server(gate.let_in, LOCALHOST, 0)
        try:
            port = at_the_gate.sockets[0].getsockname()[1]
            client = await dial(host=LOCALHOST, port=port, hello=CLIENT, limits=client_limits)
            try:
                (accepted,) = server.connections
                yield client, accepted, gate
            finally:
                gate.open()
                await client.close(timeout_s=2.0)
        finally:
            at_the_gate.close()
            await gate.end()
