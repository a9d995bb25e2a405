"""A cluster of two: it comes back whole, and says what it cannot get over."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.cluster.test_damaged_replicas import the_whole_log

from angarium.api import TopicConfig
from angarium.batch import Batch, encode
from angarium.ids import Offset
from angarium.modes import DeliveryMode
from angarium.testing.cluster import eventually

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

    from angarium.ids import NodeId
    from angarium.testing.cluster import ProcessCluster

PATIENCE_S = 60.0
COUNT = 60


async def publish(cluster: ProcessCluster, *values: bytes) -> None:
    """Publish each value, acknowledged by both nodes."""
    for value in values:

        async def acknowledged(value: bytes = value) -> bool:
            leader = cluster.contact(await cluster.leader("orders"))
            await leader.publish("orders", 0, [encode([value])], mode=DeliveryMode.CONSISTENT)
            return True

        await eventually(acknowledged, within_s=PATIENCE_S, what="a record is acknowledged")


async def read(cluster: ProcessCluster, node: NodeId) -> list[bytes | None]:
    """Return everything that a node itself answers with."""
    found: list[bytes | None] = []
    offset = Offset(0)
    while True:
        result = await cluster.contact(node).fetch("orders", 0, offset)
        for view in result.batches:
            batch = Batch.parse(view)
            found += batch.values()
            offset = batch.next_offset
        if offset >= result.end_offset:
            return found


@pytest.mark.parametrize("end", ["terminate", "kill"])
def test_both_nodes_of_a_cluster_of_two_may_be_restarted_at_once(
    run: Run, cluster_of: ClusterOf, end: str
) -> None:
    async def scenario() -> None:
        async with cluster_of(2) as cluster:
            await cluster.create_topic("orders", config=TopicConfig(replication=2))
            values = [b"%d" % number for number in range(COUNT)]
            await publish(cluster, *values)
            for again in range(2):
                for node in cluster.nodes.values():
                    node.terminate() if end == "terminate" else node.kill()
                for node in cluster.nodes.values():
                    await asyncio.to_thread(node.wait)
                for known in cluster.ids:
                    cluster.restart(known)
                for known in cluster.ids:
                    await cluster.back(known, within_s=PATIENCE_S)
                    await cluster.ready(known, within_s=PATIENCE_S)
                await cluster.settled(topics=["orders"], within_s=PATIENCE_S)
                for known in cluster.ids:

                    async def has_all(node: NodeId = known) -> bool:
                        return await read(cluster, node) == values

                    await eventually(has_all, within_s=PATIENCE_S, what=f"node {known} has all")
                values.append(b"again %d" % again)
                await publish(cluster, values[-1])

    run(scenario())


def test_the_only_voter_that_loses_the_catalog_says_that_nobody_can_give_it_back(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(2) as cluster:
            voter, other = cluster.ids
            cluster.nodes[voter].kill()
            the_whole_log(cluster.nodes[voter].data)
            cluster.restart(voter)

            async def said_by(node: NodeId) -> str:
                status = await cluster.contact(node).status()
                return " ".join(one for node in status.nodes for one in node.unready)

            async def says_so() -> bool:
                said = await said_by(voter)
                return "alone had a vote" in said and "from a backup" in said

            await eventually(says_so, within_s=PATIENCE_S, what="it says what happened")

            async def is_logged() -> bool:
                return "alone had a vote" in cluster.nodes[voter].last_words()

            await eventually(is_logged, within_s=PATIENCE_S, what="its log says it, too")

            async def other_knows() -> bool:
                return "alone had a vote" in await said_by(other)

            await eventually(other_knows, within_s=PATIENCE_S, what="the other one knows")

            # A disk that is gone altogether is told by the one that is left.
            cluster.nodes[voter].kill()

            async def is_missed() -> bool:
                return "which alone has a vote" in await said_by(other)

            await eventually(is_missed, within_s=PATIENCE_S, what="the other one says it")

    run(scenario())
