"""How the wire's tests run a coroutine, wait, and join two sides."""

from __future__ import annotations

import asyncio
import gc
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import uvloop
from tests.on_a_loop import DEADLINE_S

from angarium.wire import Connection, Handlers, Hello, Role, Server, WireLimits, dial

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from typing import Any

T = TypeVar("T")

LOOPS = ("uvloop", "asyncio")
LOCALHOST = "127.0.0.1"
NODE = Hello(role=Role.PEER, cluster="c1", node=1)
CLIENT = Hello(role=Role.CLIENT)


class Runner:
    """Runs coroutines on one kind of event loop, each within a deadline."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, work: Coroutine[Any, Any, T], *, within_s: float = DEADLINE_S) -> T:
        factory = uvloop.new_event_loop if self.kind == "uvloop" else asyncio.new_event_loop

        unhandled: list[dict[str, Any]] = []

        async def in_time() -> T:
            asyncio.get_running_loop().set_exception_handler(lambda _, what: unhandled.append(what))
            async with asyncio.timeout(within_s):
                return await work

        with asyncio.Runner(loop_factory=factory) as runner:
            result = runner.run(in_time())
            gc.collect()  # futures whose exception nobody asked for complain when they go
        assert unhandled == []
        return result


@asynccontextmanager
async def listening(
    handlers: Handlers | None = None, *, hello: Hello = NODE, limits: WireLimits | None = None
) -> AsyncIterator[Server]:
    """A server on a free port."""
    server = await Server.listen(
        host=LOCALHOST,
        port=0,
        greeting=lambda: hello,
        welcome=lambda _: handlers or Handlers(),
        limits=limits,
    )
    try:
        yield server
    finally:
        await server.drain(timeout_s=2.0)


@asynccontextmanager
async def joined(
    serves: Handlers | None = None,
    *,
    client_serves: Handlers | None = None,
    limits: WireLimits | None = None,
    client_limits: WireLimits | None = None,
) -> AsyncIterator[tuple[Connection, Connection]]:
    """A client's side and a server's side of one open connection."""
    async with listening(serves, limits=limits) as server:
        client = await dial(
            host=LOCALHOST,
            port=server.port,
            hello=CLIENT,
            welcome=lambda _: client_serves or Handlers(),
            limits=client_limits or limits,
        )
        try:
            (accepted,) = server.connections
            await accepted.opened()
            yield client, accepted
        finally:
            await client.close(timeout_s=2.0)
