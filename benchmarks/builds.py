"""Two builds of this project under the same load, in turns: what a change brings, in ratios.

    git worktree add ../before HEAD~1
    python -m benchmarks.builds ../before . --rounds 6 [--only 'one worker,60 connections']
    python -m benchmarks.builds . . --after-env NAME=VALUE      # one build, two settings

Each build has a cluster of three nodes of its own, both stand at once, and rounds of a second or so
alternate, so that a machine whose speed changes by the minute does so for both. The client is this
one for either. Printed for each shape of load: processor time and wake-ups of all nodes per record,
records per second, and times to the acknowledgement, as the median of the first build, the median
of the second, and the median of the ratios of one round each, with the least and the most of these.
A ratio of one build to itself says how little can be told apart. Every record is read back.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import uvloop
from benchmarks.rounds import SHAPES, SIZE

from angarium.bench.cluster import BenchCluster
from angarium.bench.measuring import measure
from angarium.bench.plan import Plan, Protocol, Scenario
from angarium.bench.resources import Watched
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Figures(NamedTuple):
    """What one round of one build came to."""

    node_us: float
    client_us: float
    wakes: float
    rate: float
    p50_ms: float
    p99_ms: float


def main() -> None:
    """Measure every shape that is asked for, and print a table of each."""
    options = _parser().parse_args()
    shapes = options.only.split(",") if options.only else list(SHAPES)
    unknown = [shape for shape in shapes if shape not in SHAPES]
    if unknown:
        raise SystemExit(f"no such shape: {', '.join(unknown)}; there are {', '.join(SHAPES)}")
    print(f"{os.cpu_count()} cores, load before: {os.getloadavg()[0]:.1f}")
    uvloop.run(_run(options, shapes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", type=Path, help="the folder of the first build")
    parser.add_argument("after", type=Path, help="the folder of the second")
    parser.add_argument("--before-env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--after-env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one round")
    parser.add_argument("--only", help="shapes of load, separated by commas")
    parser.add_argument("--protocol", type=Protocol, choices=list(Protocol), default=Protocol.WIRE)
    parser.add_argument("--mode", choices=[one.name for one in DeliveryMode], default="CONSISTENT")
    parser.add_argument("--data", type=Path, help="a folder on the disk to measure with")
    return parser


async def _run(options: argparse.Namespace, shapes: Sequence[str]) -> None:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.data)))
        clusters = []
        for name, tree, settings in (
            ("before", options.before, options.before_env),
            ("after", options.after, options.after_env),
        ):
            cluster = BenchCluster(folder / name, environments=[_environment(tree, settings)] * 3)
            clusters.append(await stack.enter_async_context(cluster))
        for shape in shapes:
            rounds: list[tuple[Figures, Figures]] = []
            for number in range(options.rounds):
                # Whoever is first may find another machine than who is second: they change places.
                turns = clusters if number % 2 == 0 else clusters[::-1]
                taken = [await _round(cluster, options, shape) for cluster in turns]
                before, after = taken if number % 2 == 0 else taken[::-1]
                rounds.append((before, after))
            print(f"\n{shape}, {len(rounds)} rounds")
            print("\n".join(_lines(rounds)), flush=True)


def _environment(tree: Path, settings: Sequence[str]) -> Mapping[str, str]:
    source = (tree / "src").resolve()
    if not (source / "angarium").is_dir():
        raise SystemExit(f"{tree} is no clone of this project: it has no src/angarium")
    return {"PYTHONPATH": str(source), **dict(one.split("=", 1) for one in settings)}


async def _round(cluster: BenchCluster, options: argparse.Namespace, shape: str) -> Figures:
    mode = DeliveryMode[options.mode]
    plan = Plan(
        protocol=options.protocol,
        mode=mode,
        scenario=Scenario.LIVE if mode is DeliveryMode.PERFORMANCE else Scenario.PUBLISH,
        duration_s=options.seconds,
        warmup_s=0.3,
        size=SIZE,
        **SHAPES[shape],
    )
    report = await measure(plan, cluster.servers, [Watched(node.pid) for node in cluster.nodes])
    if not report.is_right or report.failures:
        raise SystemExit(f"the records are not right: {report.verdict}, {report.failures}")
    assert report.publish is not None
    return Figures(
        node_us=sum(one.cpu_s for one in report.usage) / report.records * 1e6,
        client_us=report.client_cpu_s / report.records * 1e6,
        wakes=sum(one.wakeups for one in report.usage) / report.records,
        rate=report.records / report.seconds,
        p50_ms=report.publish.p50_ms,
        p99_ms=report.publish.p99_ms,
    )


def _lines(rounds: Sequence[tuple[Figures, Figures]]) -> list[str]:
    lines = []
    for place, name in enumerate(Figures._fields):
        before = [one[place] for one, _ in rounds]
        after = [one[place] for _, one in rounds]
        ratios = [new / old for old, new in zip(before, after, strict=True) if old]
        if not ratios:
            continue
        lines.append(
            f"  {name:<10} {median(before):>10,.2f} {median(after):>10,.2f}"
            f"   x {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        )
    return lines


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
