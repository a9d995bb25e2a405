"""Nodes that cannot hear each other: the majority goes on, the minority acknowledges nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.busy_machine import slowness

from angarium.modes import DeliveryMode
from angarium.testing.cluster import Load
from angarium.testing.cluster.waiting import now_micros

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

TAKEOVER_SECONDS_MAX = 3.0
"""From the cut to the first ack of the majority, on a machine with nothing else to do."""


@pytest.mark.parametrize("mode", [DeliveryMode.CONSISTENT, DeliveryMode.EVENTUAL])
def test_a_leader_cut_off_from_the_others_is_replaced_and_loses_nothing(
    run: Run, cluster_of: ClusterOf, mode: DeliveryMode
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, parted=True) as cluster:
            await cluster.create_topic("orders")
            assert cluster.network is not None
            async with Load(cluster, topic="orders", producers=6, mode=mode) as load:
                gaps_s = []
                for _ in range(2):
                    leader = await cluster.leader("orders")
                    moment = now_micros()
                    cluster.network.cut_off(leader, cluster.ids)
                    await asyncio.sleep(TAKEOVER_SECONDS_MAX)
                    answered = await load.acknowledged_after(moment + 1_500_000)
                    gaps_s.append((answered - moment) / 1_000_000)
                    cluster.network.heal()
                    await cluster.settled(topics=["orders"])
                verdict = await load.conclude()
            assert verdict.violations == []
            # One of the two may have met a machine that was at something else.
            assert min(gaps_s) <= TAKEOVER_SECONDS_MAX * slowness(), gaps_s

    run(scenario())


def test_a_leader_that_is_heard_but_hears_nobody_steps_down(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, parted=True) as cluster:
            await cluster.create_topic("orders")
            assert cluster.network is not None
            async with Load(cluster, topic="orders") as load:
                leader = await cluster.leader("orders")
                for other in cluster.ids:
                    if other != leader:
                        cluster.network.cut_one_way(other, leader)
                await asyncio.sleep(1.0)
                moment = now_micros()
                await load.acknowledged_after(moment, within_s=60.0)
                assert await cluster.leader("orders") != leader
                cluster.network.heal()
                await cluster.settled(topics=["orders"])
                verdict = await load.conclude()
            assert verdict.violations == []

    run(scenario())


def test_one_link_that_is_cut_stops_nobody(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(3, parted=True) as cluster:
            await cluster.create_topic("orders")
            assert cluster.network is not None
            async with Load(cluster, topic="orders") as load:
                leader = await cluster.leader("orders")
                follower = next(node for node in cluster.ids if node != leader)
                cluster.network.cut_off(leader, [follower])
                moment = now_micros()
                await asyncio.sleep(3.0)
                assert load.availability(moment, now_micros(), partition=0) >= 0.5 / slowness()
                cluster.network.heal()
                await cluster.settled(topics=["orders"])
                verdict = await load.conclude()
            assert verdict.violations == []

    run(scenario())
