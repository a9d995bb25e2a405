"""Disks replaced one after the other: nothing is lost, and whoever is too quick is held back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from angarium.api import TopicConfig
from angarium.batch import encode
from angarium.errors import AngariumError, CorruptData, TooFewReplicas
from angarium.testing.cluster import eventually
from angarium.testing.cluster.faults import REST_S, own_values, replace_each

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

    from angarium.testing.cluster import ProcessCluster

RECORDS = [f"{number}".encode() for number in range(100)]


async def publish_all(cluster: ProcessCluster) -> None:
    await cluster.create_topic("orders")
    leader = cluster.contact(await cluster.leader("orders"))
    for value in RECORDS:
        await leader.store("orders", 0, [value])


def test_disks_of_an_idle_cluster_are_replaced_with_only_readiness_to_go_by(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await publish_all(cluster)
            assert await replace_each(cluster, "orders", RECORDS) == []

    run(scenario())


def test_a_node_without_its_data_waits_outside_while_others_lack_records(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(4) as cluster:
            await publish_all(cluster)
            info = await (await cluster.someone()).describe("orders")
            away, wiped, kept = info.partitions[0].replicas
            for node in (away, wiped):
                cluster.nodes[node].terminate()
                await asyncio.to_thread(cluster.nodes[node].wait)
            cluster.nodes[wiped].wipe()
            cluster.restart(wiped)

            async def says_why() -> bool:
                said = cluster.nodes[wiped].last_words()
                return "partition 0 of orders has" in said and f"without node {wiped}" in said

            await eventually(says_why, within_s=60.0, what="the refusal is in the log")
            with pytest.raises(TooFewReplicas, match="partition 0 of orders has"):
                await cluster.contact(kept).drain(kept)
            # The one that was only down comes back with its data: now two of three have all.
            cluster.restart(away)
            for node in (away, wiped):
                await cluster.back(node)
            for node in cluster.ids:
                await cluster.ready(node)
            await cluster.settled(topics=["orders"])

    run(scenario())


def test_a_group_does_not_go_to_rest_while_a_member_is_away(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await publish_all(cluster)
            leader = await cluster.leader("orders")
            wiped = next(node for node in cluster.ids if node != leader)
            cluster.nodes[wiped].kill()
            await asyncio.sleep(REST_S)  # long enough for the others to rest, were it allowed
            cluster.nodes[wiped].wipe()
            cluster.restart(wiped)
            await cluster.back(wiped)
            await cluster.ready(wiped)
            assert await own_values(cluster, wiped, "orders") == RECORDS

    run(scenario())


def test_whoever_had_the_only_replica_says_that_its_records_are_gone(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("scraps", config=TopicConfig(replication=1))
            (home,) = (await (await cluster.someone()).describe("scraps")).partitions[0].replicas
            await cluster.contact(home).store("scraps", 0, [b"lost"])
            cluster.nodes[home].terminate()
            await asyncio.to_thread(cluster.nodes[home].wait)
            cluster.nodes[home].wipe()
            cluster.restart(home)
            await cluster.back(home)

            async def says_so() -> bool:
                try:
                    await cluster.contact(home).publish("scraps", 0, [encode([b"more"])])
                except CorruptData as damage:
                    return "its records are gone" in str(damage) and "delete" in str(damage)
                except AngariumError:
                    return False  # the catalog is still being copied
                raise AssertionError("it was taken although nobody can keep it")

            await eventually(says_so, within_s=60.0, what="it says that the records are gone")

            async def is_unready() -> bool:
                status = await cluster.contact(home).status()
                (mine,) = [one for one in status.nodes if one.id == home]
                return any("its records are gone" in reason for reason in mine.unready)

            # A node looks once a second how it is.
            await eventually(is_unready, within_s=60.0, what="the node is not ready for it")

    run(scenario())


def test_a_node_that_forms_a_second_cluster_on_its_new_disk_is_not_ready(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(2) as cluster:
            founder, other = cluster.ids
            process = cluster.nodes[founder]
            process.kill()
            process.wipe()
            process.start(form=True)  # as it was started the first time

            async def says_so() -> bool:
                status = await cluster.contact(founder).status()
                return any(
                    f"node {other} " in reason and "formed a cluster by itself" in reason
                    for mine in status.nodes
                    for reason in mine.unready
                )

            await eventually(says_so, within_s=60.0, what="it says that there is another cluster")

    run(scenario())
