"""What stays open at a door: each is opened by somebody, and waits until it is cut."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import grpc
import grpc.aio
from tests.doors.matrix.http_client import HttpConnection
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from angarium.api import ConsumeRequest, Interest
from angarium.batch import encode_one
from angarium.client.contract.consuming import RemoteConsumption
from angarium.client.contract.subscribing import RemoteSubscription
from angarium.errors import AngariumError
from angarium.ids import Offset
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub
from angarium.wire import Hello, Role, dial
from angarium.wire import operations as op
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from angarium.client.login import Login
    from angarium.wire import Connection

QUIET: Final = "quiet"
"""Nothing comes here, so that who waits for records waits."""

BUSY: Final = "busy"
LONG_S: Final = 300.0
WAIT_MS: Final = 29_000
CUT: Final = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND"})
"""How something ends whose owner may not have it any more; without a right to know of it, it is as
if it were not there."""


class Somebody(NamedTuple):
    """Who opens something, and where."""

    login: Login
    header: str
    wire: str
    grpc: str
    http: str
    gateway: str


class Ended(NamedTuple):
    """How something was cut."""

    code: str
    at: float


OPEN: Final = Ended("", 0.0)


def cut(code: str) -> Ended:
    """Return an end that has just been seen."""
    return Ended(code, time.monotonic())


# Each is an asynchronous generator: it yields once when it is open, and then its end.


async def _dialled(who: Somebody) -> Connection:
    host, _, port = who.wire.rpartition(":")
    hello = Hello(role=Role.CLIENT, auth=who.login.greeting())
    connection = await dial(host=host, port=int(port), hello=hello, timeout_s=60.0)
    await who.login.prove(connection, timeout_s=60.0)
    return connection


async def wire_connection(who: Somebody) -> AsyncIterator[Ended]:
    """A connection on which nothing is going on."""
    connection = await _dialled(who)
    yield OPEN
    await connection.wait_closed()
    yield cut("UNAUTHENTICATED")


async def wire_subscription(who: Somebody) -> AsyncIterator[Ended]:
    connection = await _dialled(who)
    # The interest in the end of a partition is answered with nothing, so it is asked behind it.
    subscription = RemoteSubscription(connection, [Interest(topic=QUIET, partition=0)])
    await connection.request(Operation.DESCRIBE_TOPIC, op.TopicHeader(QUIET), timeout_s=60.0)
    yield OPEN
    yield await _raised(_drained(subscription))
    await connection.close(timeout_s=1.0)


async def wire_member(who: Somebody) -> AsyncIterator[Ended]:
    connection = await _dialled(who)
    request = ConsumeRequest(group="wire-members", topics=(QUIET,))
    consumption = await RemoteConsumption.begun(connection, request)
    yield OPEN
    yield await _raised(_drained(consumption))
    await connection.close(timeout_s=1.0)


async def wire_fetch(who: Somebody) -> AsyncIterator[Ended]:
    """A fetch that waits for records."""
    connection = await _dialled(who)
    header = op.FetchHeader(QUIET, 0, Offset(1), 1 << 20, WAIT_MS)
    waiting = asyncio.ensure_future(connection.request(Operation.FETCH, header, timeout_s=LONG_S))
    await connection.request(Operation.DESCRIBE_TOPIC, op.TopicHeader(QUIET), timeout_s=60.0)
    yield OPEN
    yield await _raised(waiting)
    await connection.close(timeout_s=1.0)


async def wire_publisher(who: Somebody) -> AsyncIterator[Ended]:
    connection = await _dialled(who)

    async def publish() -> str:
        header, batch = op.PublishHeader(BUSY, 0), bytes(encode_one(b"x"))
        asked = connection.request(Operation.PUBLISH, header, [batch], timeout_s=60.0)
        return await _code(asked)

    assert not await publish()
    yield OPEN
    yield await _refused(publish)
    await connection.close(timeout_s=1.0)


async def grpc_subscription(who: Somebody) -> AsyncIterator[Ended]:
    opening = pb.SubscribeRequest.Open(interests=[pb.Interest(topic=QUIET)])
    async for ended in _grpc_stream(who, opening):
        yield ended


async def grpc_member(who: Somebody) -> AsyncIterator[Ended]:
    membership = pb.Membership(group="grpc-members", topics=[QUIET])
    async for ended in _grpc_stream(who, pb.SubscribeRequest.Open(group=membership)):
        yield ended


async def _grpc_stream(who: Somebody, opening: pb.SubscribeRequest.Open) -> AsyncIterator[Ended]:
    async with grpc.aio.insecure_channel(who.grpc) as channel:
        stub: Any = BrokerStub(channel)
        call = stub.Subscribe(metadata=(("authorization", who.header),))
        await call.write(pb.SubscribeRequest(open=opening))
        await call.initial_metadata()
        yield OPEN

        async def drained() -> None:
            while await call.read() is not grpc.aio.EOF:
                pass

        yield await _raised(drained())


async def grpc_fetch(who: Somebody) -> AsyncIterator[Ended]:
    async with grpc.aio.insecure_channel(who.grpc) as channel:
        stub: Any = BrokerStub(channel)
        metadata = (("authorization", who.header),)
        request = pb.FetchRequest(topic=QUIET, offset=1, wait_ms=WAIT_MS)
        waiting = asyncio.ensure_future(_awaited(stub.Fetch(request, metadata=metadata)))
        await stub.DescribeTopic(pb.DescribeTopicRequest(name=QUIET), metadata=metadata)
        yield OPEN
        yield await _raised(waiting)


async def grpc_publisher(who: Somebody) -> AsyncIterator[Ended]:
    """A stream of publishes: it stays, and what is sent on it is refused."""
    async with grpc.aio.insecure_channel(who.grpc) as channel:
        stub: Any = BrokerStub(channel)
        call = stub.PublishStream(metadata=(("authorization", who.header),))
        publish = pb.PublishRequest(topic=BUSY, partition=0, record=pb.NewRecord(value=b"x"))

        async def sent() -> str:
            await call.write(pb.PublishStreamRequest(number=1, publish=publish))
            answer = await call.read()
            assert answer is not grpc.aio.EOF
            return str(answer.results[0].error.code)

        assert not await sent()
        yield OPEN
        yield await _refused(sent)
        call.cancel()


async def events(who: Somebody) -> AsyncIterator[Ended]:
    async for ended in _events(who, who.http, ""):
        yield ended


async def events_of_a_group(who: Somebody) -> AsyncIterator[Ended]:
    async for ended in _events(who, who.http, "?group=event-members"):
        yield ended


async def events_through_a_gateway(who: Somebody) -> AsyncIterator[Ended]:
    async for ended in _events(who, who.gateway, ""):
        yield ended


async def _events(who: Somebody, address: str, query: str) -> AsyncIterator[Ended]:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"GET /v1/topics/{QUIET}/stream{query} HTTP/1.1\r\nHost: {address}\r\n"
    writer.write(f"{head}Authorization: {who.header}\r\n\r\n".encode())
    status = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in status, status
    yield OPEN
    told = b""
    while b"event: error" not in told or not told.rstrip().endswith(b"}"):
        more = await reader.read(65_536)
        if not more:
            break
        told += more
    writer.close()
    yield cut(next((one for one in CUT if one.encode() in told), repr(told[-200:])))


async def socket_subscription(who: Somebody) -> AsyncIterator[Ended]:
    async for ended in _socket(who, {"type": "subscribe", "id": "x", "topic": QUIET}):
        yield ended


async def socket_member(who: Somebody) -> AsyncIterator[Ended]:
    said = {"type": "consume", "id": "x", "group": "socket-members", "topics": [QUIET]}
    async for ended in _socket(who, said):
        yield ended


async def _socket(who: Somebody, said: dict[str, Any]) -> AsyncIterator[Ended]:
    headers = {"Authorization": who.header}
    async with connect(
        f"ws://{who.http}/v1/socket", proxy=None, open_timeout=60, additional_headers=headers
    ) as socket:
        await socket.send(json.dumps(said))
        told = json.loads(await socket.recv())
        assert told["type"] == "subscribed", told
        yield OPEN
        while told["type"] != "error":
            told = json.loads(await socket.recv())
        yield cut(str(told["code"]))


async def graphql_subscription(who: Somebody) -> AsyncIterator[Ended]:
    async for ended in _graphql(who, ""):
        yield ended


async def graphql_member(who: Somebody) -> AsyncIterator[Ended]:
    async for ended in _graphql(who, "graphql-members"):
        yield ended


async def _graphql(who: Somebody, group: str) -> AsyncIterator[Ended]:
    protocol = Subprotocol("graphql-transport-ws")
    async with connect(
        f"ws://{who.http}/graphql", proxy=None, open_timeout=60, subprotocols=[protocol]
    ) as socket:
        payload = {"Authorization": who.header}
        await socket.send(json.dumps({"type": "connection_init", "payload": payload}))
        await socket.recv()
        query = f'subscription {{ subscribe(topic: "{QUIET}", groupId: "{group}") {{ id }} }}'
        asked = {"id": "x", "type": "subscribe", "payload": {"query": query}}
        await socket.send(json.dumps(asked))
        yield OPEN
        try:
            while True:
                told = json.loads(await socket.recv())
                found = [one for one in CUT if one in json.dumps(told)]
                if found:
                    break
        except ConnectionClosed as closed:
            found = [str(closed)]
        yield cut(found[0])


async def rest_fetch(who: Somebody) -> AsyncIterator[Ended]:
    connection = HttpConnection(who.http)
    target = f"/v1/topics/{QUIET}/partitions/0/records?offset=1&wait_ms={WAIT_MS}"
    headers = {"Authorization": who.header}
    waiting = asyncio.ensure_future(connection.ask("GET", target, headers=headers))
    await asyncio.sleep(0)
    yield OPEN
    answer = await waiting
    yield cut(str(answer.headers.get("x-angarium-code", answer.status)))
    await connection.close()


async def rest_publisher(who: Somebody) -> AsyncIterator[Ended]:
    async for ended in _posting(who, f"/v1/topics/{BUSY}/records", {"value": "x"}):
        yield ended


async def graphql_publisher(who: Somebody) -> AsyncIterator[Ended]:
    query = f'mutation {{ publish(topic: "{BUSY}", payload: "x") {{ success }} }}'
    async for ended in _posting(who, "/graphql", {"query": query}):
        yield ended


async def _posting(who: Somebody, target: str, body: object) -> AsyncIterator[Ended]:
    connection = HttpConnection(who.http)

    async def posted() -> str:
        headers = {"Authorization": who.header}
        text = (await connection.ask("POST", target, body, headers=headers)).body.decode()
        return next((one for one in CUT if one in text), "")

    assert not await posted()
    yield OPEN
    yield await _refused(posted)
    await connection.close()


READERS: Final[dict[str, Callable[[Somebody], AsyncIterator[Ended]]]] = {
    "wire: subscription": wire_subscription,
    "wire: member of a group": wire_member,
    "wire: fetch that waits": wire_fetch,
    "gRPC: subscription": grpc_subscription,
    "gRPC: member of a group": grpc_member,
    "gRPC: fetch that waits": grpc_fetch,
    "REST: fetch that waits": rest_fetch,
    "events": events,
    "events: member of a group": events_of_a_group,
    "events through a gateway": events_through_a_gateway,
    "WebSocket: subscription": socket_subscription,
    "WebSocket: member of a group": socket_member,
    "GraphQL: subscription": graphql_subscription,
    "GraphQL: member of a group": graphql_member,
}

PUBLISHERS: Final[dict[str, Callable[[Somebody], AsyncIterator[Ended]]]] = {
    "wire: publisher": wire_publisher,
    "gRPC: stream of publishes": grpc_publisher,
    "REST: publisher": rest_publisher,
    "GraphQL: publisher": graphql_publisher,
}

CONNECTIONS: Final[dict[str, Callable[[Somebody], AsyncIterator[Ended]]]] = {
    "wire: idle connection": wire_connection
}
"""They end with who opened them, not with a grant."""


async def _raised(work: Awaitable[Any]) -> Ended:
    """Return what ends something."""
    return cut(await _code(work))


async def _code(work: Awaitable[Any]) -> str:
    """Return the code of what something raises."""
    try:
        await work
    except AngariumError as error:
        return error.code
    except grpc.aio.AioRpcError as error:
        metadata = dict(error.trailing_metadata() or ())
        return str(metadata.get("x-angarium-code", error.code().name))
    return ""


async def _drained(stream: Any) -> None:
    async for _ in stream:
        pass


async def _refused(publish: Callable[[], Awaitable[str]]) -> Ended:
    """Publish until that is refused, and return when the refused one was sent: the refusal itself
    takes its time where a password has to be checked once more."""
    code, at = "", 0.0
    while not code:
        at = time.monotonic()
        code = await publish()
        await asyncio.sleep(0.01)
    return Ended(code, at)


async def _awaited(call: Awaitable[Any]) -> Any:
    return await call
