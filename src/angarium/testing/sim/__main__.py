"""`python -m angarium.testing.sim`: run seeds, or replay one and read what happened."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from itertools import count, islice
from typing import TYPE_CHECKING

from angarium.testing.sim.campaign import RANDOM, run_many
from angarium.testing.sim.scenarios import SCENARIOS
from angarium.testing.sim.settings import drawn_settings
from angarium.testing.sim.world import World

if TYPE_CHECKING:
    from angarium.testing.sim.campaign import Summary
    from angarium.testing.sim.world import Report


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and run; 1 if any promise was broken."""
    options = _parser().parse_args(arguments)
    if options.replay is not None:
        return _replay(options.schedule, options.replay, lines=options.lines)
    chosen = (one for one in count(options.first) if not options.groups or _has_groups(one))
    seeds = list(islice(chosen, options.seeds))
    quiet = options.format == "json" or not sys.stderr.isatty()
    summary = run_many(
        options.schedule, seeds, jobs=options.jobs, progress=None if quiet else _progress
    )
    if not quiet:
        sys.stderr.write("\n")
    if options.format == "json":
        print(json.dumps(_as_json(summary)))
    else:
        print("\n".join(summary.lines()))
        for report in summary.failing:
            _explain(options.schedule, report)
    return 1 if summary.failing else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m angarium.testing.sim",
        description="Simulate whole clusters under faults, one per seed, and check every promise.",
    )
    parser.add_argument("--seeds", type=int, default=150, help="how many seeds (default 150)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (default 1)")
    parser.add_argument(
        "--groups",
        action="store_true",
        help="only seeds whose random runs have consumer groups, a quarter of all",
    )
    parser.add_argument(
        "--schedule",
        choices=[RANDOM, *SCENARIOS],
        default=RANDOM,
        help="random faults, or a schedule with a name",
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: every core)"
    )
    parser.add_argument("--replay", type=int, metavar="SEED", help="run one seed, print its trace")
    parser.add_argument("--lines", type=int, default=400, help="trace lines to print (default 400)")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    return parser


def _has_groups(seed: int) -> bool:
    return drawn_settings(seed).members > 0


def _replay(schedule: str, seed: int, *, lines: int) -> int:
    if schedule == RANDOM:
        world = World(seed)
        report = world.run()
    else:
        world = World(seed, SCENARIOS[schedule].settings)
        report = world.run(SCENARIOS[schedule].script)
    for line in world.trace.lines(lines):
        print(line)
    print(f"seed {seed}, trace {report.digest}, {report.steps:,} events")
    if world.broken is not None:
        traceback.print_exception(world.broken)
    for violation in report.violations:
        print(f"VIOLATION {violation}")
    return 1 if report.violations else 0


def _explain(schedule: str, report: Report) -> None:
    print(f"\nseed {report.seed} breaks {len(report.violations)} promise(s):")
    for violation in report.violations[:5]:
        print(f"  {violation}")
    chosen = "" if schedule == RANDOM else f"--schedule {schedule} "
    print(f"  replay: python -m angarium.testing.sim {chosen}--replay {report.seed}")


def _progress(summary: Summary) -> None:
    sys.stderr.write(
        f"\r{summary.runs:,} runs, {summary.acknowledged:,} records checked, "
        f"{len(summary.failing)} failing, {summary.seconds:,.0f} s "
    )
    sys.stderr.flush()


def _as_json(summary: Summary) -> dict[str, object]:
    return {
        "runs": summary.runs,
        "simulated_hours": summary.simulated_seconds / 3600,
        "events": summary.steps,
        "events_per_second_per_core": summary.steps / max(summary.seconds, 1e-9) / summary.cores,
        "operations": summary.operations,
        "operations_min": summary.operations_min,
        "acknowledged_records": summary.acknowledged,
        "eventual_lost": summary.eventual_lost,
        "faults": dict(summary.faults),
        "faults_overlapping_min": summary.overlapping_min,
        "failing_seeds": [report.seed for report in summary.failing],
        "seconds": summary.seconds,
    }


if __name__ == "__main__":
    sys.exit(main())
