"""One process of flooding connections, or a sink for them.

python -m tests.floods.flooder flood   reads an order a line, as JSON, and answers each with JSON
python -m tests.floods.flooder sink    listens, reads at the pace it is told, and discards

A flooding connection says its opening, waits for the answers, and then sends blocks of frames for
as long as it is told to. It reads what is answered. When it is cut, it connects again, at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from typing import Any, Final

import uvloop
from tests.floods.frames import Cell, Proof, block, opening

from angarium.wire.flooding import Door

CONNECTIONS: Final = 8
BYTES_AHEAD: Final = 64 << 10
"""What waits in a flooding process for the socket to take it."""

READ_BYTES: Final = 64 << 10
SINK_LOOK_S: Final = 0.01


class Flood:
    """Some connections that flood, and what they got through."""

    def __init__(self, port: int, cell: Cell, proof: Proof, *, to_sink: bool) -> None:
        self.bytes = self.connections = 0
        self._port = port
        self._cell = cell
        self._proof = proof
        self._to_sink = to_sink

    async def run(self, seconds: float) -> dict[str, int]:
        """Flood for so long; return how many bytes were taken, over how many connections."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(self._again_and_again() for _ in range(CONNECTIONS)))
        return {"bytes": self.bytes, "connections": self.connections}

    async def _again_and_again(self) -> None:
        while True:
            with contextlib.suppress(OSError, EOFError):
                await self._one()
            await asyncio.sleep(0)

    async def _one(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        self.connections += 1
        reading: asyncio.Task[None] | None = None
        try:
            writer.transport.set_write_buffer_limits(high=BYTES_AHEAD)
            for piece in opening(self._cell, self._proof):
                writer.write(piece)
                if not self._to_sink:
                    await _answered(reader)
            reading = asyncio.ensure_future(_discard(reader))
            number = 0
            while not reading.done():
                data = block(self._cell, number)
                writer.write(data)
                await writer.drain()
                # A socket that takes all gives no other task its turn.
                await asyncio.sleep(0)
                self.bytes += len(data)
                number += 1
        finally:
            writer.transport.abort()
            if reading is not None:
                reading.cancel()


async def _answered(reader: asyncio.StreamReader) -> None:
    async with asyncio.timeout(10):
        if not await reader.read(READ_BYTES):
            raise EOFError


async def _discard(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(OSError):
        while await reader.read(READ_BYTES):
            pass


class Sink:
    """Reads what comes, no faster than it is told, and does nothing."""

    def __init__(self) -> None:
        self.bytes_per_second = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                began = loop.time()
                data = await reader.read(READ_BYTES)
                if not data:
                    return
                share = max(self.bytes_per_second / CONNECTIONS, 1.0)
                await asyncio.sleep(max(began + len(data) / share - loop.time(), 0.0))
        except OSError:
            pass
        finally:
            writer.transport.abort()


async def orders() -> Any:
    """Yield what comes over standard input, a line of JSON each."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield json.loads(line)


def tell(said: object) -> None:
    """Answer an order."""
    print(json.dumps(said), flush=True)


async def flood() -> None:
    """Flood as ordered."""
    tell("ready")
    async for one in orders():
        cell = Cell(Door(one["door"]), one["kind"], one["is_proven"])
        proof = Proof(one["basic"], one["token"])
        flooding = Flood(one["port"], cell, proof, to_sink=one["to_sink"])
        tell(await flooding.run(one["seconds"]))


async def sink() -> None:
    """Be a sink."""
    it = Sink()
    server = await asyncio.start_server(it.serve, "127.0.0.1", 0, limit=READ_BYTES)
    tell(server.sockets[0].getsockname()[1])
    async for one in orders():
        it.bytes_per_second = float(one)
        tell("done")


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(sink() if sys.argv[1:] == ["sink"] else flood())
