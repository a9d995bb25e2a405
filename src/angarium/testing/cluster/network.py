"""The network between nodes, as a small proxy that can be cut: both ways or one way.

Every node is reached through a gate of its own, whose port it advertises. The first frame of a
connection says who dials, so a gate knows which two nodes each byte travels between. A cut is
silent: it holds bytes back and resets nothing, so the sender does not know, and they arrive when
the cut ends, if the connection lives that long. New connections across a cut are never answered.

It needs no privileges, and works wherever Python does.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.testing.reserved_port import HOST
from angarium.wire.decoder import FrameDecoder
from angarium.wire.frames import PREFIX, PREFIX_BYTES
from angarium.wire.handshake import greeting_in
from angarium.wire.wire_limits import FRAME_BYTES_LEAST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.ids import NodeId

_PIECE_BYTES: Final = 256 * 1024
_CLIENT: Final = 0
"""Whoever dials without being a node."""


class Gate:
    """The way to one node."""

    def __init__(self, network: Network) -> None:
        self.port = 0
        self.node: int = -1
        """The node behind it, once the network was told."""
        self._network = network
        self._target = 0
        self._server: asyncio.Server | None = None
        self._calls: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._take, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def lead_to(self, port: int) -> None:
        """Say where the node listens."""
        self._target = port

    async def close(self) -> None:
        """Cut everything off."""
        if self._server is not None:
            self._server.close()
        for call in tuple(self._calls):
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        call = asyncio.create_task(self._serve(reader, writer))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._join(reader, writer)
        finally:
            writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await first_frame(reader)
        caller = caller_of(first)
        await self._passable(caller, inward=True)
        onward_reader, onward = await asyncio.open_connection(HOST, self._target)
        try:
            onward.write(first)
            there = asyncio.create_task(self._pump(reader, onward, caller, inward=True))
            back = asyncio.create_task(self._pump(onward_reader, writer, caller, inward=False))
            try:
                # Whichever side hangs up first, the other hears of it, unless that is cut off.
                await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
                await self._passable(caller, inward=True)
                await self._passable(caller, inward=False)
            finally:
                there.cancel()
                back.cancel()
                await asyncio.gather(there, back, return_exceptions=True)
        finally:
            onward.transport.abort()

    async def _passable(self, caller: int, *, inward: bool) -> None:
        # Looked up each time: who is behind the gate is known only after the first connections.
        source, target = (caller, self.node) if inward else (self.node, caller)
        await self._network.passable(source, target)

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        caller: int,
        *,
        inward: bool,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(_PIECE_BYTES):
                await self._passable(caller, inward=inward)
                writer.write(data)
                await writer.drain()


class Network:
    """Which node can reach which."""

    def __init__(self) -> None:
        self._gates: dict[int, Gate] = {}
        self._cut: set[tuple[int, int]] = set()
        self._changed = asyncio.Event()

    async def open_gate(self) -> Gate:
        """Return a new way to a node."""
        return await self._opened(Gate(self))

    async def _opened(self, gate: Gate) -> Gate:
        await gate.open()
        self._gates[gate.port] = gate
        return gate

    def name_gate(self, port: int, node: NodeId) -> None:
        """Say which node a gate leads to."""
        self._gates[port].node = node

    async def close(self) -> None:
        """Close every gate."""
        await asyncio.gather(*(gate.close() for gate in self._gates.values()))

    # --- cutting ----------------------------------------------------------------------------

    def cut_off(self, node: NodeId, others: Iterable[NodeId]) -> None:
        """Let nothing pass between `node` and `others`, in either direction."""
        for other in others:
            if other != node:
                self._cut |= {(node, other), (other, node)}
        self._change()

    def cut_one_way(self, source: NodeId, target: NodeId) -> None:
        """Let nothing pass from `source` to `target`; the other direction stays."""
        self._cut.add((source, target))
        self._change()

    def heal(self) -> None:
        """Let everything pass."""
        self._cut.clear()
        self._change()

    async def passable(self, source: int, target: int) -> None:
        """Wait until bytes may pass from `source` to `target`."""
        while (source, target) in self._cut:
            await self._changed.wait()

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


async def first_frame(reader: asyncio.StreamReader) -> bytes:
    """Return the first frame of a connection, or as much of it as a greeting has at most."""
    prefix = await reader.readexactly(PREFIX_BYTES)
    length: int = PREFIX.unpack(prefix)[0]
    rest = min(max(length - PREFIX_BYTES, 0), FRAME_BYTES_LEAST)
    return prefix + await reader.readexactly(rest)


def caller_of(first: bytes) -> int:
    """Return the node that sent a greeting; a client, or whoever sent something else, is none."""
    decoder = FrameDecoder(frame_bytes_max=FRAME_BYTES_LEAST, header_bytes_max=FRAME_BYTES_LEAST)
    frames = decoder.feed(first)
    return greeting_in(frames[0]).node if frames else _CLIENT
