"""Connections end: those that are silent, idle, or too many; and all, when the server stops."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc.aio
import pytest
from tests.component.wire.grpc.serving import ByHand, serving
from tests.on_a_loop import eventually
from tests.unit.wire.http2.client_bytes import data, reset

from angarium.wire.descriptors import Descriptors
from angarium.wire.grpc import CallLimits, unary
from angarium.wire.grpc.messages import framed
from angarium.wire.http2 import ErrorCode
from angarium.wire.http2 import frames as h2

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

    from angarium.wire.grpc import Call

PONG = h2.frame(h2.PING, h2.ACK, 0, bytes(8))


class Gate:
    """A handler that answers when it may."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()

    async def __call__(self, message: bytes, _: Call) -> bytes:
        await self.may_answer.wait()
        return message


def begin(client: ByHand, stream_id: int = 1) -> None:
    client.call(stream_id)
    client.say(data(stream_id, framed(b"x"), ends=True))


async def reason(client: ByHand) -> ErrorCode:
    """Return why a connection ends, as it is told."""
    frame = await client.frame(h2.GOAWAY)
    return ErrorCode(h2.read_long(frame.payload, 4)[0])


# --- one of them ----------------------------------------------------------------------------------


def test_a_silent_connection_is_pinged_and_cut_even_with_a_call(run: Runner) -> None:
    async def story() -> None:
        gate = Gate()
        async with serving(unary(gate), CallLimits(keepalive_interval_s=0.3)) as it:
            client = await it.dialled()
            begin(client)
            assert (await client.frame(h2.PING)).flags == 0
            assert await client.is_closed()
            await eventually(lambda: it.server.calls == 0)

    run(story())


def test_one_that_answers_stays(run: Runner) -> None:
    async def story() -> None:
        gate = Gate()
        async with serving(unary(gate), CallLimits(keepalive_interval_s=0.3)) as it:
            client = await it.dialled()
            begin(client)
            for _ in range(3):
                await client.frame(h2.PING)
                client.say(PONG)
            gate.may_answer.set()
            assert (await client.trailers(1))[b"grpc-status"] == b"0"

    run(story())


def test_an_idle_connection_is_told_and_closed(run: Runner) -> None:
    async def story() -> None:
        async with serving(unary(Gate()), CallLimits(idle_seconds_max=0.2)) as it:
            client = await it.dialled()
            assert await reason(client) is ErrorCode.NO_ERROR
            assert await client.is_closed()

    run(story())


def test_who_makes_short_calls_is_not_idle(run: Runner) -> None:
    """However short: nobody need look while one is under way."""

    async def story() -> None:
        gate = Gate()
        gate.may_answer.set()
        async with serving(unary(gate), CallLimits(connections_max=2)) as it:
            client = await it.dialled()
            await asyncio.sleep(0.01)  # the clock of the loop has milliseconds
            silent = await it.dialled()
            await asyncio.sleep(0.01)
            begin(client)
            assert (await client.trailers(1))[b"grpc-status"] == b"0"
            await it.dialled()
            assert await reason(silent) is ErrorCode.NO_ERROR
            begin(client, 3)
            assert (await client.trailers(3))[b"grpc-status"] == b"0"

    run(story())


def test_for_one_connection_too_many_nobody_with_a_call_has_to_go(run: Runner) -> None:
    async def story() -> None:
        gate = Gate()
        async with serving(unary(gate), CallLimits(connections_max=2)) as it:
            busy = [await it.dialled() for _ in range(2)]
            for client in busy:
                begin(client)
            await eventually(lambda: it.server.calls == 2)
            assert await reason(await it.dialled()) is ErrorCode.ENHANCE_YOUR_CALM
            gate.may_answer.set()
            for client in busy:
                assert (await client.trailers(1))[b"grpc-status"] == b"0"

    run(story())


def test_a_crowd_that_comes_at_once_is_no_larger_than_allowed(run: Runner) -> None:
    async def story() -> None:
        async with serving(unary(Gate()), CallLimits(connections_max=3)) as it:
            crowd = [await it.dialled() for _ in range(30)]
            closed = 0

            async def watch(client: ByHand) -> None:
                nonlocal closed
                await client.is_closed()
                closed += 1

            async with asyncio.TaskGroup() as group:
                watching = [group.create_task(watch(client)) for client in crowd]
                await eventually(lambda: closed >= 27, within_s=15)
                assert closed == 27
                for task in watching:
                    task.cancel()

    run(story())


def test_where_few_descriptors_are_left_only_who_has_made_no_call_has_to_go(run: Runner) -> None:
    async def story() -> None:
        gate = Gate()
        gate.may_answer.set()
        async with serving(unary(gate)) as it:
            client = await it.dialled()
            begin(client)
            assert (await client.trailers(1))[b"grpc-status"] == b"0"
            silent = await it.dialled()
            await eventually(lambda: len(it.server._server.sockets) == 2)
            it.server._server.descriptors = Descriptors(100, lambda: 80)
            newest = await it.dialled()
            await silent.is_closed()
            begin(newest)
            assert (await newest.trailers(1))[b"grpc-status"] == b"0"
            assert await reason(await it.dialled()) is ErrorCode.ENHANCE_YOUR_CALM
            begin(client, 3)
            assert (await client.trailers(3))[b"grpc-status"] == b"0"

    run(story())


# --- all of them ----------------------------------------------------------------------------------


def test_when_a_server_stops_calls_under_way_are_answered(run: Runner) -> None:
    async def story() -> None:
        gate = Gate()
        async with serving(unary(gate)) as it:
            call = it.unary()(b"under way")
            await eventually(lambda: it.server.calls == 1)
            stopping = asyncio.create_task(it.server.stop(60))
            await it.server.stopping.wait()
            with pytest.raises(grpc.aio.AioRpcError):
                await it.unary()(b"too late", timeout=0.5)
            gate.may_answer.set()
            assert await call == b"under way"
            await stopping

    run(story())


def test_a_call_that_comes_when_the_server_stops_is_not_looked_at(run: Runner) -> None:
    async def story() -> None:
        gate = Gate()
        async with serving(unary(gate)) as it:
            client = await it.dialled()
            begin(client)
            await eventually(lambda: it.server.calls == 1)
            stopping = asyncio.create_task(it.server.stop(60))
            goaway = await client.frame(h2.GOAWAY)
            assert h2.read_long(goaway.payload)[0] == 1, "the last that is answered"
            begin(client, 3)
            await it.round_trips(client)
            assert it.server.calls == 1
            gate.may_answer.set()
            assert (await client.trailers(1))[b"grpc-status"] == b"0"
            assert await client.is_closed()
            client.close()
            await stopping

    run(story())


def test_a_server_that_stops_waits_for_no_call_that_was_cancelled(run: Runner) -> None:
    async def story() -> None:
        async with serving(unary(Gate())) as it:
            client = await it.dialled()
            begin(client)
            await eventually(lambda: it.server.calls == 1)
            stopping = asyncio.create_task(it.server.stop(1_000))
            await client.frame(h2.GOAWAY)
            client.say(reset(1))
            async with asyncio.timeout(20):
                assert await client.is_closed()
                client.close()
                await stopping

    run(story())


def test_when_its_time_is_over_a_server_ends_what_is_under_way(run: Runner) -> None:
    async def story() -> None:
        async with serving(unary(Gate())) as it:
            client = await it.dialled()
            begin(client)
            await eventually(lambda: it.server.calls == 1)
            await it.server.stop(0.1)
            assert await client.is_closed()
            await eventually(lambda: it.server.calls == 0)

    run(story())
