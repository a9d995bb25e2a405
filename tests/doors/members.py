"""Members of groups that take and acknowledge until they are cut off, through each listener.

Each is a coroutine to be cancelled: the connection then breaks off without a goodbye, in the middle
of whatever was going on.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import grpc.aio
from tests.doors.compat.calls import hermes_calls
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from angarium.client import Client
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.doors.compat.profiles_on import Listeners

    from angarium.bench.cluster import BenchNode


async def over_hermes(node: Listeners, topic: str, group: str) -> None:
    async with hermes_calls(node.hermes) as client:
        call = await client.subscribe(topic, group)
        try:
            while True:
                await call.write(client.ack(await call.read()))
        finally:
            call.cancel()


async def over_hermes_events(node: Listeners, topic: str, group: str) -> None:
    await _events(node.hermes_http, f"/subscribe?topic={topic}&group={group}")


async def over_hermes_graphql(node: Listeners, topic: str, group: str) -> None:
    await _graphql(f"ws://{node.hermes_http}/query", topic, group)


async def over_grpc(node: BenchNode, topic: str, group: str) -> None:
    async with grpc.aio.insecure_channel(node.grpc) as channel:
        stub: Any = BrokerStub(channel)
        call = stub.Subscribe()
        opening = pb.SubscribeRequest.Open(
            group=pb.Membership(group=group, topics=[topic]), credit=50
        )
        try:
            await call.write(pb.SubscribeRequest(open=opening))
            number = 0
            while True:
                told = await call.read()
                if told.ranges:
                    number += 1
                    done = pb.Settlement(
                        topic=topic, partition=told.partition, verb=pb.VERB_ACK, ranges=told.ranges
                    )
                    settle = pb.SubscribeRequest.Settle(number=number, settlements=[done])
                    await call.write(pb.SubscribeRequest(settle=settle))
        finally:
            call.cancel()


async def over_events(node: BenchNode, topic: str, group: str) -> None:
    await _events(node.http, f"/v1/topics/{topic}/stream?group={group}")


async def over_websocket(node: BenchNode, topic: str, group: str) -> None:
    async with connect(f"ws://{node.http}/v1/socket", proxy=None) as ws:
        try:
            wish = {"type": "consume", "id": "c", "group": group, "topics": [topic]}
            await ws.send(json.dumps(wish))
            while True:
                said = json.loads(await ws.recv())
                for one in said["records"] if said["type"] == "records" else ():
                    ranges = [one["offset"], one["offset"] + 1]
                    place = {"topic": topic, "partition": said["partition"], "ranges": ranges}
                    await ws.send(json.dumps({"type": "settle", "id": "c", **place}))
        finally:
            ws.transport.abort()


async def over_graphql(node: BenchNode, topic: str, group: str) -> None:
    await _graphql(f"ws://{node.http}/graphql", topic, group)


async def over_the_wire(node: BenchNode, topic: str, group: str) -> None:
    async with Client(node.wire) as client:
        await with_client(client, topic, group)


async def with_client(client: Client, topic: str, group: str) -> None:
    async with client.group(group).consume(topic) as records:
        async for record in records:
            await record.ack()


async def _events(address: str, target: str) -> None:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        while await reader.read(4_096):
            pass
    finally:
        writer.transport.abort()


async def _graphql(url: str, topic: str, group: str) -> None:
    query = f'subscription {{ subscribe(topic: "{topic}", groupId: "{group}") {{ payload }} }}'
    async with connect(url, subprotocols=[Subprotocol("graphql-ws")], proxy=None) as ws:
        try:
            await ws.send('{"type": "connection_init"}')
            await ws.send(json.dumps({"type": "start", "id": "1", "payload": {"query": query}}))
            while True:
                await ws.recv()
        finally:
            ws.transport.abort()


OF_PROFILES: dict[str, Callable[[Listeners, str, str], Awaitable[None]]] = {
    "hermes": over_hermes,
    "hermes-events": over_hermes_events,
    "hermes-graphql": over_hermes_graphql,
}
OF_DOORS: dict[str, Callable[[BenchNode, str, str], Awaitable[None]]] = {
    "grpc": over_grpc,
    "events": over_events,
    "websocket": over_websocket,
    "graphql": over_graphql,
    "wire": over_the_wire,
}
