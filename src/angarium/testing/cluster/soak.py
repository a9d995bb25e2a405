"""Hours of steady load on a cluster: does anything grow that should not?

    python -m angarium.testing.cluster.soak [--hours 0.5] [--rate 10000] [--csv FILE]

`make soak HOURS=1 RATE=10000` runs it. Retention and snapshots are on, so that disk and memory have
every reason to stay as they are. Every sample goes to a CSV file; at the end there is a curve of
each quantity, and the run fails if one of them has not stayed flat or a record is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

import uvloop

from angarium.api import TopicConfig
from angarium.client import Client
from angarium.testing.cluster.cluster import ProcessCluster
from angarium.testing.cluster.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Sequence

TOPIC: Final = "soak"
PARTITIONS: Final = 4
RETENTION_BYTES: Final = 64 << 20
"""Per partition: reached within minutes, so that most of the run is spent at the limit."""

VALUE_BYTES: Final = 100
BATCHES_PER_SECOND: Final = 100
SAMPLE_SECONDS: Final = 10.0
WARM_UP_SHARE: Final = 0.4
"""The part of the run in which things may still grow: caches fill, retention is not reached."""

GROWTH_MAX: Final = {"memory_mb": 1.15, "open_files": 1.10, "disk_mb": 1.15, "p99_ms": 2.0}
"""How much the last fifth of a run may lie above what came right after the warm-up, as a factor."""

_CURVE_COLUMNS: Final = 60
_BLOCKS: Final = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look at everything. Of the nodes' figures it has the largest."""

    seconds: float
    memory_mb: float
    open_files: int
    disk_mb: float
    processor_percent: float
    """Of one core, by all nodes together."""
    records_per_second: float
    p50_ms: float
    p99_ms: float
    """From publish to acknowledgement, in CONSISTENT mode."""
    delivered_p99_ms: float
    """From publish to delivery."""
    behind: int
    """Records acknowledged and not delivered yet."""


class Soak:
    """One run."""

    def __init__(self, cluster: ProcessCluster, *, rate: int) -> None:
        self.samples: list[Sample] = []
        self.faults: list[str] = []
        self._cluster = cluster
        self._rate = rate
        self._acknowledged = 0
        self._received = 0
        self._answers_ms: list[float] = []
        self._deliveries_ms: list[float] = []
        self._next: dict[int, int] = {}
        self._processor_s = 0.0

    async def run(self, seconds: float, file: Path) -> None:
        """Publish, subscribe and look, for so many seconds."""
        config = TopicConfig(retention_bytes=RETENTION_BYTES)
        await self._cluster.create_topic(TOPIC, partitions=PARTITIONS, config=config)
        addresses = [self._cluster.nodes[node].address for node in self._cluster.ids]
        async with Client(*addresses) as publisher, Client(*addresses) as reader:
            following = asyncio.create_task(self._follow(reader))
            publishing = asyncio.create_task(self._publish(publisher))
            try:
                await self._sample(seconds, file, [following, publishing])
            finally:
                publishing.cancel()
                await asyncio.gather(publishing, return_exceptions=True)
                await self._drain()
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

    async def _publish(self, client: Client) -> None:
        loop = asyncio.get_running_loop()
        count = max(1, self._rate // BATCHES_PER_SECOND)
        pause_s = count / self._rate
        values = [bytes(VALUE_BYTES)] * count
        under_way: set[asyncio.Task[None]] = set()
        due = loop.time()
        turn = 0
        while True:
            await asyncio.sleep(max(0.0, due - loop.time()))
            due += pause_s
            turn += 1
            task = loop.create_task(self._publish_one(client, values, turn % PARTITIONS))
            under_way.add(task)
            task.add_done_callback(under_way.discard)

    async def _publish_one(self, client: Client, values: list[bytes], partition: int) -> None:
        began = time.perf_counter()
        await client.publish_batch(
            TOPIC, values, partition=partition, timestamps=time.time_ns() // 1_000
        )
        self._answers_ms.append((time.perf_counter() - began) * 1_000)
        self._acknowledged += len(values)

    async def _follow(self, client: Client) -> None:
        async with client.subscribe(TOPIC, start="earliest") as subscription:
            async for received in subscription.batches():
                offsets = received.offsets()
                expected = self._next.get(received.partition, 0)
                if offsets[0] != expected:
                    self.faults.append(
                        f"partition {received.partition}: {offsets[0]} came instead of {expected}"
                    )
                self._next[received.partition] = offsets[-1] + 1
                self._received += len(received)
                first = next(iter(received))
                self._deliveries_ms.append(time.time_ns() / 1_000_000 - first.timestamp / 1_000)

    async def _drain(self) -> None:
        async def is_all_here() -> bool:
            return self._received >= self._acknowledged

        try:
            await eventually(is_all_here, within_s=10.0)
        except TimeoutError:
            self.faults.append(f"{self._acknowledged - self._received} records never came")

    # --- looking ----------------------------------------------------------------------------

    async def _sample(
        self, seconds: float, file: Path, tasks: Sequence[asyncio.Task[None]]
    ) -> None:
        began = time.monotonic()
        with file.open("w", newline="", encoding="utf-8") as stream:
            table = csv.writer(stream)
            table.writerow(one.name for one in fields(Sample))
            before, due = 0, began
            while time.monotonic() - began < seconds:
                due += SAMPLE_SECONDS
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                for task in tasks:
                    if task.done():
                        task.result()
                sample = await self._look(time.monotonic() - began, self._acknowledged - before)
                before = self._acknowledged
                self.samples.append(sample)
                table.writerow(getattr(sample, one.name) for one in fields(Sample))
                stream.flush()

    async def _look(self, seconds: float, acknowledged: int) -> Sample:
        nodes = [self._cluster.nodes[node] for node in self._cluster.ids]
        answers, self._answers_ms = self._answers_ms, []
        deliveries, self._deliveries_ms = self._deliveries_ms, []
        processor_s = sum(node.processor_seconds() for node in nodes)
        spent_s, self._processor_s = processor_s - self._processor_s, processor_s
        disks = await asyncio.to_thread(lambda: [node.disk_bytes() for node in nodes])
        return Sample(
            seconds=round(seconds, 1),
            memory_mb=round(max(node.resident_bytes() for node in nodes) / 1e6, 1),
            open_files=max(node.open_files() for node in nodes),
            disk_mb=round(max(disks) / 1e6, 1),
            processor_percent=round(100 * spent_s / SAMPLE_SECONDS, 1),
            records_per_second=round(acknowledged / SAMPLE_SECONDS, 1),
            p50_ms=round(_percentile(answers, 0.5), 2),
            p99_ms=round(_percentile(answers, 0.99), 2),
            delivered_p99_ms=round(_percentile(deliveries, 0.99), 2),
            behind=self._acknowledged - self._received,
        )


# --- what came of it ------------------------------------------------------------------------


def growth(samples: Sequence[Sample], name: str) -> float:
    """Return by what factor a quantity lies higher at the end than after the warm-up."""
    warm = samples[int(len(samples) * WARM_UP_SHARE) :]
    part = max(1, len(warm) // 3)
    first = statistics.median(getattr(one, name) for one in warm[:part])
    last = statistics.median(getattr(one, name) for one in warm[-part:])
    return last / first if first else 1.0


def curve(samples: Sequence[Sample], name: str) -> str:
    """Return a line of blocks that shows how a quantity went, from 0 to its highest value."""
    values = [float(getattr(one, name)) for one in samples]
    width = max(1, -(-len(values) // _CURVE_COLUMNS))
    means = [statistics.mean(values[at : at + width]) for at in range(0, len(values), width)]
    highest = max(means) or 1.0
    return "".join(_BLOCKS[min(7, int(8 * one / highest))] for one in means)


def report(samples: Sequence[Sample], faults: Sequence[str]) -> tuple[str, bool]:
    """Return a table with a curve per quantity, and whether all is well."""
    lines = ["| quantity | first | last | highest | growth | curve |", "|---|---|---|---|---|---|"]
    is_well = not faults
    for field in fields(Sample)[1:]:
        values = [getattr(one, field.name) for one in samples]
        factor = growth(samples, field.name)
        bound = GROWTH_MAX.get(field.name)
        verdict = f"{factor:.2f}"
        if bound is not None and factor > bound:
            is_well = False
            verdict += f" (more than {bound:g})"
        lines.append(
            f"| {field.name} | {values[0]:,} | {values[-1]:,} | {max(values):,} | {verdict} | "
            f"`{curve(samples, field.name)}` |"
        )
    lines += [f"- {fault}" for fault in faults[:20]]
    return "\n".join(lines), is_well


def _percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


async def run(folder: Path, *, hours: float, rate: int, file: Path) -> bool:
    """Run once and print what came of it; tell whether all is well."""
    async with ProcessCluster(folder) as cluster:
        soak = Soak(cluster, rate=rate)
        await soak.run(hours * 3_600, file)
    text, is_well = report(soak.samples, soak.faults)
    print(text)
    print(f"every sample is in {file}")
    return is_well


def main(arguments: list[str] | None = None) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Steady load on a cluster for hours.")
    parser.add_argument("--hours", type=float, default=0.5)
    parser.add_argument("--rate", type=int, default=10_000, help="records per second")
    parser.add_argument("--csv", type=Path, default=Path("soak.csv"), help="where samples go")
    options = parser.parse_args(arguments)
    if options.rate < 1 or options.hours * 3_600 < 3 * SAMPLE_SECONDS:
        parser.error(f"at least one record per second, and {3 * SAMPLE_SECONDS:g} seconds")
    with tempfile.TemporaryDirectory(prefix="angarium-soak-") as folder:
        is_well = uvloop.run(
            run(Path(folder), hours=options.hours, rate=options.rate, file=options.csv)
        )
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
