"""A group whose partition is led by nodes of this release and of an earlier one, in turn.

The earlier one keeps no delay beside the time of a retry, and opens groups without being asked
whether it may. The same entries have to mean the same to both.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest
from tests.cluster.test_the_upgrade_guide import _earlier

from angarium.api import GroupConfig
from angarium.client import Client
from angarium.errors import AngariumError
from angarium.kinds import GroupKind
from angarium.node.release import LEVEL_MAX, RETRY_DELAY_LEVEL
from angarium.testing.cluster import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.running import ClusterOf, Run

    from angarium.client.groups.consumer import Consumer
    from angarium.ids import NodeId
    from angarium.testing.cluster import ProcessCluster

WAIT_S = 90.0
CONFIG = GroupConfig(max_attempts=100, backoff_min_ms=10, backoff_max_ms=50, ack_timeout_ms=600_000)


def test_attempts_count_on_whichever_release_leads(
    run: Run, cluster_of: ClusterOf, tmp_path: Path
) -> None:
    old = _earlier(tmp_path / "old", below=RETRY_DELAY_LEVEL)

    async def scenario() -> None:
        async with cluster_of(3, program=old) as cluster:
            await cluster.create_topic("orders")
            newer = cluster.ids[0]
            cluster.nodes[newer].program = NEW
            cluster.nodes[newer].terminate()
            await asyncio.to_thread(cluster.nodes[newer].wait)
            cluster.restart(newer)
            await cluster.back(newer)
            await cluster.settled()
            async with Client(*(one.address for one in cluster.nodes.values())) as client:
                await client.publish_batch("orders", [b"%d" % one for one in range(10)])
                attempt = 0
                for leader in (newer, cluster.ids[1], newer, cluster.ids[2]):
                    await _led_by(cluster, leader)
                    async with _join(client) as consumer:
                        attempt = await _fail_next(consumer, after=attempt)
                await cluster.settled()

                for node in cluster.ids[1:]:
                    cluster.nodes[node].program = NEW
                    cluster.nodes[node].terminate()
                    await asyncio.to_thread(cluster.nodes[node].wait)
                    cluster.restart(node)
                    await cluster.back(node)
                await cluster.settled()

                async def raised() -> bool:
                    return await cluster.contact(newer).raise_level() == LEVEL_MAX

                await eventually(raised, within_s=WAIT_S, what="every node says what it knows")
                for leader in cluster.ids:
                    await _led_by(cluster, leader)
                    async with _join(client) as consumer:
                        attempt = await _fail_next(consumer, after=attempt)
                async with _join(client) as consumer, asyncio.timeout(WAIT_S):
                    found: set[int] = set()
                    while len(found) < 10:
                        batch = await consumer.next_batch()
                        assert batch is not None
                        found |= set(batch.offsets())
                        await batch.ack()
                await cluster.settled()

    run(scenario())


NEW = (sys.executable, "-m", "angarium.testing.cluster.small_node")


def _join(client: Client) -> Consumer:
    return client.group("g", kind=GroupKind.STREAM, config=CONFIG).consume("orders", credit=1)


async def _fail_next(consumer: Consumer, *, after: int) -> int:
    """Let the first record fail once more; return which attempt that was."""
    async with asyncio.timeout(WAIT_S):
        batch = await consumer.next_batch()
        assert batch is not None
        assert list(batch.offsets()) == [0]
        assert batch.attempt == after + 1, "each failure counts, once"
        await batch.nack()
        return batch.attempt


async def _led_by(cluster: ProcessCluster, node: NodeId) -> None:
    async def leads() -> bool:
        leader = await cluster.leader("orders")
        if leader != node:
            try:
                await cluster.contact(leader).transfer("orders", 0, node)
            except AngariumError:
                return False
        return leader == node

    await eventually(leads, within_s=WAIT_S, what=f"node {node} leads")


@pytest.fixture(autouse=True)
def _there_is_an_earlier_level() -> None:
    assert RETRY_DELAY_LEVEL == LEVEL_MAX, "take a release from before this level"
