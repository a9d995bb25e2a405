"""The HTTP door of a cluster beside an empty handler of the same server, in one run.

    python -m benchmarks.http_door [--seconds 4] [--workers 60] [--followers 200 1000]

Three nodes of this machine, CONSISTENT, records of 100 bytes. The empty handler reads the same
requests in a process of its own and answers `{}`. The rounds alternate, and the table has medians.
The load comes from one process that does as little as possible per request. On a machine with few
cores nodes and load compete: rates are good as ratios, processor time per request says more. Both
are shown as shares of what the empty handler does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import uvloop

from angarium.app.parent import die_with
from angarium.app.serving import SWITCH_INTERVAL_S
from angarium.bench.cluster import HOST, BenchCluster, free_ports
from angarium.bench.latency import latency
from angarium.client import Client
from angarium.doors.http import HttpLimits
from angarium.doors.http.problems import problem
from angarium.wire.http import HttpServer, Response
from angarium.wire.http.stream import OPENING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from angarium.wire.http.messages import Answer, Request

TOPIC = "bench"
VALUE = "x" * 100
RATE = 1_000
"""Records per second that followers of a topic are sent."""


class Load(asyncio.Protocol):
    """One connection that sends the same request again as soon as it is answered."""

    def __init__(self, request: bytes) -> None:
        self.answered = 0
        self.refused = 0
        self._request = request
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._data[:end]
        at = head.find(b"Content-Length: ") + 16
        length = int(head[at : head.find(b"\r\n", at)] if b"\r\n" in head[at:] else head[at:])
        if len(self._data) < end + 4 + length:
            return
        self.refused += not head.startswith(b"HTTP/1.1 200") or b'"errors"' in self._data
        self._data = self._data[end + 4 + length :]
        self.answered += 1
        self.transport.write(self._request)  # type: ignore[attr-defined]


class SocketLoad(Load):
    """The same over a WebSocket: one message after the other."""

    def __init__(self, message: object) -> None:
        super().__init__(_SOCKET_REQUEST)
        data = json.dumps(message).encode()
        assert len(data) < 1 << 16, "a frame of middling size"
        head = bytes([0x81, 0x80 | 126]) if len(data) > 125 else bytes([0x81, 0x80 | len(data)])
        length = len(data).to_bytes(2) if len(data) > 125 else b""
        mask = b"\x37\xfa\x21\x3d"
        masked = bytes([one ^ mask[at % 4] for at, one in enumerate(data)])
        self._frame = head + length + mask + masked
        self._is_open = False

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._is_open:
            head, found, self._data = self._data.partition(b"\r\n\r\n")
            assert found, head
            self._is_open = True
            self.transport.write(self._frame)  # type: ignore[attr-defined]
            return
        start, size = 2, self._data[1]
        if size == 126:
            start, size = 4, int.from_bytes(self._data[2:4])
        if len(self._data) >= start + size:
            self.refused += b'"published"' not in self._data
            self._data = self._data[start + size :]
            self.answered += 1
            self.transport.write(self._frame)  # type: ignore[attr-defined]


_SOCKET_REQUEST: Final = (
    b"GET /v1/socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


class Measured(NamedTuple):
    """What a round came to."""

    per_second: float
    server_us: float
    """Processor time of the answering process per request."""


def request_of(target: str, body: object) -> bytes:
    """Return a request with a JSON body."""
    data = json.dumps(body).encode()
    head = f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


async def measured(
    port: int, pid: int, load_of: Callable[[], Load], *, workers: int, seconds: float
) -> Measured:
    """Put `workers` connections to work for so many seconds."""
    loop = asyncio.get_running_loop()
    pairs = [await loop.create_connection(load_of, HOST, port) for _ in range(workers)]
    loads = [load for _, load in pairs]
    await asyncio.sleep(0.5)
    before, used, began = sum(one.answered for one in loads), cpu_s(pid), time.perf_counter()
    await asyncio.sleep(seconds)
    count, passed = sum(one.answered for one in loads) - before, time.perf_counter() - began
    used = cpu_s(pid) - used
    for transport, _ in pairs:
        transport.abort()
    refused = sum(one.refused for one in loads)
    assert not refused, f"{refused} requests were not answered well"
    return Measured(count / passed, used / max(1, count) * 1e6)


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- the empty handler -------------------------------------------------------------------------


async def serve_empty(port: int) -> None:
    """Serve until killed."""
    answer = Response(200, b"{}")

    def handler(_: Request) -> Answer:
        return answer

    server = HttpServer(handler, problem, HttpLimits())
    await server.start(host=HOST, port=port)
    await asyncio.Event().wait()


@asynccontextmanager
async def empty_server() -> AsyncIterator[tuple[int, int]]:
    """Run it as a process; yield its port and process id."""
    port = free_ports(1)[0]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.http_door", "--empty", str(port)
    )
    try:
        async with asyncio.timeout(30):
            while True:
                try:
                    _, writer = await asyncio.open_connection(HOST, port)
                    writer.close()
                    break
                except OSError:
                    await asyncio.sleep(0.05)
        yield port, process.pid
    finally:
        process.kill()
        await process.wait()


# --- followers ---------------------------------------------------------------------------------


class Follower(asyncio.Protocol):
    """One stream of events, each of which is looked at."""

    def __init__(self, request: bytes, heard: Callable[[bytes], None]) -> None:
        self._request = request
        self._heard = heard
        self.received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        self._heard(data)


class Sink(asyncio.BufferedProtocol):
    """One stream of events, of which only the bytes are counted."""

    _room = bytearray(256 << 10)
    """Nobody looks at it, so that all share it."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(self._request)  # type: ignore[attr-defined]

    def get_buffer(self, sizehint: int) -> bytearray:
        del sizehint
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        self.received += nbytes


class FannedOut(NamedTuple):
    """What became of the events of a topic that many follow."""

    p50_ms: float
    p99_ms: float
    """From publish to receipt."""
    came: float
    """The share of events that came."""
    server_us: float
    """Processor time of the serving process per event."""


LOOKED_AT: Final = 50
"""Streams whose events are looked at; for the others, their bytes have to be as many."""


async def fan_out(
    port: int, pid: int, publish_port: int, *, followers: int, seconds: float
) -> FannedOut:
    """Have so many follow a topic through one node while records are published at another."""
    loop = asyncio.get_running_loop()
    late: list[int] = []

    def heard(data: bytes) -> None:
        now = time.monotonic_ns()
        parts = data.split(b'"value":"')[1:]
        late.extend([now - int(one[:20]) for one in parts if one[:20].isdigit()])

    request = f"GET /v1/topics/{TOPIC}/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    looked_at = min(followers, LOOKED_AT)
    opened: list[tuple[asyncio.Transport, Follower | Sink]] = []
    for number in range(followers):
        is_looked_at = number * looked_at // followers != (number - 1) * looked_at // followers
        opened.append(
            await loop.create_connection(
                partial(Follower, request, heard) if is_looked_at else partial(Sink, request),
                HOST,
                port,
            )
        )
    streams = [one for _, one in opened]
    await eventually(lambda: all(one.received > len(OPENING) for one in streams))
    await asyncio.sleep(1.0)
    before = [one.received for one in streams]
    used = cpu_s(pid)
    sent = await published_at_rate(publish_port, seconds)
    await asyncio.sleep(1.0)
    used = cpu_s(pid) - used
    bytes_came = [one.received - at for one, at in zip(streams, before, strict=True)]
    for transport, _ in opened:
        transport.abort()
    found = latency(late)
    assert found is not None, "no event came"
    came = found.count / (sent * looked_at)
    expected = statistics.median(
        size for size, one in zip(bytes_came, streams, strict=True) if isinstance(one, Follower)
    )
    came *= min(1.0, sum(bytes_came) / (expected * followers))
    return FannedOut(found.p50_ms, found.p99_ms, came, used / (sent * followers) * 1e6)


async def published_at_rate(port: int, seconds: float) -> int:
    """Publish records that say when, at `RATE`; return how many."""
    reader, writer = await asyncio.open_connection(HOST, port)
    sent, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        due = int((time.perf_counter() - began) * RATE) - sent
        if due > 0:
            records = [{"value": f"{time.monotonic_ns():020d}{VALUE[20:]}"} for _ in range(due)]
            target = f"/v1/topics/{TOPIC}/records/batch?partition=0"
            writer.write(request_of(target, {"records": records}))
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"200 OK" in head, head
            length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            sent += due
        await asyncio.sleep(0.001)
    writer.close()
    return sent


async def eventually(is_so: Callable[[], bool]) -> None:
    """Wait until it is."""
    async with asyncio.timeout(30):
        while not is_so():  # noqa: ASYNC110  (what it waits for is counted by callbacks)
            await asyncio.sleep(0.02)


# --- the run -----------------------------------------------------------------------------------


async def leader_of(cluster: BenchCluster) -> int:
    """Return which node leads the partition that everything is published to."""
    async with Client(*cluster.servers.split(",")) as client:
        await client.create_topic(TOPIC)
        while True:
            leader = (await client.describe_topic(TOPIC)).partitions[0].leader
            if leader is not None:
                return leader - 1
            await asyncio.sleep(0.05)


async def main(options: argparse.Namespace) -> None:
    """Measure everything, and print a table."""
    publish = f"/v1/topics/{TOPIC}/records?partition=0"
    mutation = 'mutation($p: String!) { publish(topic: "bench", payload: $p) { success } }'
    batch = {"records": [{"value": VALUE}] * 100}
    said = {"type": "publish", "id": "1", "topic": TOPIC, "record": {"value": VALUE}}
    loads: dict[str, Callable[[], Load]] = {
        "REST": partial(Load, request_of(publish, {"value": VALUE})),
        "REST, batches of 100": partial(
            Load, request_of(f"/v1/topics/{TOPIC}/records/batch?partition=0", batch)
        ),
        "GraphQL": partial(
            Load, request_of("/graphql", {"query": mutation, "variables": {"p": VALUE}})
        ),
        "WebSocket": partial(SocketLoad, {**said, "partition": 0}),
    }
    found: dict[str, list[Measured]] = {}
    with tempfile.TemporaryDirectory(prefix="angarium-http-", dir=options.data) as folder:
        async with empty_server() as (port, pid), BenchCluster(Path(folder)) as cluster:
            node = cluster.nodes[await leader_of(cluster)]
            other = next(one for one in cluster.nodes if one is not node)
            door = int(node.http.rpartition(":")[2])
            load = {"workers": options.workers, "seconds": options.seconds}
            for _ in range(options.rounds):
                one = await measured(port, pid, loads["REST"], **load)
                found.setdefault("empty handler", []).append(one)
                for name, load_of in loads.items():
                    one = await measured(door, node.pid, load_of, **load)
                    found.setdefault(name, []).append(one)
            follow = int(other.http.rpartition(":")[2])
            fanned_out = [
                (count, await fan_out(follow, other.pid, door, followers=count, seconds=3.0))
                for count in options.followers
            ]
    baseline = statistics.median(one.per_second for one in found["empty handler"])
    least = statistics.median(one.server_us for one in found["empty handler"])
    print(f"{'':24}{'requests/s':>12}{'of empty':>10}{'server, us':>12}{'empty / it':>12}")
    for name, rounds in found.items():
        rate = statistics.median(one.per_second for one in rounds)
        used = statistics.median(one.server_us for one in rounds)
        print(f"{name:24}{rate:12,.0f}{rate / baseline:10.0%}{used:12.0f}{least / used:12.0%}")
    single = statistics.median(one.per_second for one in found["REST"])
    many = statistics.median(one.per_second for one in found["REST, batches of 100"])
    print(f"records in batches of 100: {100 * many:,.0f}/s, {100 * many / single:.1f} x single")
    for count, fanned in fanned_out:
        print(
            f"{count:,} followers at {RATE:,} records/s through a follower:"
            f" p50 {fanned.p50_ms:.1f} ms, p99 {fanned.p99_ms:.1f} ms,"
            f" {fanned.came:.2%} of the events came, {fanned.server_us:.2f} us of the node for each"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--empty", type=int)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=60)
    parser.add_argument("--followers", type=int, nargs="*", default=[200, 1_000])
    parser.add_argument("--data", help="where the nodes keep their data meanwhile")
    chosen = parser.parse_args()
    if chosen.empty is not None:
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        die_with(os.getppid())
        uvloop.run(serve_empty(chosen.empty))
    else:
        uvloop.run(main(chosen))
