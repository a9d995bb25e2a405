"""A cluster is formed once, explicitly; everybody else joins; any node answers any client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.batch import Batch
from angarium.ids import Offset
from angarium.testing.cluster import Contact, eventually
from angarium.testing.reserved_port import HOST

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

    from angarium.ids import NodeId
    from angarium.testing.cluster.processes import NodeProcess


def test_nodes_that_join_belong_to_the_cluster_that_was_formed(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            statuses = [await cluster.contact(node).status() for node in cluster.ids]
            assert len({status.cluster_id for status in statuses}) == 1
            assert statuses[0].cluster_id
            assert len({status.catalog_leader for status in statuses}) == 1
            for status in statuses:
                assert [one.id for one in status.nodes] == cluster.ids
                assert all(one.alive for one in status.nodes)

    run(scenario())


def test_an_empty_node_never_forms_a_cluster_by_itself(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(1) as cluster:
            stranger = cluster.prepare()
            stranger.start()
            status = await asyncio.to_thread(stranger.wait)
            assert status != 0
            sentence = stranger.last_words().splitlines()[-1]
            assert sentence.startswith("angarium: ")
            assert "never forms one by itself" in sentence

    run(scenario())


def test_a_node_that_cannot_reach_anybody_says_so_and_forms_nothing(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(1) as cluster:
            stranger = cluster.prepare()
            nobody = cluster.prepare()
            stranger.start(join=[nobody.address])

            async def says_so() -> bool:
                return f"{nobody.address} does not let us" in stranger.last_words()

            await eventually(says_so, within_s=60.0, what="it says who does not answer")
            stranger.terminate()
            assert await asyncio.to_thread(stranger.wait) == 0
            assert not list(stranger.data.glob("wal/*"))

    run(scenario())


def test_nodes_may_be_started_before_the_one_that_forms_the_cluster(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        # The first cluster only lends its keeper; the three nodes below are one of their own.
        async with cluster_of(1) as keeper:
            nodes = [keeper.prepare() for _ in range(3)]
            addresses = [one.address for one in nodes]
            try:
                for node in nodes[1:]:
                    node.start(join=[one for one in addresses if one != node.address])
                for node in nodes[1:]:

                    async def waits(node: NodeProcess = node) -> bool:
                        return f"{addresses[0]} does not let us" in node.last_words()

                    await eventually(waits, within_s=60.0, what="it waits to be let in")
                nodes[0].start(form=True)
                contact = Contact(HOST, nodes[0].port.number)

                async def are_all_there() -> bool:
                    members = (await contact.status()).nodes
                    return {one.addresses["wire"] for one in members} == set(addresses)

                await eventually(are_all_there, within_s=60.0, what="all three are members")
                members = (await contact.status()).nodes
                assert [one.id for one in members] == [1, 2, 3]
                assert members[0].addresses["wire"] == addresses[0]
                contact.cut()
            finally:
                for node in nodes:
                    node.end()

    run(scenario())


def test_a_topic_made_through_any_node_is_known_to_every_node(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            for node in cluster.ids:
                info = await cluster.contact(node).create_topic(f"made-by-{node}", partitions=2)
                assert [one.number for one in info.partitions] == [0, 1]
                assert all(len(one.replicas) == 3 for one in info.partitions)
            for node in cluster.ids:

                async def knows_all(node: NodeId = node) -> bool:
                    names = [one.name for one in await cluster.contact(node).topics()]
                    return names == [f"made-by-{one}" for one in cluster.ids]

                await eventually(knows_all, what=f"node {node} knows every topic")
            await cluster.contact(cluster.ids[2]).delete_topic("made-by-1")

            async def is_gone() -> bool:
                views = [await cluster.contact(node).topics() for node in cluster.ids]
                return all("made-by-1" not in {one.name for one in view} for view in views)

            await eventually(is_gone, what="the deleted topic is gone everywhere")

    run(scenario())


def test_a_publish_through_a_follower_is_forwarded_and_read_from_every_node(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders")
            leader = await cluster.leader("orders")
            followers = [node for node in cluster.ids if node != leader]
            for number, node in enumerate((leader, *followers)):
                ack = await cluster.contact(node).store("orders", 0, [b"through %d" % number])
                assert (ack.base_offset, ack.topic, ack.partition) == (number, "orders", 0)
            for node in cluster.ids:

                async def everything(node: NodeId = node) -> list[bytes]:
                    result = await cluster.contact(node).fetch("orders", 0, Offset(0))
                    values = [one.value for data in result.batches for one in Batch.parse(data)]
                    return [one for one in values if one] if len(values) == 3 else []

                assert await eventually(everything) == [b"through 0", b"through 1", b"through 2"]

    run(scenario())


def test_a_node_without_a_replica_forwards_to_one_that_has_it(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(4) as cluster:
            info = await cluster.create_topic("orders")
            (outsider,) = set(cluster.ids) - set(info.partitions[0].replicas)
            contact = Contact(HOST, cluster.nodes[outsider].port.number)
            ack = await contact.store("orders", 0, [b"from outside"])
            assert ack.base_offset == 0

            async def found() -> list[bytes | None]:
                result = await contact.fetch("orders", 0, Offset(0))
                return [one.value for data in result.batches for one in Batch.parse(data)]

            assert await eventually(found) == [b"from outside"]
            contact.cut()

    run(scenario())
