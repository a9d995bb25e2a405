"""Publishing and reading through each door, as a client of that door would."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc.aio
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from angarium.client import Client
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from angarium.bench.cluster import BenchNode


class Item(NamedTuple):
    """What is published, and what has to come out."""

    value: bytes
    key: bytes | None = None


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def http(
    address: str,
    method: str,
    target: str,
    body: object = None,
    *,
    kind: str = "application/json",
    **headers: str,
) -> Answer:
    """Send one request on a connection of its own."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 26)
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {target} HTTP/1.1", f"Host: {address}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(data)}"]
    writer.write("\r\n".join([*lines, "", ""]).encode() + data)
    head, _, rest = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    first, *others = head.decode("latin-1").split("\r\n")
    named = dict(one.split(": ", 1) for one in others)
    found = {name.lower(): value for name, value in named.items()}
    return Answer(int(first.split(" ")[1]), found, rest)


# --- publishing ----------------------------------------------------------------------------------


async def publish_wire(node: BenchNode, topic: str, items: Sequence[Item]) -> None:
    async with Client(node.wire) as client:
        for item in items:
            await client.publish(topic, item.value, key=item.key)


async def publish_grpc(node: BenchNode, topic: str, items: Sequence[Item]) -> None:
    async with grpc.aio.insecure_channel(node.grpc) as channel:
        stub: Any = BrokerStub(channel)
        for item in items:
            record = pb.NewRecord(value=item.value, key=item.key)
            await stub.Publish(pb.PublishRequest(topic=topic, record=record))


def as_json(item: Item) -> dict[str, str]:
    shown = {"value_base64": base64.b64encode(item.value).decode()}
    if item.key is not None:
        shown["key_base64"] = base64.b64encode(item.key).decode()
    return shown


async def publish_rest(node: BenchNode, topic: str, items: Sequence[Item]) -> None:
    for item in items:
        answer = await http(node.http, "POST", f"/v1/topics/{topic}/records", as_json(item))
        assert answer.status == 200, answer.body


async def publish_rest_batch(node: BenchNode, topic: str, items: Sequence[Item]) -> None:
    body = {"records": [as_json(item) for item in items]}
    answer = await http(node.http, "POST", f"/v1/topics/{topic}/records/batch", body)
    assert answer.status == 200, answer.body


async def publish_ws(node: BenchNode, topic: str, items: Sequence[Item]) -> None:
    async with connect(f"ws://{node.http}/v1/socket", proxy=None) as ws:
        for number, item in enumerate(items):
            await ws.send(
                json.dumps(
                    {"type": "publish", "id": str(number), "topic": topic, "record": as_json(item)}
                )
            )
            answer = json.loads(await ws.recv())
            assert answer["type"] == "published", answer


async def publish_graphql(node: BenchNode, topic: str, items: Sequence[Item]) -> None:
    query = """mutation($t: String!, $v: String!, $k: String) {
      publish(topic: $t, payloadBase64: $v, keyBase64: $k) { success } }"""
    for item in items:
        shown = as_json(item)
        variables = {"t": topic, "v": shown["value_base64"], "k": shown.get("key_base64")}
        answer = await http(node.http, "POST", "/graphql", {"query": query, "variables": variables})
        assert answer.json == {"data": {"publish": {"success": True}}}, answer.body


# --- reading -------------------------------------------------------------------------------------


async def read_wire(node: BenchNode, topic: str, count: int) -> list[Item]:
    async with (
        Client(node.wire) as client,
        client.subscribe(topic, start="earliest") as records,
    ):
        found: list[Item] = []
        async for one in records:
            found.append(Item(one.value or b"", one.key))
            if len(found) == count:
                break
    return found


async def read_grpc(node: BenchNode, topic: str, count: int) -> list[Item]:
    async with grpc.aio.insecure_channel(node.grpc) as channel:
        stub: Any = BrokerStub(channel)
        call = stub.Subscribe()
        interest = pb.Interest(topic=topic, start=pb.Start(earliest=pb.Start.Earliest()))
        opening = pb.SubscribeRequest.Open(interests=[interest])
        await call.write(pb.SubscribeRequest(open=opening))
        found: list[Item] = []
        while len(found) < count:
            found += [
                Item(one.value, one.key if one.HasField("key") else None)
                for one in (await call.read()).records
            ]
        call.cancel()
    return found


def from_json(record: dict[str, Any]) -> Item:
    def data(name: str) -> bytes | None:
        if f"{name}_base64" in record:
            return base64.b64decode(record[f"{name}_base64"])
        text = record.get(name)
        return None if text is None else text.encode()

    return Item(data("value") or b"", data("key"))


async def read_rest(node: BenchNode, topic: str, count: int) -> list[Item]:
    found: list[Item] = []
    offset = 0
    while len(found) < count:
        target = f"/v1/topics/{topic}/partitions/0/records?offset={offset}&wait_ms=5000&limit=7"
        page = (await http(node.http, "GET", target)).json
        found += [from_json(one) for one in page["records"]]
        offset = page["next_offset"]
    return found


async def read_sse(node: BenchNode, topic: str, count: int) -> list[Item]:
    host, _, port = node.http.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 26)
    target = f"/v1/topics/{topic}/stream?start=earliest"
    writer.write(f"GET {target} HTTP/1.1\r\nHost: {node.http}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    text = b""
    while text.count(b"\ndata: ") < count:
        size = int((await reader.readline()).strip(), 16)
        text += (await reader.readexactly(size + 2))[:-2]
    writer.close()
    lines = [one for one in text.split(b"\n") if one.startswith(b"data: ")]
    return [from_json(json.loads(one[6:])) for one in lines]


async def read_ws(node: BenchNode, topic: str, count: int) -> list[Item]:
    found: list[Item] = []
    async with connect(f"ws://{node.http}/v1/socket", proxy=None) as ws:
        wish = {"type": "subscribe", "id": "s", "topic": topic, "start": "earliest"}
        await ws.send(json.dumps(wish))
        while len(found) < count:
            message = json.loads(await ws.recv())
            assert message["type"] in ("subscribed", "records"), message
            found += [from_json(one) for one in message.get("records", [])]
    return found


async def read_graphql(node: BenchNode, topic: str, count: int) -> list[Item]:
    query = f"""subscription {{ subscribe(topic: "{topic}", groupId: "__REPLAY__")
      {{ payloadBase64 key }} }}"""
    found: list[Item] = []
    async with connect(
        f"ws://{node.http}/graphql",
        subprotocols=[Subprotocol("graphql-transport-ws")],
        proxy=None,
    ) as ws:
        await ws.send('{"type": "connection_init"}')
        await ws.recv()
        await ws.send(json.dumps({"type": "subscribe", "id": "1", "payload": {"query": query}}))
        while len(found) < count:
            message = json.loads(await ws.recv())
            shown = message["payload"]["data"]["subscribe"]
            key = shown["key"]
            found.append(
                Item(
                    base64.b64decode(shown["payloadBase64"]), None if key is None else key.encode()
                )
            )
    return found


WRITERS: dict[str, Callable[[BenchNode, str, Sequence[Item]], Awaitable[None]]] = {
    "wire": publish_wire,
    "grpc": publish_grpc,
    "rest": publish_rest,
    "rest-batch": publish_rest_batch,
    "websocket": publish_ws,
    "graphql": publish_graphql,
}
READERS: dict[str, Callable[[BenchNode, str, int], Awaitable[list[Item]]]] = {
    "wire": read_wire,
    "grpc": read_grpc,
    "rest": read_rest,
    "sse": read_sse,
    "websocket": read_ws,
    "graphql": read_graphql,
}
