"""Nodes that were away too long, or lost everything, are brought back by their peers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.testing.cluster import Load, eventually
from angarium.testing.cluster.processes import SMALL
from angarium.testing.cluster.waiting import now_micros

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

    from angarium.testing.cluster import ProcessCluster

ENTRIES_BEHIND = 1_000
"""More than the small nodes' log keeps: a snapshot every 300 entries, and 50 before it."""


async def publish_until(load: Load, batches: int) -> None:
    async def are_enough() -> bool:
        return sum(one.completed is not None for one in load.history.publishes) >= batches

    await eventually(are_enough, within_s=60.0, what=f"{batches} batches are published")


async def kill_another(cluster: ProcessCluster, load: Load, *, than: int) -> None:
    """Kill a node other than the one that came back: it must be good for a majority now."""
    victim = next(node for node in cluster.ids if node != than)
    cluster.nodes[victim].kill()
    await load.acknowledged_after(now_micros())
    cluster.restart(victim)
    await cluster.back(victim)
    await cluster.settled(topics=[load.topic])


def test_a_node_behind_the_start_of_the_log_gets_snapshot_and_segments(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, program=SMALL) as cluster:
            await cluster.create_topic("orders")
            leader = await cluster.leader("orders")
            away = next(node for node in cluster.ids if node != leader)
            # Few producers: a crowd of them would share entries, and the log has room for some.
            async with Load(cluster, topic="orders", producers=3, pause_s=0.002) as load:
                cluster.nodes[away].kill()
                await publish_until(load, ENTRIES_BEHIND)
                cluster.restart(away)
                await cluster.back(away)
                await cluster.settled(topics=["orders"])
                await kill_another(cluster, load, than=away)
                verdict = await load.conclude()
            assert verdict.violations == []

    run(scenario())


def test_a_wiped_node_comes_back_under_its_old_id_as_somebody_new(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, program=SMALL) as cluster:
            await cluster.create_topic("orders", partitions=2)
            wiped = await cluster.leader("orders")
            async with Load(cluster, topic="orders", partitions=2, pause_s=0.005) as load:
                await publish_until(load, ENTRIES_BEHIND)
                cluster.nodes[wiped].kill()
                cluster.nodes[wiped].wipe()
                await load.acknowledged_after(now_micros())
                cluster.restart(wiped)
                await cluster.back(wiped)
                await cluster.settled(topics=["orders"])
                status = await cluster.contact(wiped).status()
                assert status.node == wiped
                assert [one.id for one in status.nodes] == cluster.ids
                await kill_another(cluster, load, than=wiped)
                verdict = await load.conclude()
            assert verdict.violations == []

    run(scenario())


def test_every_node_can_be_wiped_in_turn_and_nothing_is_lost(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, program=SMALL) as cluster:
            await cluster.create_topic("orders")
            async with Load(cluster, topic="orders", pause_s=0.01) as load:
                for node in cluster.ids:
                    cluster.nodes[node].kill()
                    cluster.nodes[node].wipe()
                    cluster.restart(node)
                    await cluster.back(node)
                    await cluster.settled(topics=["orders"])
                await asyncio.sleep(0.2)
                verdict = await load.conclude()
            assert verdict.violations == []

    run(scenario())
