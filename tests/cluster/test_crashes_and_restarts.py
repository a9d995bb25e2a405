"""Leaders killed and paused under load, nodes restarted: nothing acknowledged is ever lost.

`make chaos` does the same for longer; its figures are in docs/trust/cluster.md.
"""

from __future__ import annotations

import asyncio
import statistics
from typing import TYPE_CHECKING

import pytest
from tests.busy_machine import slowness

from angarium.modes import DeliveryMode
from angarium.testing.cluster import Load, eventually
from angarium.testing.cluster.faults import (
    Recovery,
    kill_leader,
    pause_leader,
    restart_gracefully,
)
from angarium.testing.cluster.live import LiveLoad
from angarium.testing.cluster.waiting import now_micros

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

FAILOVER_SECONDS_MAX = 2.0
"""From a leader's death to the first CONSISTENT ack, on a machine with nothing else to do."""

SLOWEST_SECONDS_MAX = 10.0
"""The same for each of several leaders: one of them may die while the machine is at something else,
so it is the quickest takeover that tells what one costs."""
LOST_AGE_MICROS_MAX = 1_000_000
"""How long before the end of its leader an EVENTUAL answer may have been given that is lost: the
bound of 100 ms, and the time that a busy machine may take to deliver an answer."""

ROLLING_AVAILABILITY_MIN = 0.5
"""The share of 100 ms windows with an ack through a rolling restart. On a machine with nothing else
to do it is close to 1 (docs/trust/cluster.md); this is for one that is busy."""


def assert_takeovers(gaps_s: list[float]) -> None:
    """Check how long nobody answered after each leader's end."""
    assert min(gaps_s) <= FAILOVER_SECONDS_MAX * slowness(), gaps_s
    assert max(gaps_s) <= SLOWEST_SECONDS_MAX * slowness(), gaps_s


def test_everything_is_there_after_all_nodes_were_killed_at_once(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders", partitions=3)
            async with Load(cluster, topic="orders", partitions=3, producers=6) as load:
                await asyncio.sleep(1.0)
                for node in cluster.ids:
                    cluster.nodes[node].kill()
                for node in cluster.ids:
                    cluster.restart(node)
                for node in cluster.ids:
                    await cluster.back(node)
                await load.acknowledged_after(now_micros())
                verdict = await load.conclude()
            assert verdict.violations == []
            assert verdict.acknowledged > 100

    run(scenario())


def test_two_of_three_nodes_serve_after_all_were_killed(run: Run, cluster_of: ClusterOf) -> None:
    """A node that starts serves nothing before the catalog has a leader: two elect one."""

    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders", partitions=3)
            async with Load(cluster, topic="orders", partitions=3, producers=3) as load:
                await asyncio.sleep(1.0)
                for node in cluster.ids:
                    cluster.nodes[node].kill()
                for node in cluster.ids[:2]:
                    cluster.restart(node)
                await load.acknowledged_after(now_micros())
                cluster.restart(cluster.ids[2])
                await cluster.back(cluster.ids[2])
                verdict = await load.conclude()
            assert verdict.violations == []

    run(scenario())


@pytest.mark.parametrize("mode", [DeliveryMode.CONSISTENT, DeliveryMode.EVENTUAL])
def test_a_leader_killed_under_load_costs_two_seconds_and_no_record(
    run: Run, cluster_of: ClusterOf, mode: DeliveryMode
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders", partitions=2)
            recovery = Recovery()
            async with Load(cluster, topic="orders", partitions=2, mode=mode) as load:
                for _ in range(3):
                    await kill_leader(cluster, load, recovery)
                verdict = await load.conclude()
            assert verdict.violations == []
            assert verdict.lost_age_micros <= LOST_AGE_MICROS_MAX * slowness()
            assert_takeovers(recovery.gaps_s)

    run(scenario())


def test_performance_mode_goes_on_within_two_seconds_and_repeats_nothing(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("ticks")
            async with LiveLoad(cluster, topic="ticks") as load:
                await asyncio.sleep(1.0)
                gaps_s = []
                for _ in range(2):
                    leader = await cluster.leader("ticks")
                    moment = now_micros()
                    cluster.nodes[leader].kill()
                    answered = await load.acknowledged_after(moment)
                    gaps_s.append((answered - moment) / 1_000_000)
                    cluster.restart(leader)
                    await cluster.back(leader)
                    await cluster.settled(topics=["ticks"])
                await load.stop()
            assert load.incidents == []
            assert min(load.delivered.values()) > 0
            assert_takeovers(gaps_s)

    run(scenario())


def test_performance_mode_without_a_fault_reaches_every_subscriber(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("ticks")
            async with LiveLoad(cluster, topic="ticks") as load:
                await asyncio.sleep(1.0)
                await load.stop()

                async def all_have_all() -> bool:
                    return set(load.delivered.values()) == {load.acknowledged}

                await eventually(all_have_all, what="every subscriber has every record")
            assert load.incidents == []

    run(scenario())


def test_a_paused_leader_is_replaced_and_comes_back_as_a_follower(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders")
            recovery = Recovery()
            async with Load(cluster, topic="orders") as load:
                for _ in range(2):
                    await pause_leader(cluster, load, recovery)
                verdict = await load.conclude()
            assert verdict.violations == []
            assert_takeovers(recovery.gaps_s)

    run(scenario())


def test_the_schedule_pause_kill_loses_nothing(run: Run, cluster_of: ClusterOf) -> None:
    """It broke another broker: one minority sleeps through writes, then the other one does."""

    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders")
            one, middle, other = cluster.ids
            async with Load(cluster, topic="orders") as load:
                cluster.nodes[one].pause()
                await load.acknowledged_after(now_micros() + 500_000)
                cluster.nodes[middle].kill()
                cluster.nodes[other].pause()
                cluster.nodes[one].resume()
                cluster.restart(middle)
                # The one that slept knows nothing of the writes, the middle one has them all.
                await load.acknowledged_after(now_micros() + 500_000)
                cluster.nodes[other].resume()
                await cluster.settled(topics=["orders"])
                verdict = await load.conclude()
            assert verdict.violations == []

    run(scenario())


def test_a_rolling_restart_is_hardly_noticed(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders", partitions=3)
            recovery = Recovery()
            async with Load(cluster, topic="orders", partitions=3, producers=6) as load:
                for node in cluster.ids:
                    await restart_gracefully(cluster, load, recovery, node)
                verdict = await load.conclude()
            assert verdict.violations == []
            enough = ROLLING_AVAILABILITY_MIN / slowness()
            assert statistics.median(recovery.available) >= enough, recovery

    run(scenario())
