"""Groups of real processes whose members and leaders are killed: every record ends, once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import uvloop

from angarium.api import GroupConfig, TopicConfig
from angarium.kinds import GroupKind
from angarium.testing.cluster import ProcessCluster
from angarium.testing.cluster.group_fire import under_fire
from angarium.testing.cluster.group_load import GroupLoad, GroupVerdict

if TYPE_CHECKING:
    from pathlib import Path

PARTITIONS = 6


def fought(
    folder: Path, *, records: int, seconds: float, node_kills: int, seed: int, **load: Any
) -> GroupVerdict:
    """Run a group under fire on a cluster of its own."""

    async def fight() -> GroupVerdict:
        cluster = ProcessCluster(folder / "cluster")
        try:
            async with cluster:
                await cluster.create_topic("orders", partitions=PARTITIONS, config=TopicConfig())
                return await under_fire(
                    cluster,
                    GroupLoad(cluster, folder / "members", topic="orders", **load),
                    records=records,
                    seconds=seconds,
                    node_kills=node_kills,
                    partitions=PARTITIONS,
                    seed=seed,
                )
        except BaseException:
            print(cluster.report())
            raise

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        verdict = runner.run(fight())
    print(verdict)
    return verdict


def test_a_queue_whose_members_and_leaders_are_killed_ends_every_record_once(
    tmp_path: Path,
) -> None:
    verdict = fought(
        tmp_path,
        kind=GroupKind.QUEUE,
        records=100_000,
        seconds=8.0,
        members=8,
        node_kills=2,
        seed=1,
        config=GroupConfig(backoff_min_ms=50, backoff_max_ms=500),
        fail_share=0.002,
        poison_every=10_007,
        work_ms=10,
    )
    assert verdict.violations == []
    assert verdict.records == 100_000
    assert verdict.dead >= 9, "every 10,007th record is poison"
    assert verdict.again > 0


def test_a_stream_whose_members_and_leaders_are_killed_keeps_its_order(tmp_path: Path) -> None:
    verdict = fought(
        tmp_path,
        kind=GroupKind.STREAM,
        records=30_000,
        seconds=7.0,
        members=4,
        node_kills=2,
        seed=2,
        config=GroupConfig(max_attempts=50, backoff_min_ms=10, backoff_max_ms=100),
        work_ms=10,
    )
    assert verdict.violations == []
    assert verdict.records == 30_000
    assert verdict.dead == 0
