"""Gigabytes move from one node to the others while publishers go on, beside the same load before.

    python -m benchmarks.moving [--gigabytes 10] [--rate 5000] [--seconds 30] [--folder DIR]
                                [--json FILE]

Four nodes, real processes. A topic without copies is filled at one node; another one with three
replicas takes single CONSISTENT publishes at a rate: for some seconds in quiet, for as long as the
full node is drained, and in quiet once more. What counts: publishes that failed, and the p99 of
both. A publish that comes later than its time is measured from when it was due.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from angarium import Client
from angarium.api import TopicConfig
from angarium.cli.output import print_table
from angarium.errors import AngariumError
from angarium.testing.cluster import ProcessCluster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from angarium.ids import NodeId

NODES: Final = 4
BULK_PARTITIONS: Final = 32
RECORD_BYTES: Final = 64 << 10
BATCH_RECORDS: Final = 64
FILLING_AT_ONCE: Final = 4
SIZE: Final = 100
SETTLE_S: Final = 180.0
MOVED_S_MAX: Final = 3_600.0


@dataclass(slots=True)
class Load:
    """What became of the publishes of one time."""

    took_ms: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        """Return what so many of the publishes took at most, in ms."""
        ordered = sorted(self.took_ms)
        return ordered[int(len(ordered) * share)] if ordered else 0.0


@dataclass(frozen=True, slots=True)
class Moving:
    """What one run came to."""

    gigabytes: float
    seconds: float
    rate: float
    rate_quiet: float
    failed: int
    p50_quiet_ms: float
    p50_moving_ms: float
    p99_quiet_ms: float
    p99_moving_ms: float

    @property
    def p99_ratio(self) -> float:
        """How many times as long the slowest hundredth took while data moved."""
        return self.p99_moving_ms / self.p99_quiet_ms


async def measured(folder: Path, *, gigabytes: float, rate: int, seconds: float) -> Moving:
    """Fill a node, and drain it under load."""
    async with ProcessCluster(folder, nodes=NODES) as cluster:
        await cluster.create_topic("orders", partitions=NODES, config=TopicConfig(replication=3))
        await cluster.create_topic(
            "bulk", partitions=BULK_PARTITIONS, config=TopicConfig(replication=1)
        )
        await cluster.settled(topics=["orders", "bulk"], within_s=SETTLE_S)
        async with Client(*(one.address for one in cluster.nodes.values())) as client:
            full = cluster.ids[-1]
            await fill(client, full, round(gigabytes * 1e9))
            quiet, moving = Load(), Load()
            quiet_s = await publish(client, quiet, rate, lambda: asyncio.sleep(seconds))
            print(f"in quiet: p99 {quiet.percentile(0.99):.1f} ms", flush=True)
            moving_s = await publish(client, moving, rate, lambda: drain(client, full))
            # On both sides of it: what else the machine does changes with the minutes.
            quiet_s += await publish(client, quiet, rate, lambda: asyncio.sleep(seconds))
            return Moving(
                gigabytes=gigabytes,
                seconds=moving_s,
                rate=len(moving.took_ms) / moving_s,
                rate_quiet=len(quiet.took_ms) / quiet_s,
                failed=len(quiet.failures) + len(moving.failures),
                p50_quiet_ms=quiet.percentile(0.5),
                p50_moving_ms=moving.percentile(0.5),
                p99_quiet_ms=quiet.percentile(0.99),
                p99_moving_ms=moving.percentile(0.99),
            )


async def fill(client: Client, node: NodeId, size: int) -> None:
    """Store `size` bytes, which no compression makes fewer, in the partitions of one node."""
    info = await client.describe_topic("bulk")
    partitions = [
        number for number, one in enumerate(info.partitions) if tuple(one.replicas) == (node,)
    ]
    batches = max(1, size // (RECORD_BYTES * BATCH_RECORDS))
    values = [os.urandom(RECORD_BYTES) for _ in range(BATCH_RECORDS)]
    began, done = time.perf_counter(), 0

    async def store(turns: range) -> None:
        nonlocal done
        for turn in turns:
            partition = partitions[turn % len(partitions)]
            await client.publish_batch("bulk", values, partition=partition)
            done += 1
            if done % 256 == 0:
                stored, took = done * RECORD_BYTES * BATCH_RECORDS, time.perf_counter() - began
                print(f"filled {stored / 1e9:.1f} GB, {stored / took / 1e6:.0f} MB/s", flush=True)

    await asyncio.gather(
        *(store(range(one, batches, FILLING_AT_ONCE)) for one in range(FILLING_AT_ONCE))
    )


async def publish(
    client: Client, load: Load, rate: int, until: Callable[[], Awaitable[None]]
) -> float:
    """Publish single records at a rate until something is over; return how long that took."""
    over = asyncio.ensure_future(until())
    waiting: set[asyncio.Task[None]] = set()
    began, sent = time.perf_counter(), 0

    async def one(due: float) -> None:
        try:
            await client.publish("orders", b"x" * SIZE)
        except AngariumError as error:
            load.failures.append(f"{type(error).__name__}: {error}")
        else:
            load.took_ms.append((time.perf_counter() - due) * 1_000)

    while not over.done():
        while sent / rate < time.perf_counter() - began:
            task = asyncio.create_task(one(began + sent / rate))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
            sent += 1
        await asyncio.sleep(0.001)
    lasted = time.perf_counter() - began
    await asyncio.gather(*waiting)
    await over
    return lasted


async def drain(client: Client, node: NodeId) -> None:
    """Empty a node, and wait until it holds nothing more."""
    await client.drain_node(node)
    began = time.perf_counter()
    while True:
        info = await client.describe_topic("bulk")
        left = sum(node in one.replicas for one in info.partitions)
        if not left:
            return
        if time.perf_counter() - began > MOVED_S_MAX:
            raise SystemExit(f"{left} partitions have not moved within {MOVED_S_MAX:g} s")
        await asyncio.sleep(0.5)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        found = asyncio.run(
            measured(
                Path(folder),
                gigabytes=options.gigabytes,
                rate=options.rate,
                seconds=options.seconds,
            )
        )
    print_table(
        ("moved", "took", "published", "failed", "p50, quiet and moving", "p99", "ratio of p99"),
        [
            (
                f"{found.gigabytes:g} GB",
                f"{found.seconds:.0f} s",
                f"{found.rate_quiet:,.0f} and {found.rate:,.0f}/s",
                found.failed,
                f"{found.p50_quiet_ms:.1f} and {found.p50_moving_ms:.1f} ms",
                f"{found.p99_quiet_ms:.1f} and {found.p99_moving_ms:.1f} ms",
                f"{found.p99_ratio:.2f}",
            )
        ],
        none="",
    )
    if options.json:
        options.json.write_text(json.dumps(asdict(found), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
