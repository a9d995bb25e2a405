"""Connections that say nothing shut nobody out: the oldest of them makes room."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.component.wire.running import CLIENT, LOCALHOST, NODE
from tests.on_a_loop import eventually

from angarium.errors import LimitExceeded
from angarium.wire import Handlers, Server, WireLimits, dial

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

    from angarium.wire import Connection, Request


def answer(request: Request) -> None:
    request.answer(b"here")


def test_who_has_proven_nothing_makes_room_and_who_has_stays(run: Runner) -> None:
    async def main() -> None:
        unproven = Handlers(proofs=("bearer",))
        proven: list[Connection] = []

        def welcome(connection: Connection) -> Handlers:
            if len(proven) < 1:
                proven.append(connection)
                return Handlers(requests={1: answer})
            return unproven

        server = await Server.listen(
            host=LOCALHOST,
            port=0,
            greeting=lambda: NODE,
            welcome=welcome,
            limits=WireLimits(connections_max=4),
        )
        try:
            good = await dial(host=LOCALHOST, port=server.port, hello=CLIENT)
            # Two that do not even greet, and many that greet and prove nothing.
            silent = [await asyncio.open_connection(LOCALHOST, server.port) for _ in range(2)]
            late = [await dial(host=LOCALHOST, port=server.port, hello=CLIENT) for _ in range(20)]
            await eventually(lambda: len(server.connections) <= 8)
            gone = [one for one in late if not one.is_open]
            await eventually(lambda: sum(not one.is_open for one in late) >= 17)
            assert late[-1].is_open, "the newest has its time"
            assert isinstance(late[0].error, LimitExceeded)
            assert (await good.request(1, timeout_s=60)).header == b"here"
            assert len(gone) <= 20
            for _, writer in silent:
                writer.close()
            for one in (good, *late):
                one.abort()
        finally:
            await server.drain(timeout_s=2.0)

    run(main())


def test_where_all_have_proven_themselves_a_newcomer_is_told(run: Runner) -> None:
    async def main() -> None:
        server = await Server.listen(
            host=LOCALHOST,
            port=0,
            greeting=lambda: NODE,
            welcome=lambda _: Handlers(requests={1: answer}),
            limits=WireLimits(connections_max=2),
        )
        try:
            good = [await dial(host=LOCALHOST, port=server.port, hello=CLIENT) for _ in range(2)]
            with pytest.raises(LimitExceeded, match="connections_max"):
                await dial(host=LOCALHOST, port=server.port, hello=CLIENT)
            for one in good:
                assert (await one.request(1, timeout_s=60)).header == b"here"
                one.abort()
        finally:
            await server.drain(timeout_s=2.0)

    run(main())
