"""Nodes of different releases work together where they can, or say what to do about it."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.cluster.releases import FAR_NODE, NEW_NODE, OLD_NODE

from angarium.batch import Batch
from angarium.errors import PreconditionFailed
from angarium.ids import Offset
from angarium.testing.cluster import eventually

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

    from angarium.ids import NodeId
    from angarium.testing.cluster import Contact, NodeProcess


async def parting_words(node: NodeProcess) -> str:
    """Wait until a node has given up and return what it leaves to its operator."""
    status = await asyncio.to_thread(node.wait)
    assert status != 0
    logged = [json.loads(line) for line in node.last_words().splitlines() if line.startswith("{")]
    reasons = [one["reason"] for one in logged if one["level"] == "critical" and "reason" in one]
    return str(reasons[-1])


def test_old_and_new_nodes_are_one_cluster_at_the_level_of_the_old_ones(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        programs = {"b": NEW_NODE}
        async with cluster_of(3, program=OLD_NODE, programs=programs) as cluster:
            statuses = [await cluster.contact(node).status() for node in cluster.ids]
            assert sorted(status.version for status in statuses) == ["1.0", "1.0", "2.0"]
            (new,) = [status.node for status in statuses if status.version == "2.0"]
            for status in statuses:
                assert status.feature_level == 1
                levels = {one.id: one.level_max for one in status.nodes}
                assert levels == {node: 2 if node == new else 1 for node in cluster.ids}

            await cluster.create_topic("orders")
            for number, node in enumerate(cluster.ids):
                contact = cluster.contact(node)
                ack = await contact.store("orders", 0, [b"%d" % node])
                assert ack.base_offset == number
            for leader in cluster.ids:  # whoever leads, old or new, serves everybody

                async def leads(leader: NodeId = leader) -> bool:
                    await cluster.contact(leader).transfer("orders", 0, leader)
                    return True

                await eventually(leads, what=f"node {leader} leads")
                for node in cluster.ids:
                    assert await everything(cluster.contact(node)) == [
                        b"%d" % one for one in cluster.ids
                    ]

            with pytest.raises(PreconditionFailed) as refusal:
                await cluster.contact(new).raise_level(2)
            for node in cluster.ids:
                assert (f"node {node}" in str(refusal.value)) == (node != new)
            assert await cluster.contact(new).raise_level() == 1

    run(scenario())


async def everything(contact: Contact) -> list[bytes | None]:
    async def all_three() -> list[bytes | None]:
        result = await contact.fetch("orders", 0, Offset(0), fresh=True)
        values = [one.value for data in result.batches for one in Batch.parse(data)]
        return values if len(values) == 3 else []

    return await eventually(all_three)


def test_a_node_too_old_for_the_clusters_level_is_told_to_upgrade(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(1, programs={"a": NEW_NODE}, program=OLD_NODE) as cluster:
            (first,) = cluster.ids
            status = await cluster.contact(first).status()
            assert status.feature_level == 2  # a new cluster begins with all its release brings
            old = cluster.prepare()
            old.start(join=[cluster.nodes[first].address])
            words = await parting_words(old)
            assert "the cluster works at feature level 2, the node knows levels 1 to 1" in words
            assert "start the node with a newer release" in words
            assert not (old.data / "identity").exists()
            status = await cluster.contact(first).status()
            assert [one.id for one in status.nodes] == [first]

    run(scenario())


def test_a_node_without_a_wire_version_in_common_is_told_whom_to_upgrade(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(1, program=FAR_NODE, programs={"a": OLD_NODE}) as cluster:
            (first,) = cluster.ids
            far = cluster.prepare()
            far.start(join=[cluster.nodes[first].address])
            words = await parting_words(far)
            assert "the client (angarium 9.0) 8 to 9; upgrade node 1 (angarium 1.0) first" in words
            assert not (far.data / "identity").exists()

    run(scenario())


def test_a_release_put_back_before_the_level_was_raised_goes_on(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(1, program=OLD_NODE) as cluster:
            (only,) = cluster.ids
            contact = cluster.contact(only)
            await cluster.create_topic("orders")
            await contact.store("orders", 0, [b"old"])
            for program, version in ((NEW_NODE, "2.0"), (OLD_NODE, "1.0")):
                await change_release(cluster.nodes[only], program)
                await cluster.back(only)
                await cluster.settled(topics=["orders"])
                assert (await contact.status()).version == version
                await eventually(partial(registered, contact, version))
                await contact.store("orders", 0, [version.encode()])
            assert await everything(contact) == [b"old", b"2.0", b"1.0"]

    run(scenario())


async def registered(contact: Contact, version: str) -> bool:
    (node,) = (await contact.status()).nodes
    return node.level_max == (2 if version == "2.0" else 1)


def test_a_release_put_back_after_the_level_was_raised_does_not_touch_the_data(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(1, program=NEW_NODE) as cluster:
            (only,) = cluster.ids
            process = cluster.nodes[only]
            await change_release(process, OLD_NODE)
            words = await parting_words(process)
            assert "the cluster works at feature level 2, angarium 1.0 knows only 1" in words
            assert "start a newer release on this data directory" in words
            process.program = NEW_NODE
            cluster.restart(only)
            await cluster.back(only)
            assert (await cluster.contact(only).status()).feature_level == 2
            # One that has forgotten how this level was done does not touch them either.
            await change_release(process, FAR_NODE)
            assert "go back to the release before" in await parting_words(process)

    run(scenario())


def test_a_release_put_back_while_the_level_was_raised_stops_when_it_hears_of_it(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, program=NEW_NODE, programs={"a": OLD_NODE}) as cluster:
            first, *_, last = cluster.ids
            await change_release(cluster.nodes[first], NEW_NODE)
            await cluster.back(first)
            await cluster.settled()
            process = cluster.nodes[last]
            process.terminate()
            assert await asyncio.to_thread(process.wait) == 0

            async def raised() -> bool:
                # The first node may not have told the catalog yet what it knows.
                return await cluster.contact(first).raise_level() == 2

            await eventually(raised)
            process.program = OLD_NODE
            cluster.restart(last)
            # From whoever hangs up on it, or from the catalog: the first one counts.
            words = await parting_words(process)
            assert "the cluster works at feature level 2" in words
            assert "knows only 1" in words
            assert "newer release" in words
            process.program = NEW_NODE
            cluster.restart(last)
            await cluster.back(last)
            await cluster.settled()

    run(scenario())


async def change_release(process: NodeProcess, program: tuple[str, ...]) -> None:
    process.terminate()
    assert await asyncio.to_thread(process.wait) == 0
    process.program = program
    process.start()
