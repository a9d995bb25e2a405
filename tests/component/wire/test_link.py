"""A link comes back: pauses that grow, drops while down, orderly stop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.component.wire.running import LOCALHOST, NODE, listening
from tests.on_a_loop import eventually

from angarium.retrying import Backoff
from angarium.testing.reserved_port import ReservedPort
from angarium.wire import (
    Connection,
    Frame,
    Handlers,
    Link,
    Request,
    Server,
    Unreachable,
    WrongCluster,
)
from angarium.wire.handshake import Hello, Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.component.wire.running import Runner

PEER = Hello(role=Role.PEER, cluster="c1", node=2)
QUICK = Backoff(first_s=0.005, longest_s=0.02)


def link_to(
    port: int, *, hello: Hello = PEER, on_change: Callable[[Link], None] | None = None
) -> Link:
    return Link(
        host=LOCALHOST, port=port, greeting=lambda: hello, backoff=QUICK, on_change=on_change
    )


async def serve(port: int, handlers: Handlers) -> Server:
    return await Server.listen(
        host=LOCALHOST, port=port, greeting=lambda: NODE, welcome=lambda _: handlers
    )


def test_a_link_comes_up_by_itself_and_comes_back(run: Runner) -> None:
    async def main() -> None:
        heard: list[bytes] = []
        changes: list[bool] = []

        def take(_: Connection, frame: Frame) -> None:
            heard.append(frame.header)

        def echo(request: Request) -> None:
            request.answer(request.frame.header)

        handlers = Handlers(messages={1: take}, requests={2: echo})
        reserved = ReservedPort()  # nobody else is given it while nobody listens
        port = reserved.number
        link = link_to(port, on_change=lambda changed: changes.append(changed.is_up))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(link.run())
            assert not link.send(1, b"dropped")
            with pytest.raises(Unreachable):
                await link.request(2, timeout_s=1)
            assert link.messages_dropped == 1
            await eventually(lambda: link.last_error is not None)
            for turn in range(3):
                server = await serve(port, handlers)
                await eventually(lambda: link.is_up)
                assert link.send(1, b"turn %d" % turn)
                assert (await link.request(2, b"x", timeout_s=30)).header == b"x"
                await server.drain()
                expected = 2 * (turn + 1)
                await eventually(lambda: len(changes) == expected)  # noqa: B023  (awaited here)
                assert link.connection is None
            assert heard == [b"turn 0", b"turn 1", b"turn 2"]
            assert changes == [True, False] * 3
            await link.stop()
        reserved.release()

    run(main())


def test_a_refusal_is_remembered_and_dialling_goes_on(run: Runner) -> None:
    async def main() -> None:
        async with listening() as server:
            link = link_to(server.port, hello=Hello(role=Role.PEER, cluster="other", node=2))
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(link.run())
                await eventually(lambda: isinstance(link.last_error, WrongCluster))
                assert not link.is_up
                await link.stop()

    run(main())


def test_stopping_says_goodbye(run: Runner) -> None:
    async def main() -> None:
        async with listening() as server:
            link = link_to(server.port)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(link.run())
                await eventually(lambda: link.is_up)
                (accepted,) = server.connections
                await link.stop()
            await accepted.wait_closed()
            assert accepted.error is None

    run(main())


def test_cancelling_the_run_closes_the_connection(run: Runner) -> None:
    async def main() -> None:
        async with listening() as server:
            link = link_to(server.port)
            running = asyncio.ensure_future(link.run())
            await eventually(lambda: link.is_up)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await eventually(lambda: not server.connections)
            assert not link.is_up

    run(main())


def test_drops_are_counted_over_all_connections_of_a_link(run: Runner) -> None:
    async def main() -> None:
        async with listening() as server:
            link = link_to(server.port)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(link.run())
                assert not link.send(1)
                await eventually(lambda: link.is_up)
                connection = link.connection
                assert connection is not None
                connection.messages_dropped += 2
                connection._abort()
                await eventually(lambda: link.connection not in {None, connection})
                assert link.messages_dropped >= 3
                await link.stop()

    run(main())


@pytest.mark.parametrize("host", ["bad..host", "x" * 70 + ".test", ""])
def test_a_link_to_what_no_host_is_called_goes_on_trying(run: Runner, host: str) -> None:
    async def main() -> None:
        link = Link(host=host, port=1, greeting=lambda: PEER, backoff=QUICK)
        running = asyncio.create_task(link.run())
        await eventually(lambda: isinstance(link.last_error, Unreachable))
        assert not running.done()
        await link.stop()
        await running

    run(main())
