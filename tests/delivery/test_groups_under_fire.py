"""Groups of real processes whose members and leaders are killed: every record ends, once."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import uvloop

from angarium.api import GroupConfig, TopicConfig
from angarium.kinds import GroupKind
from angarium.testing.cluster import ProcessCluster
from angarium.testing.cluster.group_load import GroupLoad, GroupVerdict

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 200_000
PARTITIONS = 6
PUBLISH_S = 15.0
"""Published over so long, so that faults meet a group at work."""


async def under_fire(
    folder: Path,
    *,
    kind: GroupKind,
    records: int,
    seconds: float,
    members: int,
    node_kills: int,
    seed: int,
    **more: object,
) -> GroupVerdict:
    """Publish and consume while members, and leaders one after the other, are killed."""
    chance = random.Random(seed)
    cluster = ProcessCluster(folder / "cluster")
    try:
        async with cluster:
            await cluster.create_topic("orders", partitions=PARTITIONS, config=TopicConfig())
            load = GroupLoad(
                cluster,
                folder / "members",
                topic="orders",
                kind=kind,
                members=members,
                **more,  # type: ignore[arg-type]
            )
            async with load:
                publishing = asyncio.create_task(load.publish(records, seconds=seconds))
                for _ in range(node_kills):
                    for _ in range(3):
                        await asyncio.sleep(seconds / node_kills / 4)
                        load.kill_member(chance)
                    leader = await cluster.leader("orders", chance.randrange(PARTITIONS))
                    cluster.nodes[leader].kill()
                    await asyncio.sleep(seconds / node_kills / 4)
                    load.kill_member(chance)
                    cluster.restart(leader)
                    await cluster.back(leader)
                    await cluster.settled()
                await publishing
                return await load.conclude()
    except BaseException:
        print(cluster.report())
        raise


def test_a_queue_whose_members_and_leaders_are_killed_ends_every_record_once(
    tmp_path: Path,
) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        verdict = runner.run(
            under_fire(
                tmp_path,
                kind=GroupKind.QUEUE,
                records=RECORDS,
                seconds=PUBLISH_S,
                members=8,
                node_kills=3,
                seed=1,
                config=GroupConfig(backoff_min_ms=50, backoff_max_ms=500),
                fail_share=0.002,
                poison_every=20_011,
                work_ms=50,
            )
        )
    print(verdict)
    assert verdict.violations == []
    assert verdict.records == RECORDS
    assert verdict.dead >= 9
    assert verdict.again > 0


def test_a_stream_whose_members_and_leaders_are_killed_keeps_its_order(tmp_path: Path) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        verdict = runner.run(
            under_fire(
                tmp_path,
                kind=GroupKind.STREAM,
                records=60_000,
                seconds=10.0,
                members=4,
                node_kills=2,
                seed=2,
                config=GroupConfig(max_attempts=50, backoff_min_ms=10, backoff_max_ms=100),
                work_ms=50,
            )
        )
    print(verdict)
    assert verdict.violations == []
    assert verdict.records == 60_000
    assert verdict.dead == 0
    assert verdict.again > 0
