"""The profile hermes on three nodes, beside empty handlers, in one run.

    python -m benchmarks.compat [--seconds 3] [--messages 40000] [--rounds 3] [--workers 60]

Publish: 60 calls at a time, CONSISTENT and EVENTUAL. PublishStream: one stream, EVENTUAL, 100 bytes
a message, as the profile's own document measured it. The empty handlers read the same messages and
answer the same, one on the server that the door runs on and one on grpc.aio; what they reach is the
limit of each on this machine. The load is made of prepared frames (`benchmarks.http2_load`), so
that the client is not what is measured. The rounds alternate; the table has medians. Processor time
is the server's own, of the node that is called.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc
import grpc.aio
import uvloop
from benchmarks.http2_load import Streaming, Unary, connected

from angarium.app.parent import die_with
from angarium.app.serving import SWITCH_INTERVAL_S
from angarium.bench.cluster import HOST, BenchCluster, free_ports
from angarium.client import Client
from angarium.wire.grpc import CallLimits, CallRefused, GrpcCode, GrpcServer, streaming
from angarium.wire.grpc import unary as grpc_unary
from angarium_compat.hermes.schema import SCHEMA

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from angarium.wire.grpc import Call, Requests

TOPIC = "bench"
PAYLOAD = b"x" * 100
DOCUMENTED = {"Publish": 1_438, "PublishStream": 47_000}
"""What the profile's document reports, in messages per second."""


class Round(NamedTuple):
    """What one round came to."""

    per_s: float
    cpu_us: float
    """Processor time of the server per message."""
    p50_ms: float = 0.0
    p99_ms: float = 0.0


_parsed = SCHEMA["PublishRequest"].FromString
_summary = SCHEMA["PublishSummary"]
_DONE = bytes(SCHEMA["PublishResponse"](success=True).SerializeToString())


async def serve_empty(port: int) -> None:
    """Serve both calls with handlers that do nothing, on our own server, until killed."""

    def publish(data: bytes, call: Call) -> None:
        _parsed(data)
        call.finish(_DONE)

    async def publish_stream(requests: Requests, call: Call) -> bytes:
        call.begin()
        count = 0
        while some := await requests.together():
            for data in some:
                _parsed(data)
            count += len(some)
        return bytes(_summary(processed_count=count).SerializeToString())

    async def refusal_of(error: Exception) -> CallRefused:
        return CallRefused(GrpcCode.INTERNAL, str(error))

    methods = {"Publish": grpc_unary(publish), "PublishStream": streaming(publish_stream)}
    server = GrpcServer(
        {f"/broker.BrokerService/{name}": one for name, one in methods.items()},
        CallLimits(),
        refusal_of=refusal_of,
    )
    await server.start(host=HOST, port=port)
    await asyncio.Event().wait()


async def serve_empty_grpcio(port: int) -> None:
    """Serve the same on grpc.aio."""

    async def publish(data: bytes, _: Any) -> bytes:
        _parsed(data)
        return _DONE

    async def publish_stream(requests: AsyncIterator[bytes], _: Any) -> bytes:
        count = 0
        async for data in requests:
            _parsed(data)
            count += 1
        return bytes(_summary(processed_count=count).SerializeToString())

    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    handlers: dict[str, Any] = {
        "Publish": grpc.unary_unary_rpc_method_handler(publish),
        "PublishStream": grpc.stream_unary_rpc_method_handler(publish_stream),
    }
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("broker.BrokerService", handlers),)
    )
    server.add_insecure_port(f"{HOST}:{port}")
    await server.start()
    await server.wait_for_termination()


@asynccontextmanager
async def empty_server(option: str) -> AsyncIterator[tuple[str, int]]:
    """Run empty handlers as a process; yield the address and the process's id."""
    port = free_ports(1)[0]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.compat", option, str(port)
    )
    try:
        async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
            await asyncio.wait_for(channel.channel_ready(), 30)
        yield f"{HOST}:{port}", process.pid
    finally:
        process.kill()
        await process.wait()


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def request(mode: int) -> bytes:
    """Return a publish, packed."""
    packed = SCHEMA["PublishRequest"](topic=TOPIC, payload=PAYLOAD, mode=mode)
    return bytes(packed.SerializeToString())


async def unary(address: str, pid: int, *, mode: int, workers: int, seconds: float) -> Round:
    """Measure Publish."""
    load = Unary("/broker.BrokerService/Publish", request(mode), workers)
    await connected(address, load)
    before = cpu_s(pid)
    load.begin()
    await asyncio.sleep(seconds)
    calls, spent = load.calls, cpu_s(pid) - before
    load.is_over = True
    load.transport.close()
    assert not load.failures, f"{load.failures} calls failed"
    assert calls, f"no call was answered within {seconds:g} s; is the machine busy?"
    ascending = sorted(load.latencies)
    at = [1_000 * ascending[int(share * len(ascending))] for share in (0.5, 0.99)]
    return Round(calls / seconds, 1e6 * spent / calls, at[0], at[1])


async def stream(address: str, pid: int, *, streams: int, messages: int) -> Round:
    """Measure PublishStream, EVENTUAL: from the first message until all of them were answered."""
    path, each = "/broker.BrokerService/PublishStream", messages // streams
    loads = [Streaming(path, request(1), each) for _ in range(streams)]
    for one in loads:
        await connected(address, one)
    clock = asyncio.get_running_loop().time
    before, began = cpu_s(pid), clock()
    for one in loads:
        one.begin()
    processed = 0
    for one in loads:
        await asyncio.wait_for(one.done.wait(), 120)
        found = SCHEMA["PublishSummary"].FromString(one.answer[5:])
        assert (found.processed_count, found.failed_count) == (one.sent, 0), (one.sent, found)
        processed += one.sent
        one.transport.close()
    took, spent = clock() - began, cpu_s(pid) - before
    return Round(processed / took, 1e6 * spent / processed)


async def leader(cluster: BenchCluster) -> int:
    """Return which node leads the topic, counted from 0."""
    async with Client(*cluster.servers.split(",")) as client:
        await client.create_topic(TOPIC)
        for _ in range(200):
            found = (await client.describe_topic(TOPIC)).partitions[0].leader
            if found is not None:
                return found - 1
            await asyncio.sleep(0.05)
    raise AssertionError("nobody leads")


async def run(options: argparse.Namespace) -> None:
    """Run all rounds, and print the table."""
    ports = free_ports(3)
    environments = [{"ANGARIUM_COMPAT_HERMES_GRPC_PORT": str(port)} for port in ports]
    rows: dict[tuple[str, str], list[Round]] = {}
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="angarium-compat-")))
        cluster = BenchCluster(folder, environments=environments)
        await stack.enter_async_context(cluster)
        empty = await stack.enter_async_context(empty_server("--serve-empty"))
        grpcio = await stack.enter_async_context(empty_server("--serve-empty-grpcio"))
        first = await leader(cluster)
        follower = (first + 1) % 3
        ours = (f"{HOST}:{ports[first]}", cluster.nodes[first].pid)
        other = (f"{HOST}:{ports[follower]}", cluster.nodes[follower].pid)
        load = {"workers": options.workers, "seconds": options.seconds}
        for turn in range(options.rounds + 1):
            found = {
                ("Publish", "empty handler"): await unary(*empty, mode=0, **load),
                ("Publish", "empty on grpc.aio"): await unary(*grpcio, mode=0, **load),
                ("Publish", "CONSISTENT"): await unary(*ours, mode=0, **load),
                ("Publish", "EVENTUAL"): await unary(*ours, mode=1, **load),
                ("Publish", "CONSISTENT, follower"): await unary(*other, mode=0, **load),
                ("PublishStream", "empty handler"): await stream(
                    *empty, streams=1, messages=options.messages
                ),
                ("PublishStream", "empty on grpc.aio"): await stream(
                    *grpcio, streams=1, messages=options.messages
                ),
                ("PublishStream", "EVENTUAL"): await stream(
                    *ours, streams=1, messages=options.messages
                ),
                ("PublishStream", "EVENTUAL, 4 streams"): await stream(
                    *ours, streams=4, messages=options.messages
                ),
            }
            print(f"round {turn} of {options.rounds}", file=sys.stderr)
            if turn:  # the first warms up
                for key, one in found.items():
                    rows.setdefault(key, []).append(one)
    print_table(rows)


def print_table(rows: dict[tuple[str, str], list[Round]]) -> None:
    """Print medians, with their ratios to the empty handler and to the document."""
    print(
        f"{'':36}{'per s':>9}{'server µs':>11}{'p50 ms':>8}{'p99 ms':>8}{'of empty':>10}"
        f"{'of document':>13}"
    )
    bases: dict[str, float] = {}
    for (call, what), rounds in rows.items():
        middle = Round(*(statistics.median(values) for values in zip(*rounds, strict=True)))
        base = bases.setdefault(call, middle.per_s)
        print(
            f"{call + ', ' + what:36}{middle.per_s:>9,.0f}{middle.cpu_us:>11.1f}"
            f"{middle.p50_ms:>8.1f}{middle.p99_ms:>8.1f}{middle.per_s / base:>9.0%}"
            f"{middle.per_s / DOCUMENTED[call]:>12.2f}x"
        )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--messages", type=int, default=40_000, help="of one round of a stream")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=60)
    parser.add_argument("--serve-empty", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--serve-empty-grpcio", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    if options.serve_empty:
        die_with(os.getppid())
        uvloop.run(serve_empty(options.serve_empty))
    elif options.serve_empty_grpcio:
        die_with(os.getppid())
        uvloop.run(serve_empty_grpcio(options.serve_empty_grpcio))
    else:
        uvloop.run(run(options))


if __name__ == "__main__":
    main()
