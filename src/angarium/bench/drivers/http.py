"""HTTP: a request per publish, as REST or GraphQL; deliveries come as server-sent events."""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.bench.drivers.port import Received
from angarium.bench.drivers.socket_member import SocketMember
from angarium.errors import OutcomeUnknown
from angarium.ids import TopicPartition
from angarium.security.tls.client import connection_arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.bench.ways import Ways
    from angarium.modes import DeliveryMode

ANSWER_TIMEOUT_S: Final = 30.0
"""A request that takes longer counts as one whose outcome nobody knows."""

_MANY: Final = """mutation($t: String!, $n: Int!, $v: [String!]!, $m: DeliveryMode) {
  publishBatch(topic: $t, partition: $n, payloadsBase64: $v, mode: $m) { success } }"""
_MUTATION: Final = """mutation($t: String!, $n: Int!, $v: String!, $m: DeliveryMode) {
  publish(topic: $t, partition: $n, payloadBase64: $v, mode: $m) { success } }"""

_encode: Final = msgspec.json.Encoder().encode


class _Event(msgspec.Struct):
    """The part of an event that is looked at."""

    partition: int
    value_base64: str = ""


_event: Final = msgspec.json.Decoder(_Event)


class HttpDriver:
    """Connections to the HTTP doors of one cluster."""

    def __init__(self, ways: Ways, mode: DeliveryMode, *, is_graphql: bool) -> None:
        self._ways = ways
        self._mode = mode
        self._is_graphql = is_graphql

    async def publisher(self) -> HttpPublisher:
        """Return one with connections of its own."""
        return HttpPublisher(self._ways, self._mode, is_graphql=self._is_graphql)

    async def subscriber(
        self, partitions: Sequence[TopicPartition], *, from_start: bool
    ) -> HttpSubscriber:
        """Return a stream per topic, all from one of the nodes."""
        subscriber = HttpSubscriber()
        for topic in sorted({partition.topic for partition in partitions}):
            await subscriber.follow(self._ways.read, topic, from_start=from_start)
        return subscriber

    async def member(self, group: str, topics: Sequence[str], *, credit: int) -> SocketMember:
        """Return one that consumes through the door that is read from, over a WebSocket."""
        return await SocketMember.joined(self._ways.read, group=group, topics=topics, credit=credit)

    async def close(self) -> None:
        """Nothing is shared."""


class _Exchange(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self._data = b""
        self._answer: asyncio.Future[tuple[bytes, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    async def ask(self, request: bytes) -> tuple[bytes, bytes]:
        """Return the head and the body of the answer."""
        answer = self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)  # type: ignore[attr-defined]
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                found: tuple[bytes, bytes] = await answer
        except TimeoutError:
            self.transport.close()
            raise OutcomeUnknown("no answer in time") from None
        return found

    def data_received(self, data: bytes) -> None:
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._data[:end]
        length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0] or b"0")
        if len(self._data) >= end + 4 + length and self._answer is not None:
            body, self._data = (
                self._data[end + 4 : end + 4 + length],
                self._data[end + 4 + length :],
            )
            if not self._answer.done():
                self._answer.set_result((head, body))

    def connection_lost(self, _: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(OutcomeUnknown("the connection was lost"))


class HttpPublisher:
    """Publishes; workers that publish at once have a connection each."""

    def __init__(self, ways: Ways, mode: DeliveryMode, *, is_graphql: bool) -> None:
        self._ways = ways
        self._mode = mode
        self._is_graphql = is_graphql
        self._free: dict[str, deque[_Exchange]] = {one: deque() for one in ways.addresses}
        self._all: list[_Exchange] = []

    async def publish(self, partition: TopicPartition, values: Sequence[bytes]) -> None:
        """Publish records and wait for their acknowledgement."""
        address = self._ways.to(partition)
        free = self._free[address]
        exchange = free.popleft() if free else await self._connected(address)
        request = (
            self._mutation(partition, values) if self._is_graphql else self._rest(partition, values)
        )
        head, body = await exchange.ask(request)
        free.append(exchange)
        if not head.startswith(b"HTTP/1.1 200") or b'"errors"' in body:
            raise OutcomeUnknown(body.decode(errors="replace")[:200])

    async def close(self) -> None:
        """Hang up."""
        for exchange in self._all:
            exchange.transport.close()

    async def _connected(self, address: str) -> _Exchange:
        host, _, port = address.rpartition(":")
        loop = asyncio.get_running_loop()
        _, exchange = await loop.create_connection(
            _Exchange, host, int(port), **connection_arguments(host)
        )
        self._all.append(exchange)
        return exchange

    def _rest(self, partition: TopicPartition, values: Sequence[bytes]) -> bytes:
        query = f"?partition={partition.partition}&mode={self._mode.name.lower()}"
        target = f"/v1/topics/{partition.topic}/records"
        if len(values) == 1:
            return _post(f"{target}{query}", values[0], "application/octet-stream")
        records = [{"value_base64": base64.b64encode(one).decode()} for one in values]
        return _post(f"{target}/batch{query}", _encode({"records": records}), "application/json")

    def _mutation(self, partition: TopicPartition, values: Sequence[bytes]) -> bytes:
        shown = [base64.b64encode(one).decode() for one in values]
        is_one = len(values) == 1
        variables = {
            "t": partition.topic,
            "n": partition.partition,
            "v": shown[0] if is_one else shown,
            "m": self._mode.name,
        }
        body = _encode({"query": _MUTATION if is_one else _MANY, "variables": variables})
        return _post("/graphql", body, "application/json")


class HttpSubscriber:
    """Receives events; those of one chunk and partition together."""

    def __init__(self) -> None:
        self._arrived: asyncio.Queue[Received | None] = asyncio.Queue(1_000)
        self._tasks: list[asyncio.Task[None]] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def follow(self, address: str, topic: str, *, from_start: bool) -> None:
        """Begin with a topic."""
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(
            host, int(port), limit=1 << 26, **connection_arguments(host)
        )
        start = "earliest" if from_start else "live"
        target = f"/v1/topics/{topic}/stream?encoding=base64&start={start}"
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise OutcomeUnknown(head.decode(errors="replace"))
        self._writers.append(writer)
        self._tasks.append(asyncio.create_task(self._read(reader, topic)))

    async def receive(self) -> Received | None:
        """Return what came next; None once it is closed."""
        return await self._arrived.get()

    async def close(self) -> None:
        """Stop receiving."""
        for task in self._tasks:
            task.cancel()
        for writer in self._writers:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, topic: str) -> None:
        rest = b""
        try:
            while size := int((await reader.readline()).strip() or b"0", 16):
                *blocks, rest = (rest + (await reader.readexactly(size + 2))[:-2]).split(b"\n\n")
                found: dict[int, list[bytes]] = {}
                for block in blocks:
                    data = block.partition(b"data: ")[2]
                    if data:
                        event = _event.decode(data)
                        value = base64.b64decode(event.value_base64)
                        found.setdefault(event.partition, []).append(value)
                for partition, values in found.items():
                    await self._arrived.put(Received(TopicPartition(topic, partition), values))
        except (OSError, asyncio.IncompleteReadError):
            pass
        await self._arrived.put(None)


def _post(target: str, body: bytes, kind: str) -> bytes:
    head = f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
