"""Connections that say nothing, and messages that are larger than they look."""

from __future__ import annotations

import asyncio
import gc
import gzip
import tracemalloc
import zlib
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.component.doors.grpc.opened import LOCALHOST, opened, refused
from tests.on_a_loop import run
from tests.unit.doors.grpc.memory_broker import MemoryBroker

from angarium.doors.grpc import GrpcLimits
from angarium.errors import InvalidArgument, TooLarge
from angarium.proto.v1 import broker_pb2 as pb
from angarium.wire.grpc.messages import inflated
from angarium_compat.bale import BaleDoor
from angarium_compat.bale.schema import SCHEMA

GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
"""How an HTTP/2 client begins: its preface, and settings that are none."""

MIB = 1 << 20


class Caller:
    """A connection that begins as gRPC does, and then says nothing."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer  # without it the connection would end

    async def is_closed(self) -> bool:
        """Read to the end, whatever comes before it."""
        with suppress(ConnectionError):
            while await self.reader.read(MIB):
                pass
        self._writer.close()
        return True


async def connected(port: int, said: bytes = GREETING) -> Caller:
    reader, writer = await asyncio.open_connection(LOCALHOST, port)
    writer.write(said)
    return Caller(reader, writer)


def test_a_connection_that_says_nothing_is_closed() -> None:
    async def story() -> None:
        limits = GrpcLimits(idle_seconds_max=0.5, handshake_seconds_max=0.5)
        async with opened(limits) as door:
            for said in (b"", GREETING[:5], GREETING):
                assert await (await connected(door.port, said)).is_closed(), said
            # A client with a channel notices nothing of it.
            await door.stub.ListTopics(pb.ListTopicsRequest())

    run(story())


def test_a_connection_with_a_call_is_not_idle() -> None:
    async def story() -> None:
        async with opened(GrpcLimits(idle_seconds_max=0.2)) as door:
            call = door.stub.Subscribe()
            interest = pb.Interest(topic="orders")
            opening = pb.SubscribeRequest.Open(interests=[interest])
            await call.write(pb.SubscribeRequest(open=opening))
            await call.initial_metadata()
            # As long as it takes until another one, without a call, was closed twice over.
            for _ in range(2):
                assert await (await connected(door.port)).is_closed()
            await door.stub.Publish(
                pb.PublishRequest(topic="orders", partition=0, record=pb.NewRecord(value=b"x"))
            )
            assert [one.value for one in (await call.read()).records] == [b"x"]
            call.cancel()

    run(story())


def test_for_one_connection_too_many_the_one_that_is_idle_longest_goes() -> None:
    async def story() -> None:
        # Nobody is cut for not answering pings, which would look the same.
        limits = GrpcLimits(connections_max=3, keepalive_interval_s=600.0)
        async with opened(limits) as door:
            await door.stub.ListTopics(pb.ListTopicsRequest())
            held = []
            for _ in range(3):
                # The clock of the loop has milliseconds: none of them begins in that of another.
                await asyncio.sleep(0.01)
                held.append(await connected(door.port))
                assert await held[-1].reader.read(1), "a greeting for each"
            # The last one came in the place of the channel's own.
            await asyncio.sleep(0.01)
            # Which has another one without being told to, in the place of whoever came next.
            await door.stub.ListTopics(pb.ListTopicsRequest())
            assert await held[0].is_closed()

    run(story())


def test_a_compressed_request_is_a_request() -> None:
    async def story() -> None:
        async with opened() as door:
            value = b"the road is clear" * 1_000
            request = pb.PublishRequest(
                topic="orders", partition=0, record=pb.NewRecord(value=value)
            )
            await door.stub.Publish(request, compression=grpc.Compression.Gzip)
            call = door.stub.PublishStream(compression=grpc.Compression.Gzip)
            await call.write(pb.PublishStreamRequest(number=1, publish=request))
            await call.done_writing()
            assert len([one async for one in call]) == 1
            fetch = pb.FetchRequest(topic="orders", partition=0)
            fetched = await door.stub.Fetch(fetch, compression=grpc.Compression.Gzip)
            assert [one.value for one in fetched.records] == [value, value]
            health = health_pb2_grpc.HealthStub(door.channel)
            asked = health_pb2.HealthCheckRequest(service="angarium.v1.Broker" * 50)
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await health.Check(asked, compression=grpc.Compression.Gzip)
            assert error.value.code() is grpc.StatusCode.NOT_FOUND

    run(story())


def test_compression_that_does_not_show_is_refused() -> None:
    async def story() -> None:
        async with opened() as door:
            request = pb.DescribeTopicRequest(name="o" * 200)
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await door.stub.DescribeTopic(request, compression=grpc.Compression.Deflate)
            assert error.value.code() is grpc.StatusCode.UNIMPLEMENTED

    run(story())


async def refusal(channel: Any, service: str, message: bytes, kind: str) -> grpc.aio.AioRpcError:
    """Call with bytes that are compressed on their way."""
    method = getattr(channel, kind)(service)
    said = iter([message]) if kind == "stream_stream" else message
    call = method(said, compression=grpc.Compression.Gzip)
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await (call if kind == "unary_unary" else call.read())
    return error.value


def test_a_bomb_is_refused_before_it_is_large() -> None:
    bomb = bytes(20 * MIB)

    async def story() -> None:
        async with opened() as door:
            for name, kind in (
                ("Publish", "unary_unary"),
                ("PublishStream", "stream_stream"),
                ("Subscribe", "stream_stream"),
            ):
                service = f"/angarium.v1.Broker/{name}"
                found = refused(await refusal(door.channel, service, bomb, kind))
                assert found.status is grpc.StatusCode.RESOURCE_EXHAUSTED, name
                assert found.code == "TOO_LARGE"

    run(story())


def test_a_bomb_for_an_earlier_broker_is_refused_alike() -> None:
    bomb = bytes(20 * MIB)

    async def story() -> None:
        door = BaleDoor(MemoryBroker(), host=LOCALHOST, port=0)  # type: ignore[arg-type]
        port = await door.start()
        try:
            async with grpc.aio.insecure_channel(f"{LOCALHOST}:{port}") as channel:
                for name, kind in (("Publish", "unary_unary"), ("Subscribe", "unary_stream")):
                    error = await refusal(channel, f"/{SCHEMA.service}/{name}", bomb, kind)
                    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        finally:
            await door.stop(grace_s=0)

    run(story())


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(bytes(20 * MIB), id="a bomb"),
        pytest.param(b"\xff" * MIB, id="no message"),
        pytest.param(
            pb.PublishRequest(
                topic="orders", partition=-1, record=pb.NewRecord(value=bytes(MIB))
            ).SerializeToString(),
            id="a wrong one",
        ),
    ],
)
def test_what_was_refused_is_not_kept(message: bytes) -> None:
    """Until the garbage collector comes, which an idle node's may not do for hours."""

    async def story() -> None:
        async with opened() as door:
            service = "/angarium.v1.Broker/Publish"
            await refusal(door.channel, service, message, "unary_unary")
            gc.collect()
            gc.disable()
            tracemalloc.start()
            try:
                before = tracemalloc.get_traced_memory()[0]
                for _ in range(10):
                    await refusal(door.channel, service, message, "unary_unary")
                assert tracemalloc.get_traced_memory()[0] - before < 3 * MIB
            finally:
                tracemalloc.stop()
                gc.enable()

    run(story())


@pytest.mark.parametrize(
    "data", [b"", b"\x1f", b"\n\x06orders", b"\x78\x9c" + b"x" * 10, bytes(MIB)]
)
def test_what_is_called_compressed_and_is_not_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidArgument):
        inflated(data, 10)


def test_what_is_inflated_is_whole_and_within_its_bound() -> None:
    assert inflated(gzip.compress(b"abc" * 100), 300) == b"abc" * 100
    with pytest.raises(TooLarge):
        inflated(gzip.compress(b"abc" * 100), 299)
    whole = gzip.compress(zlib.compress(b"abc"))
    for wrong in (whole[:-1], whole + b"x", whole + whole, b"\x1f\x8b" + b"\xff" * 20):
        with pytest.raises(InvalidArgument):
            inflated(wrong, 1_000)
