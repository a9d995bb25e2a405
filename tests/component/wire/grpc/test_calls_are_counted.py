"""Calls are counted by how they end, however that is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest
from tests.component.wire.grpc.serving import PATH, serving
from tests.on_a_loop import eventually, run

from angarium.telemetry.exposition import exposition
from angarium.wire.grpc import GrpcServer, streaming, unary

if TYPE_CHECKING:
    from angarium.wire.grpc import Call, Requests


async def echoed(request: bytes, _: Call) -> bytes:
    if request == b"wait":
        await asyncio.Event().wait()
    return request


async def drained(requests: Requests, _: Call) -> bytes:
    while await requests.together():
        pass
    return b"all"


def page(server: GrpcServer) -> list[str]:
    return exposition(server.families()).decode().splitlines()


def test_calls_and_streams_are_counted_once_each() -> None:
    async def story() -> None:
        async with serving({PATH: unary(echoed), "/a.B/Stream": streaming(drained)}) as it:
            await it.unary()(b"x")
            with pytest.raises(grpc.aio.AioRpcError):
                await it.unary()(b"wait", timeout=0.05)
            stream = it.stream("/a.B/Stream")
            await stream.write(b"one")
            await eventually(lambda: "angarium_grpc_streams 1" in page(it.server))
            assert "angarium_grpc_calls_in_progress 1" in page(it.server)
            assert "angarium_grpc_connections 1" in page(it.server)
            await stream.done_writing()
            assert await stream.read() == b"all"
            given_up = it.unary()(b"wait")
            await eventually(lambda: "angarium_grpc_calls_in_progress 1" in page(it.server))
            given_up.cancel()
            await eventually(lambda: "angarium_grpc_calls_in_progress 0" in page(it.server))
            told = page(it.server)
            assert 'angarium_grpc_calls_total{code="OK"} 2' in told
            ended = [one for one in told if one.startswith("angarium_grpc_calls_total{")]
            # The server's clock, or the client's word, is the first to end the late one.
            assert sum(int(one.split()[-1]) for one in ended) == 4
            assert 'angarium_grpc_call_duration_seconds_bucket{le="+Inf"} 3' in told
            assert "angarium_grpc_streams 0" in told

    run(story())
