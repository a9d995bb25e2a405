"""What a second process on the same machine brings: `angarium serve --processes 1` against 2.

Alternates short rounds, so that noise hits both, each on a new machine of its own with one replica
per partition, and prints every round, the medians and their ratio. Node processes, the clients that
publish and everything else share the cores that are there: the ratio says what this machine
gives, not what one with a core for each process would. For that, the records per CPU second of the
busiest node process are printed too: what the nodes could take if cores were not short.

    python benchmarks/processes.py --rounds 3 --duration 3
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium import Client
from angarium.api import TopicConfig
from angarium.errors import PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND: Final = (sys.executable, "-m", "angarium")
COUNTS: Final = (1, 2)
START_SECONDS_MAX: Final = 60.0
CLIENTS: Final = 2
"""Processes that publish, for either number of nodes: one alone could be what limits both."""
START_SECONDS: Final = 2.0
WARMUP_SECONDS: Final = 1.0
"""Before the timed window: for clients to start, and to learn who leads what."""
RECORD_BYTES: Final = 100
TOPIC: Final = "many"


class Shape(NamedTuple):
    """How each client publishes."""

    workers: int
    batch: int


SHAPES: Final = {
    "batches of 200, 2 x 16 workers": Shape(workers=16, batch=200),
    "a record a call, 2 x 32 workers": Shape(workers=32, batch=1),
}


def main() -> None:
    """Measure every shape and print it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--duration", type=float, default=3.0)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--data", help="a folder on a disk, not tmpfs, or fsync costs nothing")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load before: {os.getloadavg()[0]:.1f}")
    for name, shape in SHAPES.items():
        rates: dict[int, list[float]] = {count: [] for count in COUNTS}
        ceilings: dict[int, list[float]] = {count: [] for count in COUNTS}
        for _ in range(options.rounds):
            for count in COUNTS:
                with machine(count, options.data) as (servers, pids):
                    records, busiest = measured(servers, pids, options, shape)
                rates[count].append(records / options.duration)
                ceilings[count].append(records / busiest)
        medians = {count: statistics.median(found) for count, found in rates.items()}
        for count, found in rates.items():
            rounds = " ".join(f"{one:,.0f}" for one in found)
            print(f"{name}, processes {count}: {medians[count]:,.0f} records/s ({rounds})")
            ceiling = statistics.median(ceilings[count])
            print(f"    records per CPU second of the busiest node process: {ceiling:,.0f}")
        print(f"{name}: 2 processes give {medians[2] / medians[1]:.2f} x", flush=True)


@contextmanager
def machine(count: int, folder: str | None) -> Iterator[tuple[str, list[int]]]:
    """Run a cluster of one machine with `count` processes; yields its address and their ids."""
    port = random.randrange(20_000, 32_000, 20)  # below what the kernel hands out itself
    with tempfile.TemporaryDirectory(dir=folder) as data, Path(data, "log").open("w+b") as log:
        words = ("--data", f"{data}/nodes", "--host", "machine", "--processes", str(count))
        doors = ("--wire-port", str(port), "--grpc-port", str(port + 1), "--log-format", "json")
        nodes = subprocess.Popen([*COMMAND, "serve", "--form", *words, *doors], stderr=log)
        try:
            ready = b'"all processes run"' if count > 1 else b'"serving"'
            deadline = time.monotonic() + START_SECONDS_MAX
            while ready not in Path(data, "log").read_bytes():
                if nodes.poll() is not None or time.monotonic() > deadline:
                    sys.exit(Path(data, "log").read_text())
                time.sleep(0.05)
            lines = map(json.loads, Path(data, "log").read_text().splitlines())
            pids = [line["pid"] for line in lines if line["message"] == "process started"]
            yield f"127.0.0.1:{port}", pids or [nodes.pid]
        finally:
            nodes.send_signal(signal.SIGTERM)
            nodes.wait()


def measured(
    servers: str, pids: list[int], options: argparse.Namespace, shape: Shape
) -> tuple[int, float]:
    """Return the records acknowledged in the window, and the busiest node's CPU seconds in it."""
    asyncio.run(make_topic(servers, options.partitions))
    begin = time.time() + START_SECONDS + WARMUP_SECONDS
    end = begin + options.duration
    with ProcessPoolExecutor(CLIENTS, mp_context=get_context("spawn")) as clients:
        load = (servers, options.partitions, shape, begin, end)
        counts = [clients.submit(publish, *load) for _ in range(CLIENTS)]
        time.sleep(max(0.0, begin - time.time()))
        before = [cpu_seconds(pid) for pid in pids]
        time.sleep(max(0.0, end - time.time()))
        used = [cpu_seconds(pid) - was for pid, was in zip(pids, before, strict=True)]
        return sum(count.result() for count in counts), max(used)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time a process has used, in all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def make_topic(servers: str, partitions: int) -> None:
    """Make the topic, each partition with one replica."""
    async with Client(servers) as client:
        async with asyncio.timeout(START_SECONDS_MAX):
            while True:
                if await _is_made(client, partitions):
                    return
                await asyncio.sleep(0.05)


async def _is_made(client: Client, partitions: int) -> bool:
    config = TopicConfig(replication=1)
    try:
        await client.create_topic(TOPIC, partitions=partitions, config=config)
    except PreconditionFailed:  # the node answers a moment before its cluster is formed
        return False
    return True


def publish(servers: str, partitions: int, shape: Shape, begin: float, end: float) -> int:
    """Publish until `end`; return how many records were acknowledged after `begin`."""
    return asyncio.run(_publish(servers, partitions, shape, begin, end))


async def _publish(servers: str, partitions: int, shape: Shape, begin: float, end: float) -> int:
    values = [bytes(RECORD_BYTES)] * shape.batch
    acknowledged = 0

    async def work(number: int) -> None:
        nonlocal acknowledged
        while time.time() < end:
            await client.publish_batch(TOPIC, values, partition=number % partitions)
            if begin <= time.time() < end:
                acknowledged += shape.batch

    async with Client(servers) as client:
        await asyncio.gather(*map(work, range(shape.workers)))
    return acknowledged


if __name__ == "__main__":
    main()
