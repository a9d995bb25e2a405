"""Many seeds at once: runs them on every core, adds them up, and says how to replay a bad one."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from angarium.testing.sim.scenarios import SCENARIOS
from angarium.testing.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from angarium.testing.sim.world import Report

RANDOM = "random"
"""The name of the schedule that has none."""


@dataclass(slots=True)
class Summary:
    """What a number of runs showed together."""

    runs: int = 0
    steps: int = 0
    simulated_seconds: float = 0.0
    operations: int = 0
    operations_min: int = 0
    acknowledged: int = 0
    overlapping_min: int = 0
    eventual_lost: int = 0
    seconds: float = 0.0
    cores: int = 1
    faults: Counter[str] = field(default_factory=Counter)
    failing: list[Report] = field(default_factory=list)

    def add(self, report: Report) -> None:
        """Take one more run into account."""
        first = self.runs == 0
        self.runs += 1
        self.steps += report.steps
        self.simulated_seconds += report.simulated / 1_000_000
        self.operations += report.operations
        self.operations_min = (
            report.operations if first else min(self.operations_min, report.operations)
        )
        self.overlapping_min = (
            report.overlapping if first else min(self.overlapping_min, report.overlapping)
        )
        self.acknowledged += report.acknowledged
        self.eventual_lost += report.eventual_lost
        self.faults.update(report.faults)
        if report.violations:
            self.failing.append(report)

    def lines(self) -> Iterator[str]:
        """Yield the summary for a person."""
        rate = self.steps / max(self.seconds, 1e-9) / self.cores
        yield f"runs                  {self.runs:,}"
        yield f"simulated             {self.simulated_seconds / 3600:,.2f} hours"
        yield f"events                {self.steps:,} ({rate:,.0f}/s per core, {self.cores} core(s))"
        yield f"client operations     {self.operations:,} (fewest in a run: {self.operations_min})"
        yield f"acknowledged records  {self.acknowledged:,} checked"
        yield f"EVENTUAL lost         {self.eventual_lost:,} records, all reported by a replica"
        total, least = self.faults.total(), self.overlapping_min
        yield f"faults                {total:,} (fewest in a run under load: {least})"
        for kind, count in sorted(self.faults.items()):
            yield f"  {kind:<20}{count:,}"
        yield f"violations            {sum(len(bad.violations) for bad in self.failing)}"


def run_one(task: tuple[str, int]) -> Report:
    """Run one seed of one schedule."""
    schedule, seed = task
    return World(seed).run() if schedule == RANDOM else SCENARIOS[schedule](seed)


def run_many(
    schedule: str,
    seeds: Iterable[int],
    *,
    jobs: int,
    progress: Callable[[Summary], None] | None = None,
) -> Summary:
    """Run every seed, on `jobs` processes, telling `progress` after each."""
    summary = Summary(cores=jobs)
    began = time.perf_counter()
    tasks = ((schedule, seed) for seed in seeds)

    def take(reports: Iterable[Report]) -> None:
        for report in reports:
            summary.add(report)
            summary.seconds = time.perf_counter() - began
            if progress is not None:
                progress(summary)

    if jobs == 1:
        take(map(run_one, tasks))
    else:
        with multiprocessing.get_context("fork").Pool(jobs) as pool:
            take(pool.imap_unordered(run_one, tasks, chunksize=4))
    return summary
