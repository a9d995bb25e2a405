"""What waits here has bounds: beyond them a call is refused, and then all is as before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest
from tests.component.wire.grpc.serving import serving
from tests.on_a_loop import eventually
from tests.unit.wire.http2.client_bytes import data, reset

from angarium.wire.grpc import CallLimits, streaming, unary
from angarium.wire.grpc.messages import framed
from angarium.wire.http2 import frames as h2
from angarium.wire.http2.frames import Setting

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

    from angarium.wire.grpc import Call, Requests


def test_more_requests_than_may_wait_are_refused(run: Runner) -> None:
    async def story() -> None:
        told: list[str] = []

        async def reads_nothing(requests: Requests, _: Call) -> None:
            told.append("begun")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                told.append("cancelled")
                raise

        limits = CallLimits(received_bytes_max=100_000)
        async with serving(streaming(reads_nothing), limits) as it:
            client = await it.dialled()
            for stream_id in (1, 3):
                client.call(stream_id)
            await eventually(lambda: told == ["begun", "begun"])
            for stream_id in (1, 3):
                client.say(*[data(stream_id, framed(bytes(10_000)))] * 6)
            assert (await client.trailers(3))[b"grpc-status"] == b"8"
            await eventually(lambda: told[2:] == ["cancelled"])
            assert it.server.received_bytes == 6 * 10_005, "those of the other call"
            client.say(reset(1))
            await eventually(lambda: it.server.received_bytes == 0)
            assert it.server.calls == 0

    run(story())


def test_with_too_many_answers_unread_further_calls_are_refused(run: Runner) -> None:
    async def story() -> None:
        async def large(_: bytes, call: Call) -> bytes:
            return bytes(150_000)

        limits = CallLimits(unread_bytes_max=100_000)
        async with serving(unary(large), limits) as it:
            client = await it.dialled((Setting.INITIAL_WINDOW_SIZE, 0))

            def call(stream_id: int) -> None:
                client.call(stream_id)
                client.say(data(stream_id, framed(b""), ends=True))

            call(1)
            await client.frame(h2.HEADERS)
            call(3)
            assert (await client.trailers(3))[b"grpc-status"] == b"8"
            client.say(reset(1), h2.window_update(0, 1 << 20))
            call(5)
            client.say(h2.window_update(5, 1 << 20))
            assert (await client.trailers(5))[b"grpc-status"] == b"0"

    run(story())


def test_one_call_too_many_is_refused_until_another_ends(run: Runner) -> None:
    async def story() -> None:
        may_end = asyncio.Event()

        async def waits(_: bytes, call: Call) -> bytes:
            await may_end.wait()
            return b"done"

        async with serving(unary(waits), CallLimits(calls_max=2)) as it:
            calls = [it.unary()(b"") for _ in range(2)]
            await eventually(lambda: it.server.calls == 2)
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await it.unary()(b"")
            assert failure.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            may_end.set()
            assert [await call for call in calls] == [b"done"] * 2
            assert await it.unary()(b"") == b"done"
            assert it.server.calls == 0

    run(story())


def test_clients_wait_with_more_calls_than_a_connection_may_have(run: Runner) -> None:
    async def story() -> None:
        most = 0

        async def counts(_: bytes, call: Call) -> bytes:
            nonlocal most
            most = max(most, it.server.calls)
            await asyncio.sleep(0)
            return b"done"

        async with serving(unary(counts), CallLimits(calls_per_connection_max=3)) as it:
            answers = await asyncio.gather(*(it.unary()(b"") for _ in range(50)))
            assert answers == [b"done"] * 50
            assert most <= 3

    run(story())


def test_too_much_metadata_is_refused(run: Runner) -> None:
    async def story() -> None:
        async def answers(_: bytes, call: Call) -> bytes:
            return b"done"

        async with serving(unary(answers), CallLimits(metadata_bytes_max=1_000)) as it:
            client = await it.dialled()
            client.call(1, (b"x", b"v" * 1_000))
            client.say(data(1, framed(b""), ends=True))
            assert (await client.trailers(1))[b"grpc-status"] == b"8"

    run(story())
