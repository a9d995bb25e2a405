"""Topic to topic through Spark while everything dies: is the output exactly the input's image?

    python -m angarium.testing.spark.chaos [--records 5000000] [--faults 30] [--seed 1]

`make chaos-spark` runs it. A cluster of three broker nodes, a standalone Spark cluster of two
workers, and a query from one topic to another. While records are published and copied, the query's
driver, an executor or the leader of a partition is killed (SIGKILL), drawn by lot. In the end every
record's id must be in the output once: no duplicate, no hole. Otherwise the run fails.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.client import Client
from angarium.client.settings import ClientSettings
from angarium.testing.cluster.cluster import ProcessCluster
from angarium.testing.spark.copying import IMAGE, Job
from angarium.testing.spark.standalone import (
    EXECUTOR_MEMORY,
    QUICK_JAVA,
    Standalone,
    driver_environment,
    kill_tree,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SOURCE: Final = "chaos-source"
SINK: Final = "chaos-sink"
PARTITIONS: Final = 4
PER_BATCH: Final = 10_000
KINDS: Final = ("driver", "executor", "leader")

STALL_SECONDS_MAX: Final = 300.0
"""How long the output may stand still before the run is given up, unless told otherwise. A driver
that was killed takes a quiet machine some 30 s to replace, and a starved one several minutes."""


@dataclass(slots=True)
class Verdict:
    """What came of it."""

    records: int
    copied: int = 0
    missing: int = 0
    duplicates: int = 0
    strangers: int = 0
    """Values in the output that are nobody's image."""
    killed: Counter[str] = field(default_factory=Counter)
    ended: list[str] = field(default_factory=list)
    """The last words of drivers that ended without being killed."""
    seconds: float = 0.0

    @property
    def is_exact(self) -> bool:
        """Whether the output is the input's image."""
        return not (self.missing or self.duplicates or self.strangers)

    def __str__(self) -> str:
        kills = ", ".join(f"{kind} {self.killed[kind]}" for kind in KINDS)
        return (
            "| records | copied | missing | duplicates | strangers | killed | drivers that gave up "
            "| seconds |\n|---|---|---|---|---|---|---|---|\n"
            f"| {self.records:,} | {self.copied:,} | {self.missing} | {self.duplicates} | "
            f"{self.strangers} | {kills} | {len(self.ended)} | {self.seconds:.0f} |"
        )


class Chaos:
    """One run."""

    def __init__(
        self,
        brokers: ProcessCluster,
        spark: Standalone,
        folder: Path,
        *,
        records: int,
        faults: Sequence[str],
        say: Callable[[str], None],
        records_per_batch: int = 20_000,
        quick: bool = False,
        stall_s_max: float = STALL_SECONDS_MAX,
    ) -> None:
        """Copy `records` records, and meanwhile kill one of each kind in `faults`, in this order.

        `quick` is for short runs: Java compiles less. After `stall_s_max` without a record copied
        it fails.
        """
        self._brokers = brokers
        self._spark = spark
        self._folder = folder
        self._records = records
        self._faults = list(faults)
        self._say = say
        self._per_batch = records_per_batch
        self._quick = quick
        self._stall_s_max = stall_s_max
        self._driver: subprocess.Popen[bytes] | None = None
        self._verdict = Verdict(records)

    async def run(self) -> Verdict:
        """Publish, copy, kill, and compare."""
        begun = time.monotonic()
        for topic in (SOURCE, SINK):
            await self._brokers.create_topic(topic, partitions=PARTITIONS)
        servers = ",".join(node.address for node in self._brokers.nodes.values())
        settings = ClientSettings(request_timeout_s=120.0)
        async with Client(servers, settings=settings) as client:
            publishing = asyncio.create_task(self._publish(client))
            try:
                self._start_driver(servers)
                await self._kill_by_the_way(client, servers)
                await publishing
                await self._until(client, servers, self._records)
            finally:
                publishing.cancel()
                self._stop_driver()
            await self._compare(client)
        self._verdict.seconds = time.monotonic() - begun
        return self._verdict

    # --- the work ---------------------------------------------------------------------------

    async def _publish(self, client: Client) -> None:
        for start in range(0, self._records, PER_BATCH):
            ids = range(start, min(start + PER_BATCH, self._records))
            values = [b"%d" % one for one in ids]
            await client.publish_batch(SOURCE, values, partition=start // PER_BATCH % PARTITIONS)

    async def _kill_by_the_way(self, client: Client, servers: str) -> None:
        """Kill one after the other, spread over the way from nothing to everything."""
        for number, kind in enumerate(self._faults):
            await self._until(
                client, servers, self._records * (number + 1) // (len(self._faults) + 1)
            )
            await getattr(self, f"_kill_{kind}")(servers)
            self._verdict.killed[kind] += 1

    async def _until(self, client: Client, servers: str, wanted: int) -> None:
        """Wait until so many images are there; a driver that gave up is started again."""
        seen, moved = -1, time.monotonic()
        while True:
            with suppress(OSError):
                copied = await self._copied(client)
                if copied >= wanted:
                    return
                if copied != seen:
                    seen, moved = copied, time.monotonic()
                    self._say(f"{copied:,} of {self._records:,} copied")
            if time.monotonic() - moved > self._stall_s_max:
                raise TimeoutError(
                    f"nothing was copied for {self._stall_s_max:.0f} s; the driver's last words:\n"
                    + self._last_words()
                )
            assert self._driver is not None
            if self._driver.poll() is not None:
                self._verdict.ended.append(self._last_words())
                self._say("the driver gave up; starting it again")
                self._start_driver(servers)
            await asyncio.sleep(0.2)

    async def _copied(self, client: Client) -> int:
        info = await client.describe_topic(SINK)
        return sum(int(one.end_offset or 0) for one in info.partitions)

    async def _compare(self, client: Client) -> None:
        """Look every id up in the output."""
        self._say("comparing")
        seen = bytearray(self._records)
        verdict = self._verdict
        async for batch in client.read_batches(SINK):
            for value in batch.values():
                verdict.copied += 1
                text = bytes(value or b"").removeprefix(IMAGE)
                number = int(text) if text.isdigit() and value != text else -1
                if not 0 <= number < self._records:
                    verdict.strangers += 1
                elif seen[number]:
                    verdict.duplicates += 1
                else:
                    seen[number] = 1
        verdict.missing = seen.count(0)

    # --- the faults -------------------------------------------------------------------------

    async def _kill_driver(self, servers: str) -> None:
        self._say("killing the driver")
        assert self._driver is not None
        kill_tree(self._driver)
        self._start_driver(servers)

    async def _kill_executor(self, _: str) -> None:
        executors = self._spark.executors()
        if not executors:
            return  # all of them are on their way
        self._say("killing an executor")
        with suppress(ProcessLookupError):
            os.kill(random.choice(executors), signal.SIGKILL)

    async def _kill_leader(self, _: str) -> None:
        topic, partition = random.choice([SOURCE, SINK]), random.randrange(PARTITIONS)
        leader = await self._brokers.leader(topic, partition, within_s=60.0)
        self._say(f"killing the broker that leads {topic} partition {partition}")
        self._brokers.nodes[leader].kill()
        self._brokers.restart(leader)
        await self._brokers.back(leader)
        # Another one may only die when this one is whole again.
        await self._brokers.settled(within_s=120.0)

    # --- the driver -------------------------------------------------------------------------

    def _start_driver(self, servers: str) -> None:
        config = {
            "spark.executor.memory": EXECUTOR_MEMORY,
            # However many executors die, the master goes on replacing them.
            "spark.deploy.maxExecutorRetries": "-1",
        }
        if self._quick:
            config["spark.driver.extraJavaOptions"] = QUICK_JAVA
            config["spark.executor.extraJavaOptions"] = QUICK_JAVA
        job = Job(
            master=self._spark.master,
            servers=servers,
            source=SOURCE,
            sink=SINK,
            checkpoint=str(self._folder / "checkpoint"),
            records_per_batch=self._per_batch,
            config=config,
        )
        with self._log.open("ab") as log:
            self._driver = subprocess.Popen(
                [sys.executable, "-m", "angarium.testing.spark.copying", msgspec.json.encode(job)],
                env=driver_environment(),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    def _stop_driver(self) -> None:
        if self._driver is not None:
            kill_tree(self._driver)

    @property
    def _log(self) -> Path:
        return self._folder / "driver.log"

    def _last_words(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-3000:]


def drawn(count: int, seed: int) -> list[str]:
    """Return so many kinds of faults by lot, each of them if there are enough."""
    lot = random.Random(seed)
    kinds = [*KINDS, *lot.choices(KINDS, k=max(0, count - len(KINDS)))][:count]
    lot.shuffle(kinds)
    return kinds


async def run(
    folder: Path,
    *,
    records: int,
    faults: Sequence[str],
    say: Callable[[str], None],
    spark: Standalone | None = None,
    quick: bool = False,
    records_per_batch: int = 20_000,
    stall_s_max: float = STALL_SECONDS_MAX,
) -> Verdict:
    """Make the clusters, but for a Spark that runs already, and have it all happen."""
    if spark is None:
        with Standalone(folder / "spark") as own:
            return await run(
                folder,
                records=records,
                faults=faults,
                say=say,
                spark=own,
                quick=quick,
                records_per_batch=records_per_batch,
                stall_s_max=stall_s_max,
            )
    async with ProcessCluster(folder / "brokers") as brokers:
        chaos = Chaos(
            brokers,
            spark,
            folder,
            records=records,
            faults=faults,
            say=say,
            quick=quick,
            records_per_batch=records_per_batch,
            stall_s_max=stall_s_max,
        )
        return await chaos.run()


def main(arguments: list[str]) -> int:
    """Run once, and print what came of it."""
    parser = argparse.ArgumentParser(description="Kill everything while Spark copies a topic.")
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--faults", type=int, default=30, help="how many, of all kinds, by lot")
    parser.add_argument("--seed", type=int, default=1, help="which lot")
    parser.add_argument("--per-batch", type=int, default=100_000, help="records per micro-batch")
    parser.add_argument(
        "--patience",
        type=float,
        default=STALL_SECONDS_MAX,
        metavar="S",
        help="how long nothing may be copied before it fails",
    )
    parser.add_argument("--folder", type=Path, help="where to work, and to leave what was there")
    options = parser.parse_args(arguments)
    begun = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - begun:6.0f} s  {what}", flush=True)

    faults = drawn(options.faults, options.seed)
    random.seed(options.seed)
    say(f"{options.records:,} records, {len(faults)} faults: starting three brokers and Spark")
    with tempfile.TemporaryDirectory(prefix="angarium-chaos-") as scratch:
        verdict = asyncio.run(
            run(
                options.folder or Path(scratch),
                records=options.records,
                faults=faults,
                say=say,
                records_per_batch=options.per_batch,
                stall_s_max=options.patience,
            )
        )
    print(verdict)
    for words in verdict.ended:
        print(f"--- a driver gave up:\n{words}")
    return 0 if verdict.is_exact else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
