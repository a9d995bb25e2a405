"""A data folder replaced by an older copy: the node is refused, and nothing is built on it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.busy_machine import slowness

from angarium.batch import encode
from angarium.errors import NotLeader
from angarium.testing.cluster import eventually
from angarium.testing.cluster.faults import HEARD_S, own_values, roll_back

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

    from angarium.testing.cluster import ProcessCluster


async def publish(cluster: ProcessCluster, count: int) -> None:
    for number in range(count):
        await eventually(lambda: is_published(cluster, number), within_s=60.0, what="an answer")  # noqa: B023 - called now


async def is_published(cluster: ProcessCluster, number: int) -> bool:
    leader = cluster.contact(await cluster.leader("orders"))
    try:
        await leader.publish("orders", 0, [encode([f"{number}".encode()])], timeout_s=30.0)
    except NotLeader:
        return False  # on a busy machine it may have lost its place meanwhile; nothing was taken
    return True


def test_a_node_whose_folder_is_an_older_copy_ends_and_comes_back_empty(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders")
            leader = await cluster.leader("orders")
            forgetful = next(node for node in cluster.ids if node != leader)
            process = cluster.nodes[forgetful]
            put_back = await roll_back(cluster, forgetful)
            await publish(cluster, 50)
            # The others ask every second how far its log is.
            await asyncio.sleep(HEARD_S * slowness())
            process.kill()
            put_back()
            cluster.restart(forgetful)
            assert await asyncio.to_thread(process.wait) != 0
            said = process.last_words()
            assert "was replaced by an older copy" in said
            assert f"ANGARIUM_NODE_ID={forgetful}" in said
            # A supervisor starts it again, and nobody else is there to tell it.
            others = [node for node in cluster.ids if node != forgetful]
            for node in others:
                cluster.nodes[node].kill()
            cluster.restart(forgetful)
            assert await asyncio.to_thread(process.wait) != 0
            assert "The file rolled-back in the data folder" in process.last_words()
            for node in others:
                cluster.restart(node)
            for node in others:
                await cluster.back(node)
            # As it was told: with an empty folder it is let in, and filled again.
            process.wipe()
            cluster.restart(forgetful)
            await cluster.back(forgetful)
            await cluster.ready(forgetful)
            own = await own_values(cluster, forgetful, "orders")
            assert own == [f"{number}".encode() for number in range(50)]

    run(scenario())


def test_a_whole_cluster_that_restarts_takes_nobody_for_an_older_copy(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders")
            await publish(cluster, 20)
            await asyncio.sleep(HEARD_S * slowness())
            for _ in range(2):
                for node in cluster.ids:
                    cluster.nodes[node].kill()
                for node in cluster.ids:
                    cluster.restart(node)
                for node in cluster.ids:
                    await cluster.back(node)
                await cluster.settled(topics=["orders"])
                await publish(cluster, 5)

    run(scenario())


@pytest.mark.parametrize("way", ["stopped", "killed"])
def test_an_older_copy_is_noticed_after_all_nodes_have_ended(
    run: Run, cluster_of: ClusterOf, way: str
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders")
            leader = await cluster.leader("orders")
            forgetful = next(node for node in cluster.ids if node != leader)
            put_back = await roll_back(cluster, forgetful)
            await publish(cluster, 50)
            await asyncio.sleep(HEARD_S * slowness())
            # The others have written it down when they heard it, not only as they stop.
            for node in cluster.ids:
                if way == "killed":
                    cluster.nodes[node].kill()
                else:
                    cluster.nodes[node].terminate()
            for node in cluster.ids:
                await asyncio.to_thread(cluster.nodes[node].wait)
            put_back()
            for node in cluster.ids:
                cluster.restart(node)
            ended = asyncio.to_thread(cluster.nodes[forgetful].wait, within_s=60.0)
            assert await ended != 0
            assert "was replaced by an older copy" in cluster.nodes[forgetful].last_words()

    run(scenario())


def test_a_node_that_kept_its_identity_and_nothing_else_is_refused(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders")
            await publish(cluster, 5)
            await asyncio.sleep(HEARD_S * slowness())
            leader = await cluster.leader("orders")
            forgetful = next(node for node in cluster.ids if node != leader)
            process = cluster.nodes[forgetful]
            process.kill()
            # Emptied by somebody who wanted it to come back as the node it was.
            identity = (process.data / "identity").read_bytes()
            process.wipe()
            (process.data / "identity").write_bytes(identity)
            cluster.restart(forgetful)
            assert await asyncio.to_thread(process.wait, within_s=60.0) != 0
            assert f"ANGARIUM_NODE_ID={forgetful}" in process.last_words()

    run(scenario())
