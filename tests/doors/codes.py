"""The code that each door tells when something is wrong, as a client of that door sees it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import grpc.aio
from tests.doors.speaking import http
from websockets.asyncio.client import connect

from angarium.client import Client
from angarium.errors import AngariumError
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from angarium.bench.cluster import BenchNode


async def wire_code(node: BenchNode, ask: Callable[[Client], Awaitable[object]]) -> str:
    async with Client(node.wire) as client:
        try:
            await ask(client)
        except AngariumError as error:
            return error.code
    return "nothing was wrong"


async def grpc_code(node: BenchNode, ask: Callable[[Any], Awaitable[object]]) -> str:
    async with grpc.aio.insecure_channel(node.grpc) as channel:
        try:
            await ask(BrokerStub(channel))
        except grpc.aio.AioRpcError as error:
            return str(dict(error.trailing_metadata() or ())["x-angarium-code"])
    return "nothing was wrong"


async def rest_code(
    node: BenchNode, method: str, target: str, body: object = None, **headers: str
) -> str:
    answer = await http(node.http, method, target, body, **headers)
    assert answer.status >= 400, answer.body
    assert answer.headers["x-angarium-code"] == answer.json["code"]
    return str(answer.json["code"])


async def graphql_code(node: BenchNode, query: str) -> str:
    answer = await http(node.http, "POST", "/graphql", {"query": query})
    return str(answer.json["errors"][0]["extensions"]["angariumCode"])


async def socket_code(node: BenchNode, **message: Any) -> str:
    async with connect(f"ws://{node.http}/v1/socket", proxy=None) as ws:
        await ws.send(json.dumps({"id": "x", **message}))
        return str(json.loads(await ws.recv())["code"])
