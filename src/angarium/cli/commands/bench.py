"""`angarium bench`: measure a cluster and check every record."""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import uvloop

from angarium.bench.cluster import BenchCluster
from angarium.bench.consuming import SLOW_S
from angarium.bench.measuring import measure
from angarium.bench.plan import Plan, Protocol, Route, Scenario
from angarium.bench.report import lines
from angarium.bench.resources import Watched, listeners
from angarium.cli.output import print_json
from angarium.cli.profiles import choices
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.bench.report import Report
    from angarium.cli.profiles import Choices

NOT_RIGHT = 1
"""The exit status when a record was lost, invented, repeated or out of order."""


def run(options: Namespace) -> int:
    """Measure, print the report, and say by the exit status whether all records were right."""
    plan = plan_of(options)
    chosen = choices(options)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        report = runner.run(_measured(plan, options, chosen))
    if chosen.is_json:
        print_json(msgspec.to_builtins(report))
    else:
        print("\n".join(lines(report)))
    return 0 if report.is_right else NOT_RIGHT


def plan_of(options: Namespace) -> Plan:
    """Return what was asked for; raises `InvalidArgument`."""
    return Plan(
        scenario=Scenario(options.scenario),
        protocol=Protocol(options.protocol),
        mode=DeliveryMode[options.mode.upper()],
        route=Route(options.through),
        workers=options.workers,
        connections=options.connections,
        batch=options.batch,
        size=options.size,
        rate=options.rate or _rate(options),
        duration_s=options.duration,
        warmup_s=options.warmup,
        topics=max(options.topics, 2) if options.scenario == "isolation" else options.topics,
        partitions=options.partitions,
        replication=options.replication,
        consumers=options.consumers,
    )


def _rate(options: Namespace) -> int | None:
    """Return what slow consumers can keep up with: half of what they could do without a pause."""
    if options.scenario != "slow":
        return None
    return max(1, int(options.consumers / SLOW_S / 2))


async def _measured(plan: Plan, options: Namespace, chosen: Choices) -> Report:
    given = vars(options)
    if given.get("servers") or given.get("profile"):
        servers = ",".join(map(str, chosen.servers))
        return await measure(plan, servers, listeners(one.port for one in chosen.servers))
    interpreter = shlex.split(options.interpreter) if options.interpreter else [sys.executable]
    with tempfile.TemporaryDirectory(prefix="angarium-bench-", dir=options.data) as folder:
        cluster = BenchCluster(Path(folder), nodes=options.nodes, interpreter=interpreter)
        async with cluster:
            watched = [Watched(node.pid, node.data) for node in cluster.nodes]
            return await measure(plan, cluster.servers, watched)
