"""A flood over one connection, until the other side ends it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from tests.floods.frames import FRAMES_IN_BLOCK, block, opening

if TYPE_CHECKING:
    from tests.floods.frames import Cell, Proof


async def flooded_until_cut(port: int, cell: Cell, proof: Proof) -> int:
    """Flood until the connection ends; return how many frames were sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.transport.set_write_buffer_limits(high=4 << 10)
    for piece in opening(cell, proof):
        writer.write(piece)
        assert await reader.read(1 << 16)
    reading = asyncio.ensure_future(_read_all(reader))
    blocks = 0
    with contextlib.suppress(OSError):
        while not reading.done():
            writer.write(block(cell, blocks))
            await writer.drain()
            await asyncio.sleep(0)
            blocks += 1
    await reading
    writer.transport.abort()
    return blocks * FRAMES_IN_BLOCK


async def _read_all(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(OSError):
        while await reader.read(1 << 16):
            pass
