"""The network of a test cluster: it passes bytes on, holds them back, and knows who dials."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from angarium.ids import NodeId
from angarium.testing.cluster.network import Network
from angarium.wire import Handlers, Hello, Request, Role, Server, dial

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from angarium.wire import Connection

ONE, TWO = NodeId(1), NodeId(2)
ECHO = 99


async def echo(request: Request) -> None:
    request.answer(b"", [bytes(request.payload)])


@asynccontextmanager
async def a_call_from_one_to_two(
    *, named: bool = True
) -> AsyncIterator[tuple[Network, Connection, int]]:
    network = Network()
    server = await Server.listen(
        host="127.0.0.1",
        port=0,
        greeting=lambda: Hello(role=Role.PEER, cluster="c", node=TWO),
        welcome=lambda _: Handlers(requests={ECHO: echo}),
    )
    gate = await network.open_gate()
    gate.lead_to(server.port)
    if named:
        network.name_gate(gate.port, TWO)
    hello = Hello(role=Role.PEER, cluster="c", node=ONE)
    connection = await dial(host="127.0.0.1", port=gate.port, hello=hello)
    try:
        yield network, connection, gate.port
    finally:
        await connection.close(timeout_s=0.5)
        await network.close()
        await server.drain(timeout_s=0.5)


async def is_answered(connection: Connection, word: bytes, *, within_s: float) -> bool:
    asking = asyncio.ensure_future(connection.request(ECHO, b"", [word], timeout_s=60.0))
    done, _ = await asyncio.wait([asking], timeout=within_s)
    if not done:
        asking.cancel()
        return False
    return bool(asking.result().payload == word)


def test_bytes_pass_until_the_network_is_cut_and_again_when_it_heals() -> None:
    async def scenario() -> None:
        async with a_call_from_one_to_two() as (network, connection, _):
            assert await is_answered(connection, b"before", within_s=60.0)
            network.cut_off(ONE, [TWO])
            held = asyncio.ensure_future(connection.request(ECHO, b"", [b"held"], timeout_s=60.0))
            assert not await is_answered(connection, b"meanwhile", within_s=0.1)
            network.heal()
            assert bytes((await held).payload) == b"held", "it was held back, not lost"

    asyncio.run(scenario())


def test_a_connection_made_before_its_gate_was_named_is_cut_as_well() -> None:
    async def scenario() -> None:
        async with a_call_from_one_to_two(named=False) as (network, connection, port):
            assert await is_answered(connection, b"before", within_s=60.0)
            network.name_gate(port, TWO)
            network.cut_off(ONE, [TWO])
            assert not await is_answered(connection, b"meanwhile", within_s=0.1)
            network.heal()

    asyncio.run(scenario())


def test_a_cut_one_way_stops_the_answers_only() -> None:
    async def scenario() -> None:
        async with a_call_from_one_to_two() as (network, connection, _):
            network.cut_one_way(TWO, ONE)
            assert not await is_answered(connection, b"heard, not answered", within_s=0.1)
            network.heal()
            assert await is_answered(connection, b"after", within_s=60.0)

    asyncio.run(scenario())


def test_nodes_that_are_not_cut_off_still_get_through() -> None:
    async def scenario() -> None:
        async with a_call_from_one_to_two() as (network, _, port):
            network.cut_off(ONE, [TWO])
            hello = Hello(role=Role.PEER, cluster="c", node=3)
            third = await dial(host="127.0.0.1", port=port, hello=hello)
            assert await is_answered(third, b"from three", within_s=60.0)
            await third.close(timeout_s=0.5)

    asyncio.run(scenario())
