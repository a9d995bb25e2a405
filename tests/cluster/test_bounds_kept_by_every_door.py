"""What a reader may demand of a replica far from the leader is kept by every door, or refused.

A topic lives in `us`, and `eu` has a reader of it. As long as the home is there, every door of `eu`
answers from `eu` within any bound; when it is lost, each still reads what is there, and says
TOO_STALE to who wants it newer.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import grpc.aio
import pytest
from websockets.asyncio.client import connect

from angarium.api import TopicConfig
from angarium.client import Client
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub
from angarium.testing.cluster import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from tests.cluster.running import ClusterOf, Run

    from angarium.testing.cluster.processes import NodeProcess

pytestmark = pytest.mark.timeout(600)

WAIT_S = 120.0
HOMED = TopicConfig(placement="homed", regions=("us",), readers=("*",), replication=1)
WIDE_MS, NARROW_MS = 60_000, 500
STREAMED_MS = 5_000
"""Wide enough for a busy machine while the leader is there."""

STALE = "TOO_STALE"
KNOWN = 0
"""The offset of the record that is published."""


class Doors:
    """The doors of the node of `eu` that has a copy."""

    def __init__(self, node: NodeProcess) -> None:
        assert node.http_port is not None
        assert node.grpc_port is not None
        self.http = f"127.0.0.1:{node.http_port.number}"
        self.grpc = f"127.0.0.1:{node.grpc_port.number}"

    async def rest(self, bound_ms: int) -> str:
        """Return the value that was read, or the code of the error."""
        target = f"/v1/topics/orders/partitions/0/records?offset=0&max_staleness_ms={bound_ms}"
        status, headers, body = await self._asked(Request(f"http://{self.http}{target}"))
        assert headers["Angarium-Region"] == "eu"
        assert int(headers["Angarium-Node"]) > 0
        if status != 200:
            assert status == 503
            return str(body["code"])
        assert body["region"] == "eu"
        assert body["staleness_ms"] <= bound_ms
        return str(body["records"][0]["value"])

    async def at_least(self, offset: int) -> int:
        """Return the status of a read of what has to be there."""
        target = f"/v1/topics/orders/partitions/0/records?offset=0&at_least={offset}"
        return (await self._asked(Request(f"http://{self.http}{target}")))[0]

    async def unbounded(self) -> int:
        """Return the status of a read that demands nothing."""
        target = "/v1/topics/orders/partitions/0/records?offset=0"
        return (await self._asked(Request(f"http://{self.http}{target}")))[0]

    async def graphql(self, bound_ms: int) -> str:
        query = (
            '{ records(topic: "orders", partition: 0, maxStalenessMs: %d)'
            " { region records { value } } }"
        )
        request = Request(
            f"http://{self.http}/graphql",
            json.dumps({"query": query % bound_ms}).encode(),
            {"content-type": "application/json"},
        )
        _, _, body = await self._asked(request)
        if body.get("errors"):
            told = json.dumps(body["errors"][0]["extensions"])
            return STALE if STALE in told else told
        assert body["data"]["records"]["region"] == "eu"
        return str(body["data"]["records"]["records"][0]["value"])

    async def rpc(self, bound_ms: int) -> str:
        async with grpc.aio.insecure_channel(self.grpc) as channel:
            call: Any = BrokerStub(channel).Fetch(
                pb.FetchRequest(topic="orders", partition=0, max_staleness_ms=bound_ms)
            )
            try:
                answer = await call
            except grpc.aio.AioRpcError as error:
                return _code_in(error)
            metadata = dict(await call.initial_metadata())
            assert metadata["angarium-region"] == "eu"
            assert answer.region == "eu"
            return str(answer.records[0].value.decode())

    async def subscription(self, seen: asyncio.Event, *, is_bounded: bool = True) -> str:
        """Read until it ends, once something came; return why."""
        async with grpc.aio.insecure_channel(self.grpc) as channel:
            call: Any = BrokerStub(channel).Subscribe()
            interest = pb.Interest(
                topic="orders",
                start=pb.Start(earliest=pb.Start.Earliest()),
                max_staleness_ms=STREAMED_MS if is_bounded else None,
                at_least={0: KNOWN},
            )
            opening = pb.SubscribeRequest.Open(interests=[interest])
            await call.write(pb.SubscribeRequest(open=opening))
            try:
                while True:
                    if (await call.read()).records:
                        seen.set()
            except grpc.aio.AioRpcError as error:
                return _code_in(error)

    async def events(self, seen: asyncio.Event, *, is_bounded: bool = True) -> str:
        host, _, port = self.http.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            bound = f"&max_staleness_ms={STREAMED_MS}" if is_bounded else ""
            target = f"/v1/topics/orders/stream?start=earliest&at_least=0:{KNOWN}{bound}"
            writer.write(f"GET {target} HTTP/1.1\r\nHost: {self.http}\r\n\r\n".encode())
            while line := await reader.readline():
                if line.startswith(b"data: "):
                    told = json.loads(line.removeprefix(b"data: "))
                    if "code" in told:
                        return str(told["code"])
                    seen.set()
            return "the stream ended without a word"
        finally:
            writer.transport.abort()

    async def graphql_events(self, seen: asyncio.Event, *, is_bounded: bool = True) -> str:
        url, words = f"ws://{self.http}/graphql", "graphql-transport-ws"
        bound = f", maxStalenessMs: {STREAMED_MS}" if is_bounded else ""
        query = (
            'subscription { subscribe(topic: "orders", groupId: "__REPLAY__", atLeast: "0:%d"%s)'
        )
        wish = {"query": query % (KNOWN, bound) + " { payload } }"}
        async with connect(url, subprotocols=[words], proxy=None) as ws:  # type: ignore[list-item]
            await ws.send(json.dumps({"type": "connection_init"}))
            await ws.send(json.dumps({"type": "subscribe", "id": "s", "payload": wish}))
            while True:
                message = json.loads(await ws.recv())
                if "errors" in message.get("payload", {}) or message["type"] == "error":
                    told = json.dumps(message)
                    return STALE if STALE in told else told
                if message["type"] == "next":
                    seen.set()

    async def socket(self, seen: asyncio.Event, *, is_bounded: bool = True) -> str:
        async with connect(f"ws://{self.http}/v1/socket", proxy=None) as ws:
            wish = {"type": "subscribe", "id": "s", "topic": "orders", "start": "earliest"}
            bound = {"max_staleness_ms": STREAMED_MS} if is_bounded else {}
            await ws.send(json.dumps({**wish, **bound, "at_least": f"0:{KNOWN}"}))
            while True:
                message = json.loads(await ws.recv())
                if message["type"] == "error":
                    return str(message["code"])
                if message["type"] == "records":
                    seen.set()

    async def _asked(self, request: Request) -> tuple[int, Any, Any]:
        return await asyncio.to_thread(_asked, request)

    @property
    def asked(self) -> dict[str, Callable[[int], Awaitable[str]]]:
        return {"REST": self.rest, "GraphQL": self.graphql, "gRPC": self.rpc}

    @property
    def followed(self) -> dict[str, Callable[..., Coroutine[Any, Any, str]]]:
        return {
            "gRPC": self.subscription,
            "events": self.events,
            "WebSocket": self.socket,
            "GraphQL": self.graphql_events,
        }

    async def begins_live(self) -> bool:
        """Tell whether a stream of what comes begins, as events."""
        request = Request(f"http://{self.http}/v1/topics/orders/stream?partition=0")
        with await asyncio.to_thread(urlopen, request, timeout=WAIT_S) as answer:
            return bool(answer.status == 200)


def _asked(request: Request) -> tuple[int, Any, Any]:
    try:
        with urlopen(request, timeout=WAIT_S) as answer:
            return answer.status, answer.headers, json.load(answer)
    except HTTPError as error:
        return error.code, error.headers, json.load(error)


def _code_in(error: grpc.aio.AioRpcError) -> str:
    return STALE if STALE in f"{error.details()} {error.trailing_metadata()}" else repr(error)


def test_every_door_keeps_the_bounds_of_readers(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(3, regions=("eu", "us", "eu"), doors=True) as cluster:
            home = next(one for one in cluster.nodes.values() if one.region == "us")
            await cluster.create_topic("orders", partitions=1, config=HOMED)

            async def readers() -> list[NodeProcess]:
                info = await (await cluster.someone()).describe("orders")
                (partition,) = info.partitions
                if partition.leader != home.id:
                    return []
                return [cluster.nodes[one] for one in partition.readers if one != home.id]

            found = await eventually(readers, within_s=WAIT_S, what="eu has a reader")
            doors = Doors(found[0])
            async with Client(home.address) as client:
                receipt = await client.publish("orders", b"v")
            assert receipt.offset == KNOWN
            assert await doors.at_least(receipt.offset) == 200, "one reads what one wrote"
            for name, ask in doors.asked.items():
                async with asyncio.timeout(WAIT_S):
                    assert await ask(WIDE_MS) == "v", name
            await _lose(home, doors)
            for name, ask in doors.asked.items():
                async with asyncio.timeout(WAIT_S):
                    assert await ask(NARROW_MS) == STALE, name
            assert await doors.unbounded() == 200, "who demands nothing reads what is there"
            await _begin_without_a_home(doors)

    run(scenario())


async def _begin_without_a_home(doors: Doors) -> None:
    """Streams that demand nothing newer than the copy here begin, and tell what it has."""
    assert await doors.begins_live()
    for name, follow in doors.followed.items():
        seen = asyncio.Event()
        following = asyncio.create_task(follow(seen, is_bounded=False))
        waiting = asyncio.create_task(seen.wait())
        async with asyncio.timeout(WAIT_S):
            await asyncio.wait((following, waiting), return_when=asyncio.FIRST_COMPLETED)
        assert seen.is_set(), f"{name}: {following.result()}"
        following.cancel()
        await asyncio.wait((following,))


async def _lose(home: NodeProcess, doors: Doors) -> None:
    """Kill who leads while streams go on: each ends, also without anything to deliver."""
    seen = {name: asyncio.Event() for name in doors.followed}
    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
        ends = {
            name: tasks.create_task(follow(seen[name])) for name, follow in doors.followed.items()
        }
        for one in seen.values():
            await one.wait()
        home.kill()
    assert {name: end.result() for name, end in ends.items()} == dict.fromkeys(ends, STALE)
