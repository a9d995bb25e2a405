"""The baseline of the gRPC door: a server whose only handler answers at once with nothing.

    python -m benchmarks.empty_grpc PORT

Same library, same event loop and same settings as a node, without everything behind the door.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import uvloop

from angarium.app.parent import die_with
from angarium.app.serving import SWITCH_INTERVAL_S
from angarium.bench.cluster import HOST, free_ports
from angarium.bench.stamps import Stamps
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def serve(port: int) -> None:
    """Serve until killed."""

    async def publish(*_: object) -> bytes:
        return b""

    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "Publish": grpc.unary_unary_rpc_method_handler(publish)
    }
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("angarium.v1.Broker", handlers),)
    )
    server.add_insecure_port(f"{HOST}:{port}")
    await server.start()
    await server.wait_for_termination()


@asynccontextmanager
async def running() -> AsyncIterator[str]:
    """Run the server as a process; yield its address."""
    port = free_ports(1)[0]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.empty_grpc", str(port)
    )
    try:
        async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
            await asyncio.wait_for(channel.channel_ready(), 30)
        yield f"{HOST}:{port}"
    finally:
        process.kill()
        await process.wait()


async def calls_per_s(address: str, *, workers: int, size: int, seconds: float) -> float:
    """Return the calls per second of so many workers, each waiting for its answer."""
    stamps = Stamps(size)
    async with grpc.aio.insecure_channel(address) as channel:
        await channel.channel_ready()
        stub = BrokerStub(channel)
        end = time.perf_counter() + seconds

        async def work() -> int:
            count = 0
            while time.perf_counter() < end:
                value = stamps.records(count, 1, time.monotonic_ns())[0]
                record = pb.NewRecord(value=value)
                await stub.Publish(
                    pb.PublishRequest(topic="t", partition=0, record=record), timeout=30
                )
                count += 1
            return count

        return sum(await asyncio.gather(*(work() for _ in range(workers)))) / seconds


if __name__ == "__main__":
    import os

    sys.setswitchinterval(SWITCH_INTERVAL_S)
    die_with(os.getppid())
    uvloop.run(serve(int(sys.argv[1])))
