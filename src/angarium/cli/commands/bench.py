"""`angarium bench`: measure a cluster and check every record."""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import uvloop

from angarium.bench.cluster import BenchCluster
from angarium.bench.consuming import SLOW_S
from angarium.bench.measuring import measure
from angarium.bench.plan import Plan, Protocol, Route, Scenario
from angarium.bench.report import lines, side_by_side
from angarium.bench.resources import Watched, listeners
from angarium.cli.output import print_json
from angarium.cli.profiles import choices
from angarium.errors import InvalidArgument
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from angarium.bench.report import Report
    from angarium.cli.profiles import Choices

NOT_RIGHT = 1
"""The exit status when a record was lost, invented, repeated or out of order."""


def run(options: Namespace) -> int:
    """Measure, print the report, and say by the exit status whether all records were right."""
    plans = plans_of(options)
    chosen = choices(options)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        reports = runner.run(_measured(plans, options, chosen))
    is_one = len(reports) == 1
    if chosen.is_json:
        shown = msgspec.to_builtins(reports)
        print_json(shown[0] if is_one else shown)
    else:
        print("\n".join(lines(reports[0]) if is_one else side_by_side(reports)))
    return 0 if all(report.is_right for report in reports) else NOT_RIGHT


def plans_of(options: Namespace) -> list[Plan]:
    """Return what was asked for, one plan per protocol; raises `InvalidArgument`."""
    if options.protocol != "all":
        return [plan_of(options, Protocol(options.protocol))]
    return [plan_of(options, one) for one in Protocol]


def plan_of(options: Namespace, protocol: Protocol) -> Plan:
    """Return what was asked for, over one protocol; raises `InvalidArgument`."""
    if protocol.door == "grpc" and find_spec("grpc") is None:
        raise InvalidArgument("a gRPC client needs the extra: pip install 'angarium[grpc]'")
    is_all = options.protocol == "all"
    if not is_all and (
        (options.grpc_targets and protocol.door != "grpc")
        or (options.http_targets and protocol.door != "http")
    ):
        raise InvalidArgument(f"targets: {protocol} goes through the {protocol.door} door")
    return Plan(
        scenario=Scenario(options.scenario),
        protocol=protocol,
        grpc_targets=(options.grpc_targets or ()) if protocol.door == "grpc" else (),
        http_targets=(options.http_targets or ()) if protocol.door == "http" else (),
        sub_target=options.sub_target,
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


async def _measured(plans: Sequence[Plan], options: Namespace, chosen: Choices) -> list[Report]:
    """Carry the plans out, one after the other, on one cluster."""
    given = vars(options)
    if given.get("servers") or given.get("profile"):
        servers = ",".join(map(str, chosen.servers))
        return await _each(plans, servers, listeners(one.port for one in chosen.servers))
    interpreter = shlex.split(options.interpreter) if options.interpreter else [sys.executable]
    with tempfile.TemporaryDirectory(prefix="angarium-bench-", dir=options.data) as folder:
        cluster = BenchCluster(Path(folder), nodes=options.nodes, interpreter=interpreter)
        async with cluster:
            watched = [Watched(node.pid, node.data) for node in cluster.nodes]
            return await _each(plans, cluster.servers, watched)


async def _each(plans: Sequence[Plan], servers: str, watched: Sequence[Watched]) -> list[Report]:
    reports = []
    for number, plan in enumerate(plans, 1):
        if len(plans) > 1:
            # For people who wait: each takes as long as one alone.
            print(f"{plan.protocol} ({number} of {len(plans)}) ...", file=sys.stderr)
        reports.append(await measure(plan, servers, watched))
    return reports
