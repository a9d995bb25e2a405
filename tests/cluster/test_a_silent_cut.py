"""Packets vanish and no connection breaks: the node cut off knows it soon, and so do the others."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from angarium.batch import encode
from angarium.errors import NotLeader
from angarium.testing.cluster import eventually
from angarium.testing.cluster.silence import NOTICED_S_MAX, cut_silently, pause_briefly, seen
from angarium.testing.cluster.wan import WanNetwork
from angarium.wire.wire_limits import WireLimits

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

    from angarium.ids import NodeId
    from angarium.testing.cluster.contact import Contact

pytestmark = pytest.mark.timeout(300)

KEEPALIVE_S = WireLimits().ping_interval_s * WireLimits().silent_intervals_max
"""After so long a connection itself notices; the beat between nodes has to be sooner."""

REST_S = 2.5
"""Groups to which nothing happens are quiescent after a second."""


def test_a_cut_is_noticed_on_both_sides_long_before_a_connection_ends(
    run: Run, cluster_of: ClusterOf
) -> None:
    assert NOTICED_S_MAX < KEEPALIVE_S

    async def scenario() -> None:
        async with cluster_of(3, parted=True) as cluster:
            await cluster.create_topic("orders", partitions=3)
            # Once with heartbeats of active groups, and once with none at all.
            for pause_s in (0.0, REST_S):
                await asyncio.sleep(pause_s)
                node = await cluster.leader("orders")
                await cut_silently(cluster, node)
                # Publishers are told at once, and why.
                began = time.monotonic()
                with pytest.raises(NotLeader, match="has 1 of 3 replicas"):
                    await refused(cluster.contact(node))
                assert time.monotonic() - began < NOTICED_S_MAX
                (reason,) = [
                    one
                    for one in (await seen(cluster, node, node)).unready
                    if one.startswith("the catalog")
                ]
                assert "the catalog has 1 of 3 voters" in reason
                for other in cluster.ids:
                    assert not (await seen(cluster, other, other)).unready or other == node
                assert cluster.network is not None
                cluster.network.heal()
                await cluster.settled(topics=["orders"])

                async def is_well(node: NodeId = node) -> bool:
                    views = [await seen(cluster, one, node) for one in cluster.ids]
                    return all(one.alive and not one.unready for one in views)

                await eventually(is_well, what="the node is alive and ready again")

    async def refused(contact: Contact) -> None:
        acks = await contact.publish("orders", 0, [encode([b"x"])], timeout_s=30.0)
        if acks[0].code:
            raise NotLeader(acks[0].message)

    run(scenario())


def test_a_pause_of_a_second_is_no_cut(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders")
            await asyncio.sleep(REST_S)
            blamed = [await pause_briefly(cluster, node) for node in cluster.ids[:2]]
            # A machine that is at something else may pause a node for longer than we did.
            assert [] in blamed, blamed

    run(scenario())


def test_a_node_that_hears_and_is_not_heard_is_known_to_be_cut_off(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, parted=True) as cluster:
            await cluster.create_topic("orders")
            assert cluster.network is not None
            mute, *others = cluster.ids
            for other in others:
                cluster.network.cut_one_way(mute, other)

            async def is_known() -> bool:
                return not any([(await seen(cluster, one, mute)).alive for one in others])

            await eventually(is_known, within_s=NOTICED_S_MAX, what="the others know")

            async def knows() -> bool:
                return bool((await seen(cluster, mute, mute)).unready)

            # What it hears of them ends when they have given its connections up.
            await eventually(knows, within_s=2 * NOTICED_S_MAX, what="it knows itself")
            for _ in range(20):
                await asyncio.sleep(0.2)
                assert await knows(), "their dialling is no reason to take it back"
            cluster.network.heal()
            await cluster.settled(topics=["orders"])

    run(scenario())


def test_between_regions_a_cut_is_noticed_and_the_distance_is_none(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        network = WanNetwork(("eu", "us", "as"), one_way_s=0.2)
        async with cluster_of(3, network=network) as cluster:
            ends = time.monotonic() + 2 * REST_S
            while time.monotonic() < ends:
                for one in cluster.ids:
                    for other in cluster.ids:
                        assert (await seen(cluster, one, other)).alive
                await asyncio.sleep(0.2)
            await cut_silently(cluster, cluster.ids[1])

    run(scenario())
