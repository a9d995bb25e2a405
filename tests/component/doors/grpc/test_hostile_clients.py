"""Clients that mean no good: what they make the door keep and do, it does not keep for long."""

from __future__ import annotations

import gzip
import struct
from typing import TYPE_CHECKING

import pytest
from tests.component.doors.grpc.opened import opened
from tests.component.doors.grpc.raw_client import (
    GOAWAY,
    HEADERS,
    RESET,
    WINDOW_UPDATE,
    RawClient,
    frame,
    prefixed,
)
from tests.on_a_loop import eventually, run

from angarium.doors.grpc import GrpcLimits
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from tests.component.doors.grpc.opened import Opened

    from angarium.wire.grpc import GrpcServer

PUBLISH_STREAM = "/angarium.v1.Broker/PublishStream"
SUBSCRIBE = "/angarium.v1.Broker/Subscribe"
FETCH = "/angarium.v1.Broker/Fetch"
MIB = 1 << 20


def server_of(it: Opened) -> GrpcServer:
    return it.door._server


def test_a_call_for_a_method_that_is_not_there_ends_before_its_client_has() -> None:
    async def story() -> None:
        async with opened() as it:
            client = await RawClient.connected(it.port)
            called = client.call("/angarium.v1.Broker/Nothing", prefixed(b""), ends=False)
            assert b"grpc-status\x0212" in (await client.until(HEADERS, called)).payload
            await client.close()

    run(story())


def test_a_large_request_that_is_no_grpc_is_answered_before_its_end() -> None:
    async def story() -> None:
        async with opened() as it:
            client = await RawClient.connected(it.port)
            said = bytes(128 << 10)
            called = client.call("/", said, ends=False, **{"content-type": "text/plain"})
            assert b"415" in (await client.until(HEADERS, called)).payload
            await client.close()

    run(story())


@pytest.mark.parametrize("path", [PUBLISH_STREAM, SUBSCRIBE])
def test_of_a_stream_that_is_refused_nothing_goes_on(path: str) -> None:
    async def story() -> None:
        async with opened() as it:
            client = await RawClient.connected(it.port)
            too_large = struct.pack(">BI", 0, 1 << 30)
            called = [client.call(path, too_large, ends=False) for _ in range(10)]
            for one in called:
                await client.until(HEADERS, one)
            await eventually(lambda: not server_of(it).tasks)
            await client.close()

    run(story())


def test_having_streams_reset_is_counted_as_resetting_them() -> None:
    async def story() -> None:
        async with opened(GrpcLimits(calls_per_connection_max=10)) as it:
            client = await RawClient.connected(it.port)
            for _ in range(30):
                called = client.call(SUBSCRIBE, ends=False)
                client.writer.write(frame(WINDOW_UPDATE, 0, called, bytes(4)))
            end = await client.until(GOAWAY, 0)
            assert struct.unpack_from(">I", end.payload, 4)[0] == 11, "ENHANCE_YOUR_CALM"
            await client.close()

    run(story())


def test_bombs_count_as_large_as_they_are() -> None:
    async def story() -> None:
        async with opened(GrpcLimits(received_bytes_max=8 * MIB)) as it:
            # Nobody reads the results, so the door reads no further than it may keep.
            client = await RawClient.connected(it.port, window=0)
            record = pb.NewRecord(value=bytes(4_000_000))
            publish = pb.PublishRequest(topic="orders", partition=0, record=record)
            request = pb.PublishStreamRequest(number=1, publish=publish)
            bomb = prefixed(gzip.compress(request.SerializeToString()), compressed=True)
            called = client.call(PUBLISH_STREAM, bomb * 50, ends=False, grpc_encoding="gzip")
            await client.until(RESET, called)
            await eventually(lambda: not server_of(it).tasks)
            assert server_of(it).received_bytes == 0
            await client.close()

    run(story())


def test_what_nobody_waits_for_any_more_is_not_counted_for_ever() -> None:
    async def story() -> None:
        async with opened() as it:
            request = pb.PublishStreamRequest(number=1).SerializeToString()
            for _ in range(20):
                client = await RawClient.connected(it.port)
                called = client.call(PUBLISH_STREAM, ends=False)
                await client.until(HEADERS, called)
                # A whole request, the beginning of one, and the end of it all at once.
                client.writer.write(
                    frame(0, 0, called, prefixed(request) + prefixed(bytes(5_000))[:4_000])
                    + frame(RESET, 0, called, struct.pack(">I", 8))
                )
                await client.close()
            await eventually(lambda: not server_of(it).tasks)
            assert server_of(it).received_bytes == 0

    run(story())


@pytest.mark.parametrize("window", [0, (1 << 31) - 1])
def test_answers_that_nobody_reads_are_not_gathered(window: int) -> None:
    async def story() -> None:
        async with opened(GrpcLimits(answers_bytes_max=32 * MIB)) as it:
            for _ in range(4):
                record = pb.NewRecord(value=bytes(MIB))
                await it.stub.Publish(pb.PublishRequest(topic="orders", partition=0, record=record))
            client = await RawClient.connected(it.port, window=window)
            client.writer.write(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", (1 << 30))))
            fetch = pb.FetchRequest(topic="orders", partition=0, bytes_max=4 * MIB)
            for _ in range(100):
                client.call(FETCH, prefixed(fetch.SerializeToString()))
            await client.writer.drain()
            server = server_of(it)
            await eventually(lambda: server._server.unread_bytes and server.calls <= 1)
            assert server._server.unread_bytes <= 16 * MIB
            await client.close()

    run(story())


def test_connections_that_linger_are_not_beyond_the_bound() -> None:
    async def story() -> None:
        async with opened(GrpcLimits(connections_max=5)) as it:
            clients = [await RawClient.connected(it.port) for _ in range(40)]
            for one in clients[-5:]:
                await one.read()
            assert len(server_of(it)._server.sockets) <= 6
            for one in clients:
                await one.close()

    run(story())
