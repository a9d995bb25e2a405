"""Faults on a cluster of real processes, many times over, and a table of what came of it.

    python -m angarium.testing.cluster.chaos [--times 20] [--only kill,pause] [--folder DIR]

`make chaos` runs it. Each line is a cluster of its own under recorded load; the checkers of the
simulator judge what clients were told against what every replica holds in the end. Any violation
makes the run fail.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import uvloop

from angarium.api import GroupConfig
from angarium.kinds import GroupKind
from angarium.modes import DeliveryMode
from angarium.testing.cluster.cluster import ProcessCluster
from angarium.testing.cluster.faults import (
    Recovery,
    kill_leader,
    part_leader,
    pause_leader,
    restart_gracefully,
    wipe,
)
from angarium.testing.cluster.group_fire import under_fire
from angarium.testing.cluster.group_load import GroupLoad
from angarium.testing.cluster.live import LiveLoad
from angarium.testing.cluster.load import Load
from angarium.testing.cluster.processes import SMALL
from angarium.testing.cluster.waiting import now_micros

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

TOPIC: Final = "orders"
PARTITIONS: Final = 3
MANY_PARTITIONS: Final = 100
MEASURE_S: Final = 5.0

GROUP_RECORDS: Final = 1_000_000
GROUP_S: Final = 100.0
"""How many records a group consumes under fire, and over how long they are published."""

GROUP_SETTLE_S: Final = 600.0
"""How long it may take to be done with a million of them after that, on a busy machine."""

FAILOVER_SECONDS_MAX: Final = 2.0
"""The promise: from a leader's death to the first CONSISTENT ack."""

FAILOVER_MANY_SECONDS_MAX: Final = 5.0
"""The same for every one of a hundred partitions."""

THROUGHPUT_MIN: Final = 0.8
"""The promise: what is left of the throughput with one of three nodes dead."""


@dataclass(slots=True)
class Line:
    """One line of the table."""

    fault: str
    mode: str
    times: int
    acknowledged: int = 0
    violations: list[str] = field(default_factory=list)
    recovery: Recovery = field(default_factory=Recovery)
    note: str = ""

    def __str__(self) -> str:
        gaps, shares = self.recovery.gaps_s, self.recovery.available
        waits = f"{statistics.median(gaps):.2f} / {max(gaps):.2f}" if gaps else "-"
        available = f"{statistics.mean(shares):.1%}" if shares else "-"
        return (
            f"| {self.fault} | {self.mode} | {self.times} | {self.acknowledged:,} | "
            f"{len(self.violations)} | {waits} | {available} | {self.note} |"
        )


HEADING: Final = """\
| fault | mode | times | records acknowledged | violations | without an ack, s: median / longest \
| windows with an ack | |
|---|---|---|---|---|---|---|---|"""


class Chaos:
    """Runs the faults, each in a cluster of its own."""

    def __init__(self, folder: Path, times: int) -> None:
        self._folder = folder
        self._times = times
        self._number = 0

    def faults(self) -> dict[str, list[Callable[[], Awaitable[Line]]]]:
        """Return every kind of fault by its name, and what to run for it."""
        consistent, eventual = DeliveryMode.CONSISTENT, DeliveryMode.EVENTUAL
        return {
            "kill": [lambda: self.kills(consistent), lambda: self.kills(eventual), self.live_kills],
            "pause": [lambda: self.pauses(consistent), lambda: self.pauses(eventual)],
            "part": [lambda: self.parts(consistent), lambda: self.parts(eventual)],
            "rolling": [self.rolling],
            "wipe": [self.wipes],
            "many": [self.many_partitions],
            "dead": [self.throughput_with_one_dead],
            "groups": [
                lambda: self.groups(GroupKind.QUEUE),
                lambda: self.groups(GroupKind.STREAM),
            ],
        }

    async def groups(self, kind: GroupKind) -> Line:
        """Kill members of a group, and leaders, while it works; judge every record."""
        line = Line(f"{kind.name.lower()} group: members and leaders killed", "CONSISTENT", 1)
        poison = kind is GroupKind.QUEUE
        async with self._cluster() as cluster:
            await cluster.create_topic(TOPIC, partitions=PARTITIONS)
            load = GroupLoad(
                cluster,
                self._folder / f"members-{kind.name.lower()}",
                topic=TOPIC,
                kind=kind,
                config=GroupConfig(max_attempts=5 if poison else 100, backoff_max_ms=500),
                fail_share=0.002 if poison else 0.0,
                poison_every=50_021 if poison else 0,
                work_ms=10,
            )
            verdict = await under_fire(
                cluster,
                load,
                records=GROUP_RECORDS,
                seconds=GROUP_S,
                node_kills=max(1, self._times // 2),
                partitions=PARTITIONS,
                seed=self._times,
                settle_s=GROUP_SETTLE_S,
            )
        line.times = verdict.killed
        line.acknowledged = verdict.records
        line.violations += verdict.violations
        line.note = (
            f"{verdict.deliveries:,} handed out, {verdict.again:,} of them again, "
            f"{verdict.dead} dead letters"
        )
        return line

    # --- one line each ----------------------------------------------------------------------

    async def kills(self, mode: DeliveryMode) -> Line:
        """Kill the leader under load, again and again."""
        line = Line("leader killed (SIGKILL)", mode.name, self._times)
        async with self._cluster() as cluster:
            await cluster.create_topic(TOPIC, partitions=PARTITIONS)
            async with self._load(cluster, mode) as load:
                for number in range(self._times):
                    partition = number % PARTITIONS
                    await kill_leader(cluster, load, line.recovery, partition=partition)
                await self._judge(line, load)
        self._expect(line, FAILOVER_SECONDS_MAX)
        return line

    async def live_kills(self) -> Line:
        """Kill the leader while records pass through memory only."""
        line = Line("leader killed (SIGKILL)", DeliveryMode.PERFORMANCE.name, self._times)
        async with self._cluster() as cluster:
            await cluster.create_topic(TOPIC)
            async with LiveLoad(cluster, topic=TOPIC) as load:
                for _ in range(self._times):
                    leader = await cluster.leader(TOPIC)
                    moment = now_micros()
                    cluster.nodes[leader].kill()
                    answered = await load.acknowledged_after(moment)
                    line.recovery.gaps_s.append((answered - moment) / 1_000_000)
                    cluster.restart(leader)
                    await cluster.back(leader)
                    await cluster.settled(topics=[TOPIC])
                await load.stop()
            line.acknowledged = load.acknowledged
            line.violations = load.incidents
            handed = min(load.delivered.values())
            line.note = f"each subscriber was handed at least {handed / load.acknowledged:.1%}"
        return line

    async def pauses(self, mode: DeliveryMode) -> Line:
        """Pause the leader until another one has taken over."""
        line = Line("leader paused (SIGSTOP)", mode.name, self._times)
        async with self._cluster() as cluster:
            await cluster.create_topic(TOPIC, partitions=PARTITIONS)
            async with self._load(cluster, mode) as load:
                for number in range(self._times):
                    partition = number % PARTITIONS
                    await pause_leader(cluster, load, line.recovery, partition=partition)
                await self._judge(line, load)
        return line

    async def parts(self, mode: DeliveryMode) -> Line:
        """Cut the leader off from the others, but not from its clients."""
        line = Line("leader cut off from the others", mode.name, self._times)
        async with self._cluster(parted=True) as cluster:
            await cluster.create_topic(TOPIC, partitions=PARTITIONS)
            async with self._load(cluster, mode) as load:
                for number in range(self._times):
                    partition = number % PARTITIONS
                    await part_leader(cluster, load, line.recovery, partition=partition)
                await self._judge(line, load)
        return line

    async def rolling(self) -> Line:
        """Restart every node in good order, round after round."""
        rounds = max(1, self._times // 4)
        line = Line("rolling restart (SIGTERM)", DeliveryMode.CONSISTENT.name, 3 * rounds)
        async with self._cluster() as cluster:
            await cluster.create_topic(TOPIC, partitions=PARTITIONS)
            async with self._load(cluster, DeliveryMode.CONSISTENT) as load:
                for _ in range(rounds):
                    for node in cluster.ids:
                        await restart_gracefully(cluster, load, line.recovery, node)
                await self._judge(line, load)
        return line

    async def wipes(self) -> Line:
        """Kill nodes, throw their data away and let the others bring them back."""
        line = Line("node killed and wiped", DeliveryMode.CONSISTENT.name, self._times)
        async with self._cluster(program=SMALL) as cluster:
            await cluster.create_topic(TOPIC, partitions=PARTITIONS)
            async with self._load(cluster, DeliveryMode.CONSISTENT) as load:
                for number in range(self._times):
                    await wipe(cluster, load, line.recovery, cluster.ids[number % 3])
                await self._judge(line, load)
        return line

    async def many_partitions(self) -> Line:
        """Kill a node that leads its share of a hundred partitions; all must answer again."""
        line = Line(f"node of {MANY_PARTITIONS} partitions killed", "CONSISTENT", 3)
        async with self._cluster() as cluster:
            await cluster.create_topic(TOPIC, partitions=MANY_PARTITIONS)
            async with self._load(
                cluster, DeliveryMode.CONSISTENT, partitions=MANY_PARTITIONS, pause_s=0.25
            ) as load:
                for partition in load.groups:
                    await load.acknowledged_after(0, partition=partition)
                for node in cluster.ids:
                    moment = now_micros()
                    cluster.nodes[node].kill()
                    last = 0
                    for partition in load.groups:
                        last = max(last, await load.acknowledged_after(moment, partition=partition))
                    line.recovery.gaps_s.append((last - moment) / 1_000_000)
                    cluster.restart(node)
                    await cluster.back(node)
                    await cluster.settled(topics=[TOPIC])
                await self._judge(line, load)
            line.note = "until every partition answered"
        self._expect(line, FAILOVER_MANY_SECONDS_MAX)
        return line

    async def throughput_with_one_dead(self) -> Line:
        """Compare what is acknowledged in five seconds before and after a node is gone."""
        line = Line("one of three nodes dead", "CONSISTENT", 3)
        ratios = []
        async with self._cluster() as cluster:
            await cluster.create_topic(TOPIC, partitions=PARTITIONS)
            async with self._load(
                cluster, DeliveryMode.CONSISTENT, producers=24, pause_s=0.0
            ) as load:
                for node in cluster.ids:
                    before = await self._rate(load)
                    cluster.nodes[node].kill()
                    for partition in load.groups:
                        await load.acknowledged_after(now_micros(), partition=partition)
                    ratios.append(await self._rate(load) / before)
                    cluster.restart(node)
                    await cluster.back(node)
                    await cluster.settled(topics=[TOPIC])
                await self._judge(line, load)
        line.note = f"throughput {statistics.median(ratios):.0%} of before"
        if statistics.median(ratios) < THROUGHPUT_MIN:
            line.violations.append(line.note)
        return line

    # --- small parts ------------------------------------------------------------------------

    def _cluster(
        self, *, parted: bool = False, program: tuple[str, ...] | None = None
    ) -> ProcessCluster:
        self._number += 1
        folder = self._folder / str(self._number)
        if program is None:
            return ProcessCluster(folder, parted=parted)
        return ProcessCluster(folder, parted=parted, program=program)

    def _load(
        self,
        cluster: ProcessCluster,
        mode: DeliveryMode,
        *,
        partitions: int = PARTITIONS,
        producers: int | None = None,
        pause_s: float = 0.02,
    ) -> Load:
        return Load(
            cluster,
            topic=TOPIC,
            partitions=partitions,
            producers=producers or max(partitions, 2 * PARTITIONS),
            subscribers=2,
            mode=mode,
            pause_s=pause_s,
        )

    async def _rate(self, load: Load) -> float:
        start = now_micros()
        await asyncio.sleep(MEASURE_S)
        return load.acknowledged_records(start, now_micros()) / MEASURE_S

    async def _judge(self, line: Line, load: Load) -> None:
        verdict = await load.conclude()
        line.acknowledged = verdict.acknowledged
        line.violations += [str(one) for one in verdict.violations]
        if verdict.lost_early:
            line.note = (
                f"{verdict.lost_early} provisional records lost with their leader, answered at "
                f"most {verdict.lost_age_micros / 1_000:.0f} ms before its last answer"
            )

    def _expect(self, line: Line, seconds_max: float) -> None:
        if line.recovery.longest_s > seconds_max:
            line.violations.append(
                f"it took {line.recovery.longest_s:.2f} s to answer again, not {seconds_max:g}"
            )


async def run(folder: Path, times: int, only: list[str]) -> int:
    """Run the faults that `only` names, or all; return the exit status."""
    chaos = Chaos(folder, times)
    faults = chaos.faults()
    print(HEADING, flush=True)
    failed = 0
    for kind in only or faults:
        for fault in faults[kind]:
            line = await fault()
            print(line, flush=True)
            failed += len(line.violations)
            for violation in line.violations[:20]:
                print(f"    {violation}", file=sys.stderr, flush=True)
    return 1 if failed else 0


def main(arguments: list[str] | None = None) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Faults on a cluster of real processes.")
    kinds = list(Chaos(Path(), 1).faults())
    parser.add_argument("--times", type=int, default=20, help="how often each fault strikes")
    parser.add_argument("--only", default="", help=f"some of {','.join(kinds)}")
    parser.add_argument("--folder", type=Path, help="where data and logs go, and stay")
    options = parser.parse_args(arguments)
    only = [one for one in options.only.split(",") if one]
    if unknown := [one for one in only if one not in kinds]:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(kinds)}")
    folder = options.folder or Path(tempfile.mkdtemp(prefix="angarium-chaos-"))
    try:
        status = uvloop.run(run(folder, options.times, only))
    except BaseException:
        print(f"data and logs of the nodes are in {folder}", file=sys.stderr)
        raise
    if status == 0 and options.folder is None:
        shutil.rmtree(folder)
    elif status:
        print(f"data and logs of the nodes are in {folder}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
