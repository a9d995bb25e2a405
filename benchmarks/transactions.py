"""What a transaction costs, beside plain publishing, on a cluster of three processes.

    python -m benchmarks.transactions [--rounds 200]

Latencies are of one caller that waits for each answer; throughput is of staged batches of 100-byte
records, committed in one go, beside the same batches published. Figures of one run belong together:
only their ratios say anything on a shared machine.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import uvloop

from angarium import Client
from angarium.testing.cluster import ProcessCluster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

RECORD = b"x" * 100
ROWS = 10_000
BATCHES = 20


async def latency_ms(work: Callable[[int], Awaitable[object]], rounds: int) -> float:
    """Return the median time of `work`, one after the other."""
    times = []
    for number in range(rounds):
        started = time.perf_counter()
        await work(number)
        times.append(time.perf_counter() - started)
    return median(times) * 1_000


async def measured(rounds: int) -> dict[str, float]:
    """Return every figure by its name."""
    found: dict[str, float] = {}
    with TemporaryDirectory(prefix="angarium-") as folder:
        async with ProcessCluster(Path(folder), nodes=3) as cluster:
            addresses = [cluster.nodes[node].address for node in cluster.ids]
            async with Client(*addresses, producer="bench") as client:
                await cluster.create_topic("one", partitions=1)
                await cluster.create_topic("two", partitions=2)

                async def transact(partitions: int) -> None:
                    async with client.transaction() as tx:
                        for partition in range(partitions):
                            await tx.publish("two", RECORD, partition=partition)

                await client.publish("one", RECORD)
                await client.publish_once("one", RECORD, sequence=0)
                await transact(2)
                found["publish, ms"] = await latency_ms(
                    lambda _: client.publish("one", RECORD), rounds
                )
                found["publish_once, ms"] = await latency_ms(
                    lambda number: client.publish_once("one", RECORD, sequence=number + 1), rounds
                )
                found["transaction, 1 partition, ms"] = await latency_ms(
                    lambda _: transact(1), rounds
                )
                found["transaction, 2 partitions, ms"] = await latency_ms(
                    lambda _: transact(2), rounds
                )
                rows = [RECORD] * ROWS
                started = time.perf_counter()
                for _ in range(BATCHES):
                    await client.publish_batch("two", rows, partition=0)
                found["publish_batch, records/s"] = ROWS * BATCHES / (time.perf_counter() - started)
                started = time.perf_counter()
                async with client.transaction() as tx:
                    for _ in range(BATCHES):
                        await tx.publish_batch("two", rows, partition=1)
                found["transaction.publish_batch, records/s"] = (
                    ROWS * BATCHES / (time.perf_counter() - started)
                )
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a transaction costs.")
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for name, figure in runner.run(measured(options.rounds)).items():
            print(f"{name:<40} {figure:12,.2f}")


if __name__ == "__main__":
    main()
