"""Every declared kind of frame, sent without end, ends its connection at each door over a socket.

Others are answered meanwhile. `make floods` measures what a flood costs others.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.accounts import AccountsInMemory, account, authenticator
from tests.component.doors.http.test_guests_and_bodies import limited
from tests.component.wire.running import CLIENT, LOCALHOST, NODE
from tests.floods.ending import flooded_until_cut
from tests.floods.frames import Cell, Proof, cells
from tests.on_a_loop import run
from tests.unit.doors.grpc.memory_broker import MemoryBroker

from angarium.doors.callers import Callers
from angarium.doors.grpc import GrpcDoor, GrpcLimits
from angarium.wire import Handlers, Hello, Server, WireLimits, dial
from angarium.wire.flooding import Door
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from angarium.wire import Connection, Request
    from angarium.wire.http2 import Http2Limits
    from angarium.wire.streams import Stream

FRAMES_MAX = 1_000
"""The bound of these tests: the real one takes seconds to reach."""

PROOF = Proof("alice:right", "known")
LIMITED: dict[str, Any] = {"control_frames_max": FRAMES_MAX}


class Limits(GrpcLimits):
    """Those of the gRPC door, with fewer frames."""

    @property
    def http2(self) -> Http2Limits:
        return replace(super().http2, **LIMITED)


@asynccontextmanager
async def http() -> AsyncIterator[tuple[int, Any]]:
    async with limited(**LIMITED) as it:

        async def asks() -> bool:
            return (await it.ask("GET", "/healthz")).status == 200

        yield it.port, asks


@asynccontextmanager
async def grpc() -> AsyncIterator[tuple[int, Any]]:
    accounts = AccountsInMemory(account("alice", "right"))
    callers: Any = Callers(authenticator(accounts), lambda _: MemoryBroker())
    door = GrpcDoor(callers, host=LOCALHOST, port=0, limits=Limits())
    port = await door.start()

    async def asks() -> bool:
        _, writer = await asyncio.open_connection(LOCALHOST, port)
        writer.close()
        return True

    try:
        yield port, asks
    finally:
        await door.stop(grace_s=0)


@asynccontextmanager
async def wire() -> AsyncIterator[tuple[int, Any]]:
    async def until_cut(stream: Stream) -> None:
        async for _ in stream:
            pass

    def answer(request: Request) -> None:
        request.answer(b"here")

    known = Handlers(requests={1: answer}, streams={int(Operation.SUBSCRIBE): until_cut})

    def welcome(connection: Connection) -> Handlers:
        return known if connection.peer.hello.auth else Handlers(proofs=("bearer",))

    server = await Server.listen(
        host=LOCALHOST,
        port=0,
        greeting=lambda: NODE,
        welcome=welcome,
        limits=WireLimits(**LIMITED),
    )
    hello = Hello(role=CLIENT.role, auth=PROOF.token.encode())
    other = await dial(host=LOCALHOST, port=server.port, hello=hello)

    async def asks() -> bool:
        return (await other.request(1, timeout_s=30)).header == b"here"

    try:
        yield server.port, asks
    finally:
        other.abort()
        await server.drain(timeout_s=2.0)


DOORS = {Door.HTTP: http, Door.WEBSOCKET: http, Door.GRPC: grpc, Door.WIRE: wire}


@pytest.mark.parametrize("cell", list(cells()), ids=lambda one: one.name)
def test_a_flood_ends_its_connection_and_others_are_answered(cell: Cell) -> None:
    async def story() -> None:
        async with DOORS[cell.door]() as (port, asks):
            flooding = asyncio.ensure_future(flooded_until_cut(port, cell, PROOF))
            while not flooding.done():
                assert await asks()
                await asyncio.wait((flooding,), timeout=0.1)
            await flooding

    run(story())
