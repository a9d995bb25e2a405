"""Somebody over its quota: served, kept from sending more for a while, and refused then."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.component.wire.running import joined
from tests.on_a_loop import eventually

from angarium.errors import QuotaExceeded
from angarium.wire import Handlers

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

    from angarium.wire import Request, Stream


class Toll:
    """Lets a few requests through, then makes the connection rest, then refuses."""

    def __init__(self, rests: list[float | None]) -> None:
        self._rests = rests

    def take_request(self) -> float:
        rest = self._rests.pop(0) if self._rests else 0.0
        if rest is None:
            raise QuotaExceeded("requests", "used up", retry_after=2.0)
        return rest


class Tolled:
    def __init__(self, toll: Toll | None) -> None:
        self.toll = toll


def nothing(request: Request) -> None:
    request.answer()


async def talk(stream: Stream) -> None:
    async for frame in stream:
        await stream.send(frame.header)


def test_a_connection_rests_and_goes_on_in_order(run: Runner) -> None:
    served: list[bytes] = []

    def answer(request: Request) -> None:
        served.append(bytes(request.frame.header))
        request.answer(request.frame.header)

    async def main() -> None:
        tolled = Tolled(Toll([0.0, 0.3, 0.0, 0.2]))
        handlers = Handlers(requests={1: answer}, tolled=tolled)
        async with joined(handlers) as (client, _):
            loop = asyncio.get_running_loop()
            began = loop.time()
            asked = [client.begin_request(1, b"%d" % number, timeout_s=60) for number in range(6)]
            answers = [bytes((await one).header) for one in asked]
            assert loop.time() - began >= 0.5
            assert served == answers == [b"%d" % number for number in range(6)]

    run(main())


def test_who_is_refused_hears_when_to_come_again_and_the_connection_stays(run: Runner) -> None:
    async def main() -> None:
        tolled = Tolled(Toll([0.0, None, None]))
        handlers = Handlers(
            requests={1: nothing},
            streams={2: talk},
            tolled=tolled,
        )
        async with joined(handlers) as (client, _):
            await client.request(1, timeout_s=60)
            with pytest.raises(QuotaExceeded) as refused:
                await client.request(1, timeout_s=60)
            assert refused.value.retry_after == 2.0
            stream = client.open_stream(2)
            with pytest.raises(QuotaExceeded):
                await stream.receive()
            await client.request(1, timeout_s=60)
            tolled.toll = None
            await client.request(1, timeout_s=60)

    run(main())


def test_answers_and_deliveries_go_out_while_a_connection_rests(run: Runner) -> None:
    async def count(stream: Stream) -> None:
        for number in range(100):
            await stream.send(b"%d" % number)
            await asyncio.sleep(0)

    async def main() -> None:
        handlers = Handlers(
            requests={1: nothing},
            streams={2: count},
            tolled=Tolled(Toll([0.0, 1.0])),
        )
        async with joined(handlers) as (client, server):
            stream = client.open_stream(2)
            await client.request(1, timeout_s=60)
            got = [bytes((await stream.receive()).header) for _ in range(100)]  # type: ignore[union-attr]
            assert got[-1] == b"99"
            # Whoever rests is not forgotten when it goes.
            client.abort()
            await eventually(lambda: not server.is_open)

    run(main())
