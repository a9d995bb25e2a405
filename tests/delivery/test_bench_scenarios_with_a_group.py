"""`angarium bench` with consumer groups: each scenario, briefly, on a node of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import uvloop

from angarium.bench.cluster import BenchCluster
from angarium.bench.measuring import measure
from angarium.bench.plan import Plan, Scenario
from angarium.bench.report import lines
from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.bench.report import Report


def test_every_scenario_finds_each_record_once_and_all_settled(tmp_path: Path) -> None:
    async def measured() -> dict[Scenario, Report]:
        found = {}
        async with BenchCluster(tmp_path, nodes=1) as cluster:
            for scenario in Scenario:
                if scenario.has_group:
                    plan = Plan(
                        scenario=scenario,
                        topics=2 if scenario is Scenario.ISOLATION else 1,
                        workers=2,
                        consumers=2,
                        batch=10,
                        rate=400,
                        warmup_s=0.1,
                        duration_s=1.0,
                    )
                    found[scenario] = await measure(plan, cluster.servers)
        return found

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        reports = runner.run(measured())
    for scenario, report in reports.items():
        page = "\n".join(lines(report))
        assert report.is_right, page
        assert report.verdict.lost == 0
        assert report.verdict.acknowledged > 100
        assert report.group is not None
        assert report.group.unsettled == 0
        assert "consumed" in page
        if scenario is not Scenario.CRASH:
            assert report.verdict.repeated == 0


def test_isolation_needs_two_topics() -> None:
    with pytest.raises(InvalidArgument, match="two topics"):
        Plan(scenario=Scenario.ISOLATION)
