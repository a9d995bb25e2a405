"""The baselines of the wire and gRPC doors: their servers, with one handler that answers nothing.

    python -m benchmarks.empty_doors wire|grpc PORT

That of the HTTP door is in `benchmarks.http_door`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import uvloop
from benchmarks.bare_quorum import answers

from angarium.app.parent import die_with
from angarium.app.serving import SWITCH_INTERVAL_S
from angarium.bench.cluster import HOST, free_ports
from angarium.wire import Handlers, Hello, Role, Server, dial
from angarium.wire.grpc import CallLimits, CallRefused, GrpcCode, GrpcServer, unary

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from angarium.ids import TopicPartition
    from angarium.wire import Connection, Request
    from angarium.wire.grpc import Call

ASKED: Final = 100
"""The one operation that is served."""


async def serve_wire(port: int) -> None:
    """Serve our frames until killed."""

    def handler(request: Request) -> None:
        request.answer()

    handlers = Handlers(requests={ASKED: handler})
    greeting = Hello(role=Role.PEER, node=1)
    await Server.listen(host=HOST, port=port, greeting=lambda: greeting, welcome=lambda _: handlers)
    await asyncio.Event().wait()


async def serve_grpc(port: int) -> None:
    """Serve gRPC until killed."""

    def handler(_: bytes, call: Call) -> None:
        call.finish(b"")

    async def refusal_of(_: Exception) -> CallRefused:
        return CallRefused(GrpcCode.INTERNAL, "nothing is to go wrong here")

    methods = {"/angarium.v1.Broker/Publish": unary(handler)}
    await GrpcServer(methods, CallLimits(), refusal_of=refusal_of).start(host=HOST, port=port)
    await asyncio.Event().wait()


@asynccontextmanager
async def running(kind: str) -> AsyncIterator[tuple[int, int]]:
    """Run it as a process; yield its port and process id."""
    port = free_ports(1)[0]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.empty_doors", kind, str(port)
    )
    try:
        await answers(port)
        yield port, process.pid
    finally:
        process.kill()
        await process.wait()


class EmptyPublisher:
    """Sends records to a handler that does nothing with them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    async def connected(cls, port: int) -> EmptyPublisher:
        """Return one with a connection of its own."""
        return cls(await dial(host=HOST, port=port, hello=Hello(role=Role.CLIENT)))

    async def publish(self, _: TopicPartition, values: Sequence[bytes]) -> None:
        """Send records and wait for the answer."""
        await self._connection.request(ASKED, b"", values, timeout_s=30)

    async def close(self) -> None:
        """Hang up."""
        await self._connection.close()


if __name__ == "__main__":
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    die_with(os.getppid())
    serve = {"wire": serve_wire, "grpc": serve_grpc}[sys.argv[1]]
    uvloop.run(serve(int(sys.argv[2])))
