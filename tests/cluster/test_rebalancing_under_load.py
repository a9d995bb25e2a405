"""A node joins, and what there is is evened out while everybody publishes."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from angarium.client import Client
from angarium.errors import InvalidArgument, PreconditionFailed
from angarium.testing.cluster import Load, eventually
from angarium.testing.cluster.waiting import now_micros

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

PARTITIONS = 6


async def _values(client: Client, partition: int) -> list[bytes]:
    found: list[bytes] = []
    offset = 0
    while records := await client.fetch("payments", partition, offset, fresh=True):
        found += [bytes(record.value or b"") for record in records]
        offset = (records[-1].offset or 0) + 1
    return found


def test_a_newcomer_gets_its_share_and_no_publish_fails(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders", partitions=PARTITIONS)
            async with (
                Client(cluster.nodes[cluster.ids[0]].address) as client,
                Load(cluster, topic="orders", partitions=PARTITIONS, producers=6) as load,
            ):
                await client.create_topic("payments", partitions=2)
                sent: list[bytes] = []

                async def pay() -> None:
                    while True:
                        value = b"%d" % len(sent)
                        await client.publish("payments", value)
                        sent.append(value)

                paying = asyncio.create_task(pay())
                newcomer = await cluster.add()
                with pytest.raises(InvalidArgument):
                    await client.rebalance(bytes_per_s=1)
                with pytest.raises(PreconditionFailed):
                    await client.cancel_rebalance()

                async def is_planned() -> bool:
                    plan = await client.describe_balance()
                    assert not plan.is_running
                    copies = [one for one in plan.moves if set(one.target) != set(one.replicas)]
                    # 24 replicas on four nodes are six each.
                    return [one.target.count(newcomer) for one in copies] == [1] * 6

                await eventually(is_planned, what="six replicas for the newcomer are planned")
                await client.rebalance(bytes_per_s=64 << 20)

                async def is_over() -> bool:
                    info = await client.describe_balance()
                    return not info.is_running and not info.moves

                async def is_even() -> bool:
                    topics = [await client.describe_topic(one) for one in ("orders", "payments")]
                    parts = [one for topic in topics for one in topic.partitions]
                    replicas = Counter(node for one in parts for node in one.replicas)
                    leaders = Counter(one.leader for one in parts)
                    return [replicas[node] for node in cluster.ids] == [6] * 4 and [
                        leaders[node] for node in cluster.ids
                    ] == [2] * 4

                await eventually(is_over, within_s=120.0, what="the rebalance is over")
                await eventually(is_even, within_s=120.0, what="replicas and leaders are even")
                await load.acknowledged_after(now_micros())
                assert not paying.done(), "no publish has failed"
                paying.cancel()
                await asyncio.gather(paying, return_exceptions=True)
                stored = [one for number in range(2) for one in await _values(client, number)]
                assert sorted(set(stored)) == sorted(stored)
                assert set(sent) <= set(stored)
                verdict = await load.conclude()
            assert verdict.violations == []
            assert verdict.unknown == 0

    run(scenario())


def test_a_newcomer_gets_its_share_by_itself_though_the_leader_of_the_catalog_dies(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        # So slowly that it can be disturbed.
        settings = {"rebalance_after_s": 2, "rebalance_bytes_per_s": 64 << 10}
        async with cluster_of(3, settings=settings) as cluster:
            await cluster.create_topic("orders", partitions=4)
            async with Client(*(cluster.nodes[one].address for one in cluster.ids)) as client:
                for number in range(4):
                    await client.publish("orders", b"x" * 200_000, partition=number)
                assert (await client.describe_balance()).is_automatic, "nobody had to choose it"
                newcomer = await cluster.add()

                async def has_its_share() -> bool:
                    topic = await client.describe_topic("orders")
                    held = sum(newcomer in one.replicas for one in topic.partitions)
                    return held == 3 and not (await client.describe_balance()).is_running

                async def is_under_way() -> bool:
                    # What lies in a Raft log is copied at once: it may be over before one looks.
                    moves = (await client.describe_balance()).moves
                    return any(one.is_under_way for one in moves) or await has_its_share()

                await eventually(is_under_way, within_s=90.0)
                dead = await cluster.catalog_leader()
                cluster.nodes[dead].kill()
                assert await cluster.catalog_leader() != dead
                # Nothing more begins while a node is away; what goes on is in the catalog.
                cluster.restart(dead)
                await cluster.back(dead)
                await eventually(has_its_share, within_s=150.0)

    run(scenario())
