"""Two data centres with a full replica each, and a third place that only breaks their ties.

All three are far apart: what goes from one to another takes its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from angarium.api import TopicConfig
from angarium.client import Client
from angarium.errors import InvalidArgument, PreconditionFailed
from angarium.testing.cluster import Load, eventually
from angarium.testing.cluster.processes import SMALL
from angarium.testing.cluster.waiting import now_micros
from angarium.testing.cluster.wan import WanNetwork

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.running import ClusterOf, Run

    from angarium.ids import NodeId
    from angarium.testing.cluster import ProcessCluster

pytestmark = pytest.mark.timeout(600)

WAIT_S = 180.0
BEHIND_MICROS = 1_500_000
"""For how long one of the two full replicas gets nothing."""

FORGOTTEN_RECORDS = 4_000
"""So many have long left the logs of `SMALL` nodes, which keep 50 entries behind a snapshot."""

ONE_WAY_S = 0.03
REGIONS = ("eu", "us", "tie")
WITNESSED = TopicConfig(regions=("eu", "us"), witness=("tie",))


def _in(cluster: ProcessCluster, region: str) -> NodeId:
    (one,) = (one for one, node in cluster.nodes.items() if node.region == region)
    return one


def _files(folder: Path, groups: list[str]) -> list[Path]:
    """Return a node's files of some partitions."""
    return [
        one for group in groups for one in (folder / "groups" / group).rglob("*") if one.is_file()
    ]


def test_either_of_two_regions_may_be_lost(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(3, network=WanNetwork(REGIONS, one_way_s=ONE_WAY_S)) as cluster:
            eu, us, tie = (_in(cluster, one) for one in REGIONS)
            async with Client(cluster.nodes[eu].address) as client:
                with pytest.raises(InvalidArgument, match="breaks the tie of an even number"):
                    await client.create_topic(
                        "odd", config=TopicConfig(replication=3, witness=("tie",))
                    )
                with pytest.raises(PreconditionFailed, match="no node is in region 'moon'"):
                    await client.create_topic("far", config=TopicConfig(witness=("moon",)))
            info = await cluster.create_topic("orders", partitions=2, config=WITNESSED)
            assert info.caution == ""
            assert {one.witness for one in info.partitions} == {tie}
            assert {frozenset(one.replicas) for one in info.partitions} == {frozenset((eu, us))}
            async with Load(cluster, topic="orders", partitions=2, producers=4) as load:
                await load.acknowledged_after(now_micros(), within_s=WAIT_S)
                # One falls behind, then the other is gone: only the witness has what is between.
                for lost, behind in ((eu, us), (us, eu)):
                    cluster.nodes[behind].pause()
                    await load.acknowledged_after(now_micros() + BEHIND_MICROS, within_s=WAIT_S)
                    cluster.nodes[lost].kill()
                    cluster.nodes[behind].resume()
                    for number in range(2):
                        await load.acknowledged_after(
                            now_micros(), partition=number, within_s=WAIT_S
                        )
                    cluster.restart(lost)
                    await cluster.back(lost, within_s=WAIT_S)
                    await cluster.settled(topics=["orders"], within_s=WAIT_S)
                cluster.nodes[tie].kill()
                await load.acknowledged_after(now_micros(), within_s=WAIT_S)
                cluster.restart(tie)
                await cluster.back(tie, within_s=WAIT_S)

                async def is_whole() -> bool:
                    seen = await (await cluster.someone()).describe("orders")
                    return all(set(one.in_sync or ()) == {eu, us, tie} for one in seen.partitions)

                await eventually(is_whole, within_s=WAIT_S, what="all three are in sync")
                verdict = await load.conclude()
            assert verdict.violations == []
            folders = {one: cluster.nodes[one].data for one in (eu, us, tie)}
            groups = [one.name for one in (folders[tie] / "witnessing").iterdir()]
            assert len(groups) == 2
            assert _files(folders[eu], groups)
            assert _files(folders[us], groups)
            assert _files(folders[tie], groups) == []

    run(scenario())


def test_a_region_may_be_lost_when_the_witness_comes_back_from_long_ago(
    run: Run, cluster_of: ClusterOf
) -> None:
    """Seed 800400: nobody had the log from where it was on, and the lost one could not be asked."""

    async def scenario() -> None:
        async with cluster_of(3, regions=REGIONS, program=SMALL) as cluster:
            tie = _in(cluster, "tie")
            await cluster.create_topic("orders", config=WITNESSED)
            async with Load(cluster, topic="orders", producers=4) as load:
                await load.acknowledged_after(now_micros(), within_s=WAIT_S)
                cluster.nodes[tie].kill()
                gone = now_micros()

                async def is_far_behind() -> bool:
                    return load.acknowledged_records(gone, now_micros()) > FORGOTTEN_RECORDS

                await eventually(is_far_behind, within_s=WAIT_S, what="the witness is far behind")
                lost = await cluster.leader("orders")
                cluster.nodes[lost].kill()
                cluster.nodes[lost].wipe()
                cluster.restart(tie)
                await load.acknowledged_after(now_micros(), within_s=WAIT_S)
                # With that its disk can be replaced.
                cluster.restart(lost)
                await cluster.back(lost, within_s=WAIT_S)
                await cluster.settled(topics=["orders"], within_s=WAIT_S)
                verdict = await load.conclude()
            assert verdict.violations == []

    run(scenario())


def test_a_witness_and_a_full_replica_change_places(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(3, regions=REGIONS) as cluster:
            eu, us, tie = (_in(cluster, one) for one in REGIONS)
            await cluster.create_topic("orders", config=WITNESSED)
            async with (
                Load(cluster, topic="orders") as load,
                Client(cluster.nodes[eu].address) as client,
            ):
                elsewhere = TopicConfig(regions=("eu", "tie"), witness=("us",))
                await client.alter_topic("orders", config=elsewhere)

                async def is_there() -> bool:
                    (one,) = (await client.describe_topic("orders")).partitions
                    return set(one.replicas) == {eu, tie} and one.witness == us

                await eventually(is_there, within_s=WAIT_S, what="they have changed places")
                await cluster.settled(topics=["orders"], within_s=WAIT_S)
                await load.acknowledged_after(now_micros(), within_s=WAIT_S)
                verdict = await load.conclude()
            assert verdict.violations == []

    run(scenario())
