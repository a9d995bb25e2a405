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
from angarium.testing.sim.settings import REGIONS_FROM, drawn_settings
from angarium.testing.sim.world import World

if TYPE_CHECKING:
    from typing import TextIO

    from angarium.testing.sim.campaign import Summary
    from angarium.testing.sim.world import Report


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and run; 1 if any promise was broken."""
    options = _parser().parse_args(arguments)
    if options.regions:
        options.first = max(options.first, REGIONS_FROM)  # there are none before
    if options.replay is not None:
        return _replay(options.schedule, options.replay, lines=options.lines)
    chosen = (one for one in count(options.first) if _is_wanted(one, options))
    seeds = list(islice(chosen, options.seeds))
    quiet = options.format == "json" or not sys.stderr.isatty()
    told: set[int] = set()

    def progress(summary: Summary) -> None:
        # At once, for a long run is not waited for: its seed can be looked at meanwhile.
        for report in summary.failing[len(told) :]:
            told.add(report.seed)
            _explain(options.schedule, report, to=sys.stderr)
        if not quiet:
            _progress(summary)

    summary = run_many(options.schedule, seeds, jobs=options.jobs, progress=progress)
    if not quiet:
        sys.stderr.write("\n")
    if options.format == "json":
        print(json.dumps(_as_json(summary)))
    else:
        print("\n".join(summary.lines()))
        for report in summary.failing:
            _explain(options.schedule, report, to=sys.stdout)
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
        "--regions",
        action="store_true",
        help=f"only seeds whose random runs have several regions, of those from {REGIONS_FROM} on",
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


def _is_wanted(seed: int, options: argparse.Namespace) -> bool:
    settings = drawn_settings(seed)
    if options.groups and not settings.members:
        return False
    return not options.regions or settings.wan is not None


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


def _explain(schedule: str, report: Report, *, to: TextIO) -> None:
    lines = [f"\nseed {report.seed} breaks {len(report.violations)} promise(s):"]
    lines += [f"  {violation}" for violation in report.violations[:5]]
    chosen = "" if schedule == RANDOM else f"--schedule {schedule} "
    lines.append(f"  replay: python -m angarium.testing.sim {chosen}--replay {report.seed}")
    print("\n".join(lines), file=to, flush=True)


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
