"""Hours of steady load on a cluster: does anything grow that should not?

    python -m angarium.testing.cluster.soak [--hours 0.5] [--rate 10000] [--no-groups] [--csv FILE]

`make soak HOURS=1 RATE=10000` runs it. Retention and snapshots are on, so that disk and memory have
every reason to stay as they are; beside a publisher and a subscriber a queue, a key and a stream
group work, with retries, delays, dead letters and compaction (`soak_groups`). Every sample goes to
a CSV file; at the end there are a table by the minute and a curve of each quantity, and the run
fails if one of them has not stayed flat or a record is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvloop

from angarium.api import TopicConfig
from angarium.client import Client
from angarium.errors import AngariumError
from angarium.testing.cluster.cluster import ProcessCluster
from angarium.testing.cluster.processes import SMALL
from angarium.testing.cluster.soak_groups import GroupWork
from angarium.testing.cluster.soak_report import Sample, by_minute, report
from angarium.testing.cluster.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Sequence

TOPIC: Final = "soak"
PARTITIONS: Final = 4
RETENTION_BYTES: Final = 32 << 20
"""Per partition: reached within minutes, so that most of the run is spent at the limit."""

VALUE_BYTES: Final = 100
BATCHES_PER_SECOND: Final = 100
SAMPLE_SECONDS: Final = 10.0

GROUPS_SHARE: Final = 20
"""Jobs and prices are each published at one part in so many of the rate: every one of them is
handled on its own, by more than one group."""

SEGMENT_BYTES: Final = 4 << 20
PROGRAM: Final = (*SMALL, "--segment-bytes", str(SEGMENT_BYTES))
"""The nodes have small segments, so that retention and compaction remove some every minute."""


class Soak:
    """One run."""

    def __init__(self, cluster: ProcessCluster, *, rate: int, with_groups: bool) -> None:
        self.samples: list[Sample] = []
        self.faults: list[str] = []
        self.remarks = ""
        """What there is to say about the groups."""
        self._with_groups = with_groups
        self._work: GroupWork | None = None
        self._settled_before = self._retried_before = 0
        self._cluster = cluster
        self._rate = rate
        self._acknowledged = 0
        self._unanswered = 0
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
        async with AsyncExitStack() as stack:
            publisher = await stack.enter_async_context(Client(*addresses))
            reader = await stack.enter_async_context(Client(*addresses))
            following = asyncio.create_task(self._follow(reader))
            publishing = asyncio.create_task(self._publish(publisher))
            tasks = [following, publishing]
            if self._with_groups:
                client = await stack.enter_async_context(Client(*addresses))
                work = self._work = GroupWork(client, rate=self._rate // GROUPS_SHARE)
                await work.prepare()
                tasks += map(asyncio.create_task, [*work.consumers(), work.publish()])
            try:
                await self._sample(seconds, file, tasks)
                publishing.cancel()
                if self._work is not None:
                    self._work.stop()
                    await tasks[-1]
                    self.remarks = await self._work.conclude()
                    self.faults += self._work.faults
                await self._drain()
                unanswered = self._unanswered + (self._work.unanswered if self._work else 0)
                self.remarks += f"\n{unanswered:,} records were not answered in time"
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

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
        try:
            await client.publish_batch(
                TOPIC, values, partition=partition, timestamps=time.time_ns() // 1_000
            )
        except AngariumError:
            self._unanswered += len(values)
            return
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
                        raise RuntimeError("a part of the load has ended before its time")
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
            behind=max(0, self._acknowledged - self._received),
            **self._look_at_groups(),
        )

    def _look_at_groups(self) -> dict[str, Any]:
        work = self._work
        if work is None:
            return {}
        handed, work.handed_ms = work.handed_ms, []
        late, work.late_ms = work.late_ms, []
        settled, self._settled_before = work.settled - self._settled_before, work.settled
        retried, self._retried_before = work.retried - self._retried_before, work.retried
        return {
            "handed_p99_ms": round(_percentile(handed, 0.99), 2),
            "late_p99_ms": round(_percentile(late, 0.99), 2),
            "settled_per_second": round(settled / SAMPLE_SECONDS, 1),
            "retried_per_second": round(retried / SAMPLE_SECONDS, 1),
            "dead_letters": work.dead,
            "unsettled": work.unsettled,
        }


def _percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


async def run(folder: Path, *, hours: float, rate: int, file: Path, with_groups: bool) -> bool:
    """Run once and print what came of it; tell whether all is well."""
    async with ProcessCluster(folder, program=PROGRAM) as cluster:
        soak = Soak(cluster, rate=rate, with_groups=with_groups)
        await soak.run(hours * 3_600, file)
    text, is_well = report(soak.samples, soak.faults)
    print(by_minute(soak.samples), text, soak.remarks, sep="\n\n")
    print(f"every sample is in {file}")
    return is_well


def main(arguments: list[str] | None = None) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Steady load on a cluster for hours.")
    parser.add_argument("--hours", type=float, default=0.5)
    parser.add_argument("--rate", type=int, default=10_000, help="records per second")
    parser.add_argument("--csv", type=Path, default=Path("soak.csv"), help="where samples go")
    parser.add_argument(
        "--no-groups",
        action="store_true",
        help="only a publisher and a subscriber; no groups, delays, compaction",
    )
    options = parser.parse_args(arguments)
    if options.rate < 1 or options.hours * 3_600 < 3 * SAMPLE_SECONDS:
        parser.error(f"at least one record per second, and {3 * SAMPLE_SECONDS:g} seconds")
    with tempfile.TemporaryDirectory(prefix="angarium-soak-") as folder:
        is_well = uvloop.run(
            run(
                Path(folder),
                hours=options.hours,
                rate=options.rate,
                file=options.csv,
                with_groups=not options.no_groups,
            )
        )
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
