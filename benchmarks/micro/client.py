"""What the client costs: publishing and reading, without a disk or Raft behind it.

    python -m benchmarks.micro.client [--format json] [--seconds 1.0]

The broker is the one of the client's own tests, in memory, in a process of its own, reached over
a real socket. It parses and keeps every batch, so the figures are those of the slower of the two.
Baselines do the same work with bare requests over one connection, in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import uvloop
from tests.component.client.fake_broker import fake_cluster

from angarium.batch import encode
from angarium.client import Client
from angarium.modes import DeliveryMode
from angarium.wire import Hello, Role, dial
from angarium.wire.operations import Operation, PublishHeader

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from multiprocessing.connection import Connection as Pipe

VALUE: Final = b"v" * 100
BULK: Final = 100_000
WORKERS: Final = 60


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement."""

    name: str
    records_per_second: float


def serve(pipe: Pipe) -> None:
    """Run the broker until the other side hangs up."""

    async def main() -> None:
        async with fake_cluster() as cluster:
            for name in ("bulk", "keyed", "workers", "nowait", "bare", "single", "stored", "live"):
                cluster.add_topic(name, partitions=3 if name == "keyed" else 1)
            pipe.send(cluster.nodes[0].port)
            await asyncio.to_thread(pipe.recv)

    uvloop.run(main())


async def measured(port: int, seconds: float) -> list[Line]:
    """Measure everything, one after the other."""
    async with Client(f"127.0.0.1:{port}") as client:
        return [
            await _bare_batches(port, seconds),
            await _bulk(client, seconds),
            await _keyed(client, seconds),
            await _bare_workers(port, seconds),
            await _workers(client, seconds),
            await _nowait(client, seconds),
            await _bare_one_by_one(port, seconds),
            await _one_by_one(client, seconds),
            *await _reading(client),
            await _passing(client, seconds),
        ]


async def _bare_batches(port: int, seconds: float) -> Line:
    connection = await dial(host="127.0.0.1", port=port, hello=Hello(role=Role.CLIENT))
    batch = encode([VALUE] * 2_000)
    header = PublishHeader("bare", 0, DeliveryMode.CONSISTENT)

    async def five() -> int:
        requests = (
            connection.request(Operation.PUBLISH, header, (batch,), timeout_s=10) for _ in range(5)
        )
        await asyncio.gather(*requests)
        return 10_000

    line = await _rate("baseline: bare requests with ready batches of 2,000", five, seconds)
    await connection.close()
    return line


async def _bulk(client: Client, seconds: float) -> Line:
    values = [VALUE] * BULK

    async def once() -> int:
        await client.publish_batch("bulk", values)
        return BULK

    return await _rate("publish_batch", once, seconds)


async def _keyed(client: Client, seconds: float) -> Line:
    values = [VALUE] * BULK
    keys = [b"user-%d" % (number % 1_000) for number in range(BULK)]

    async def once() -> int:
        await client.publish_batch("keyed", values, keys=keys)
        return BULK

    return await _rate("publish_batch, keys dealt to 3 partitions", once, seconds)


async def _bare_workers(port: int, seconds: float) -> Line:
    connection = await dial(host="127.0.0.1", port=port, hello=Hello(role=Role.CLIENT))
    header = PublishHeader("bare", 0, DeliveryMode.CONSISTENT)

    async def worker() -> None:
        for _ in range(10):
            batch = encode([VALUE])
            await connection.request(Operation.PUBLISH, header, (batch,), timeout_s=10)

    async def once() -> int:
        await asyncio.gather(*(worker() for _ in range(WORKERS)))
        return 10 * WORKERS

    line = await _rate("baseline: 60 workers, a bare request each", once, seconds)
    await connection.close()
    return line


async def _workers(client: Client, seconds: float) -> Line:
    async def worker() -> None:
        for _ in range(50):
            await client.publish("workers", VALUE)

    async def once() -> int:
        await asyncio.gather(*(worker() for _ in range(WORKERS)))
        return 50 * WORKERS

    return await _rate("publish, 60 workers awaiting their acks", once, seconds)


async def _nowait(client: Client, seconds: float) -> Line:
    async def once() -> int:
        for _ in range(20_000):
            client.publish_nowait("nowait", VALUE)
        await client.flush()
        return 20_000

    return await _rate("publish_nowait and flush", once, seconds)


async def _bare_one_by_one(port: int, seconds: float) -> Line:
    connection = await dial(host="127.0.0.1", port=port, hello=Hello(role=Role.CLIENT))
    header = PublishHeader("bare", 0, DeliveryMode.CONSISTENT)

    async def once() -> int:
        for _ in range(100):
            batch = encode([VALUE])
            await connection.request(Operation.PUBLISH, header, (batch,), timeout_s=10)
        return 100

    line = await _rate("baseline: bare requests, one by one", once, seconds)
    await connection.close()
    return line


async def _one_by_one(client: Client, seconds: float) -> Line:
    async def once() -> int:
        for _ in range(100):
            await client.publish("single", VALUE)
        return 100

    return await _rate("publish, one by one", once, seconds)


async def _reading(client: Client) -> list[Line]:
    count = 4 * BULK
    await client.publish_batch("stored", [VALUE] * count)
    lines = []
    for name, is_record in (("subscribe, batches", False), ("subscribe, records", True)):
        best = 0.0
        for _ in range(3):
            started = time.perf_counter()
            seen = 0
            async with client.subscribe("stored", start="earliest") as subscription:
                if is_record:
                    async for _ in subscription:
                        seen += 1
                        if seen == count:
                            break
                else:
                    async for batch in subscription.batches():
                        seen += len(batch)
                        if seen == count:
                            break
            best = max(best, count / (time.perf_counter() - started))
        lines.append(Line(name, best))
    return lines


async def _passing(client: Client, seconds: float) -> Line:
    count = 20_000
    async with client.subscribe("live") as subscription:

        async def once() -> int:
            for _ in range(count):
                client.publish_nowait("live", VALUE, mode=DeliveryMode.PERFORMANCE)
            seen = 0
            async for _ in subscription:
                seen += 1
                if seen == count:
                    break
            return count

        return await _rate("PERFORMANCE, publish_nowait to records received", once, seconds)


async def _rate(name: str, once: Callable[[], Awaitable[int]], seconds: float) -> Line:
    """Repeat `once` for some time; the best single run counts, others had company."""
    best = 0.0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        count = await once()
        best = max(best, count / (time.perf_counter() - started))
    return Line(name, best)


def main() -> None:
    """Print a table, or the same as JSON."""
    parser = argparse.ArgumentParser(description="Measure the client.")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each line")
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    broker = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,))
    broker.start()
    try:
        lines = uvloop.run(measured(ours.recv(), options.seconds))
    finally:
        ours.send(None)
        broker.join(10)
    if options.format == "json":
        print(json.dumps([asdict(line) for line in lines], indent=1))
        return
    for line in lines:
        print(f"{line.name:<55} {line.records_per_second:>12,.0f} records/s")


if __name__ == "__main__":
    main()
