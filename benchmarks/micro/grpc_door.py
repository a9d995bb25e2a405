"""The gRPC door beside an empty grpc.aio handler: what translation costs.

    python -m benchmarks.micro.grpc_door [--seconds 1.0] [--rounds 3]

One process serves both, the door with a broker behind it that only counts; this one asks. Rounds
alternate, so that noise of the machine hits both, and the median counts. `server µs` is the CPU
time of the serving process per call or record, which a busy neighbour disturbs least.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio
import uvloop

from angarium.api import (
    Ack,
    Delivery,
    PartitionInfo,
    PublishRequest,
    TopicConfig,
    TopicInfo,
)
from angarium.batch import encode, stamp
from angarium.doors.grpc import GrpcDoor
from angarium.ids import Micros, NodeId, Offset, Term, TopicId
from angarium.modes import DeliveryMode
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from multiprocessing.connection import Connection

    from angarium.api import Interest

WORKERS: Final = 60
VALUE: Final = b"x" * 100
REPLICATED: Final = "replicated"
"""A topic whose publishes are answered after `COMMIT_S`; the others' are at once."""
COMMIT_S: Final = 0.001
"""About what a commit takes on three nodes: a stream packs together what comes meanwhile."""
STREAM_IN_FLIGHT: Final = 1_000
"""Requests of a stream that wait for their results, as a client that pipelines would have."""
BATCH_RECORDS: Final = 500
"""Records per stored batch in the subscriptions: about 64 KiB."""

_COUNT: Final = struct.Struct("<I")
"""A batch's number of records, at byte 48: this broker should cost next to nothing."""


class CountingBroker:
    """Answers publishes with the next offset, and delivers the same batch again and again."""

    def __init__(self) -> None:
        self._end = 0
        batch = encode([VALUE] * BATCH_RECORDS)
        stamp(batch, base_offset=Offset(0), term=Term(1), append_time=Micros(1))
        self._batch = bytes(batch)

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        if request.topic == REPLICATED:
            await asyncio.sleep(COMMIT_S)
        return tuple(self._ack(request, *_COUNT.unpack_from(one, 48)) for one in request.batches)

    def _ack(self, request: PublishRequest, count: int) -> Ack:
        base = self._end
        self._end += count
        return Ack(
            mode=DeliveryMode.CONSISTENT,
            topic=request.topic,
            partition=request.partition,
            base_offset=Offset(base),
            next_offset=Offset(self._end),
            append_time=Micros(1_700_000_000_000_000 + base),
            term=Term(1),
        )

    async def describe_topic(self, name: str) -> TopicInfo:
        return TopicInfo(
            id=TopicId(1),
            name=name,
            config=TopicConfig(),
            partitions=(PartitionInfo(number=0, replicas=(NodeId(1),)),),
            created_at=Micros(1),
        )

    async def subscribe(self, _: Sequence[Interest]) -> EndlessSubscription:
        return EndlessSubscription(self._batch)


class EndlessSubscription:
    def __init__(self, batch: bytes) -> None:
        self._delivery = Delivery(topic="orders", partition=0, batches=(batch,) * 4)

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        while True:
            yield self._delivery

    async def close(self) -> None:
        pass


# --- the serving process -----------------------------------------------------------------------


def serve(pipe: Connection) -> None:
    """Open the door and an empty server; tell the ports, then CPU seconds whenever asked."""
    uvloop.run(_serve(pipe))


async def _serve(pipe: Connection) -> None:
    door = GrpcDoor(CountingBroker(), host="127.0.0.1", port=0)  # type: ignore[arg-type]

    async def empty(_: bytes, __: object) -> bytes:
        return b""

    async def echo(requests: AsyncIterator[bytes], context: Any) -> None:
        async for _ in requests:
            await context.write(b"")

    async def flood(requests: AsyncIterator[bytes], context: Any) -> None:
        size = len(await anext(requests))
        while True:
            await context.write(bytes(size))

    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "Empty": grpc.unary_unary_rpc_method_handler(empty),
        "Echo": grpc.stream_stream_rpc_method_handler(echo),
        "Flood": grpc.stream_stream_rpc_method_handler(flood),
    }
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("empty", handlers),))
    empty_port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    pipe.send((await door.start(), empty_port))
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, pipe.recv):
        pipe.send(time.process_time())
    await door.stop(grace_s=0)
    await server.stop(0)


# --- the asking process ------------------------------------------------------------------------


@dataclass
class Clients:
    """What a measurement needs: both servers, for a time, and the serving process's CPU."""

    stub: Any
    empty: grpc.aio.Channel
    pipe: Connection
    seconds: float

    def server_cpu(self) -> float:
        self.pipe.send(True)
        return float(self.pipe.recv())


@dataclass
class Rate:
    per_second: float
    server_us: float


async def measured(clients: Clients, work: Callable[[float], Awaitable[int]]) -> Rate:
    """Run `work` until the deadline it is given; it returns how much it did."""
    cpu, started = clients.server_cpu(), time.perf_counter()
    done = await work(started + clients.seconds)
    seconds, cpu = time.perf_counter() - started, clients.server_cpu() - cpu
    return Rate(done / seconds, cpu / done * 1e6)


async def unary(call: Callable[[], Awaitable[object]], until: float) -> int:
    done = 0

    async def worker() -> None:
        nonlocal done
        while time.perf_counter() < until:
            await call()
            done += 1

    await asyncio.gather(*(worker() for _ in range(WORKERS)))
    return done


async def publish_unary(clients: Clients, until: float) -> int:
    request = pb.PublishRequest(topic="orders", record=pb.NewRecord(value=VALUE))
    return await unary(lambda: clients.stub.Publish(request), until)


async def empty_unary(clients: Clients, until: float) -> int:
    data = pb.PublishRequest(topic="orders", record=pb.NewRecord(value=VALUE)).SerializeToString()
    ask: Any = clients.empty.unary_unary("/empty/Empty")
    return await unary(lambda: ask(data), until)


async def publish_stream(clients: Clients, until: float) -> int:
    call = clients.stub.PublishStream()
    done = 0
    room = asyncio.Semaphore(STREAM_IN_FLIGHT)

    async def write() -> None:
        number = 0
        request = pb.PublishRequest(topic=REPLICATED, record=pb.NewRecord(value=VALUE))
        while time.perf_counter() < until:
            await room.acquire()
            await call.write(pb.PublishStreamRequest(number=number, publish=request))
            number += 1
        await call.done_writing()

    async def read() -> None:
        nonlocal done
        async for response in call:
            for _ in response.results:
                room.release()
            done += len(response.results)

    await asyncio.gather(write(), read())
    return done


async def empty_stream(clients: Clients, until: float) -> int:
    call: Any = clients.empty.stream_stream("/empty/Echo")()
    data = pb.PublishRequest(topic="orders", record=pb.NewRecord(value=VALUE)).SerializeToString()
    done = 0
    room = asyncio.Semaphore(STREAM_IN_FLIGHT)

    async def write() -> None:
        while time.perf_counter() < until:
            await room.acquire()
            await call.write(data)
        await call.done_writing()

    async def read() -> None:
        nonlocal done
        async for _ in call:
            room.release()
            done += 1

    await asyncio.gather(write(), read())
    return done


async def subscribe_records(clients: Clients, until: float) -> int:
    call = await _subscribed(clients, pb.FORMAT_RECORDS)
    done = 0
    while time.perf_counter() < until:
        done += len((await call.read()).records)
    call.cancel()
    return done


async def subscribe_batches(clients: Clients, until: float) -> int:
    call = await _subscribed(clients, pb.FORMAT_BATCHES)
    size = len(encode([VALUE] * BATCH_RECORDS))
    done = 0
    while time.perf_counter() < until:
        done += len((await call.read()).batches) // size * BATCH_RECORDS
    call.cancel()
    return done


async def empty_flood(clients: Clients, until: float) -> int:
    size = 4 * len(encode([VALUE] * BATCH_RECORDS))
    call: Any = clients.empty.stream_stream("/empty/Flood")()
    await call.write(bytes(size))
    done = 0
    while time.perf_counter() < until:
        await call.read()
        done += 4 * BATCH_RECORDS
    call.cancel()
    return done


async def _subscribed(clients: Clients, wanted: pb.Format) -> Any:
    call = clients.stub.Subscribe()
    interest = pb.Interest(topic="orders", partition=0)
    opening = pb.SubscribeRequest.Open(interests=[interest], format=wanted)
    await call.write(pb.SubscribeRequest(open=opening))
    return call


COMPARED: Final = (
    ("unary publish, 60 workers", publish_unary, "empty handler", empty_unary),
    ("stream publish, 1 record a message", publish_stream, "empty echo", empty_stream),
    ("subscribe, records", subscribe_records, "empty flood, same bytes", empty_flood),
    ("subscribe, batches", subscribe_batches, "empty flood, same bytes", empty_flood),
)


async def compare(pipe: Connection, *, seconds: float, rounds: int) -> None:
    door_port, empty_port = pipe.recv()
    options = [("grpc.max_receive_message_length", -1)]
    async with (
        grpc.aio.insecure_channel(f"127.0.0.1:{door_port}", options=options) as door,
        grpc.aio.insecure_channel(f"127.0.0.1:{empty_port}", options=options) as empty,
    ):
        clients = Clients(BrokerStub(door), empty, pipe, seconds)
        print(f"{'':<38}{'per second':>12}{'server µs':>12}   ratio to it, by both")
        for name, ours, baseline_name, baseline in COMPARED:
            mine: list[Rate] = []
            theirs: list[Rate] = []
            for _ in range(rounds):
                mine.append(await measured(clients, lambda end, ours=ours: ours(clients, end)))  # type: ignore[misc]
                theirs.append(await measured(clients, lambda end, it=baseline: it(clients, end)))  # type: ignore[misc]
            rate, cpu = _median(mine)
            base_rate, base_cpu = _median(theirs)
            print(f"{name:<38}{rate:>12,.0f}{cpu:>12.2f}   {rate / base_rate:.2f}, ", end="")
            print(
                f"{base_cpu / cpu:.2f}\n  {baseline_name:<36}{base_rate:>12,.0f}{base_cpu:>12.2f}"
            )


def _median(rates: list[Rate]) -> tuple[float, float]:
    return (
        statistics.median(rate.per_second for rate in rates),
        statistics.median(rate.server_us for rate in rates),
    )


def main() -> None:
    """Start the serving process, compare, stop it."""
    parser = argparse.ArgumentParser(prog=Path(__file__).stem, description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")  # a fork would inherit gRPC's threads half-alive
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    try:
        uvloop.run(compare(ours, seconds=options.seconds, rounds=options.rounds))
        ours.send(False)
        process.join(timeout=10)
    finally:
        process.kill()


if __name__ == "__main__":
    main()
