"""Nodes are added, drained and removed while everybody publishes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from angarium.client import Client
from angarium.doors.status import Exit
from angarium.errors import PreconditionFailed
from angarium.testing.cluster import Load, eventually
from angarium.testing.cluster.waiting import now_micros

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run


def test_a_node_is_added_and_another_drained_and_removed_under_load(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders", partitions=3)
            async with Load(cluster, topic="orders", partitions=3, producers=6) as load:
                newcomer = await cluster.add()
                await cluster.settled(topics=["orders"])
                leaving = await cluster.leader("orders")
                helper = cluster.contact(newcomer)
                await helper.drain(leaving)

                async def is_empty() -> bool:
                    (info,) = [one for one in (await helper.status()).nodes if one.id == leaving]
                    return info.draining and info.replicas == 0 and info.leads == 0

                await eventually(is_empty, within_s=60.0, what="the drained node is empty")

                async def is_removed() -> bool:
                    await helper.remove(leaving)
                    return True

                await eventually(is_removed, within_s=60.0, what="the node is removed")
                cluster.nodes.pop(leaving).end()
                assert {one.id for one in (await helper.status()).nodes} == set(cluster.ids)
                await load.acknowledged_after(now_micros())
                for partition in (await helper.describe("orders")).partitions:
                    assert sorted(partition.replicas) == cluster.ids
                verdict = await load.conclude()
            assert verdict.violations == []

    run(scenario())


def test_a_node_may_be_asked_to_remove_itself(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            for _ in range(3):
                leaving = await cluster.add()
                await cluster.heard()
                # It ends as soon as it hears of it, be that before its answer or after.
                async with Client(cluster.nodes[leaving].address) as client:
                    await client.remove_node(leaving)
                assert await asyncio.to_thread(cluster.nodes[leaving].wait) == Exit.REMOVED

    run(scenario())


def test_a_node_that_was_removed_while_it_was_down_says_so_and_ends(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(4) as cluster:
            gone = cluster.nodes[cluster.ids[3]]
            gone.kill()
            helper = cluster.contact(cluster.ids[0])

            async def is_removed() -> bool:
                await helper.remove(cluster.ids[3])
                return len((await helper.status()).nodes) == 3

            await eventually(is_removed, within_s=60.0, what="the node is removed")
            # Nobody told it: it waited for a leader, and said so to everybody who came.
            cluster.restart(cluster.ids[3])
            assert await asyncio.to_thread(lambda: gone.wait(within_s=60.0)) == Exit.REMOVED
            assert "was removed from its cluster" in gone.last_words().splitlines()[-1]

    run(scenario())


def test_a_node_that_is_still_needed_cannot_be_removed(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders")
            with pytest.raises(PreconditionFailed):
                await cluster.contact(cluster.ids[0]).remove(cluster.ids[2])
            assert len((await cluster.contact(cluster.ids[0]).status()).nodes) == 3

    run(scenario())
