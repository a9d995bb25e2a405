"""Clients of clusters whose nodes go, one after another, while others come.

What a client was given are addresses to begin with. All of them may be gone one day, and it goes on
with the nodes that it has heard of since: publishers, subscribers and members of groups alike.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.component.client.fake_broker import LOCALHOST, Node
from tests.component.client.groups.fake_group import GROUP, fake_group, grouped
from tests.component.client.harness import settings
from tests.on_a_loop import eventually

from angarium.client import Client
from angarium.client.addresses import Address

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.component.client.fake_broker import Cluster
    from tests.component.wire.running import Runner

    from angarium.client import Consumer
    from angarium.client.reach import Reach
    from angarium.client.routes import Routes

LONG_S = 3_600.0
"""So that nothing is asked for in the course of time."""


async def joined(cluster: Cluster) -> Node:
    """Let one more node come."""
    node = Node(cluster, max(one.id for one in cluster.nodes) + 1)
    await node.start()
    cluster.nodes.append(node)
    return node


async def removed(cluster: Cluster, node: Node) -> None:
    """Let a node hand over what it leads, be forgotten, and end."""
    cluster.nodes.remove(node)
    for topic in cluster.topics.values():
        for partition in topic.partitions:
            if partition.leader == node.id:
                partition.leader = cluster.nodes[-1].id
    await node.stop()


def reaches(client: Client) -> list[Reach]:
    """Return both maps of a client: its own, and that of its consumers."""
    keeper = client._opened.keeper
    kept = None if keeper is None else keeper._reach
    return [client._reach] if kept is None else [client._reach, kept]


async def until_known(client: Client, nodes: Iterable[Node]) -> None:
    """Wait until all of a client has heard of exactly these nodes."""
    ids = {node.id for node in nodes}
    await eventually(
        lambda: all(set(reach.routes.nodes) == ids for reach in reaches(client)), within_s=20.0
    )


async def works(client: Client, consumer: Consumer) -> None:
    """See a record published, read, and given to the member of a group."""
    async with asyncio.timeout(20.0):
        receipt = await client.publish("t", b"x")
        async with client.subscribe("t", start=receipt.offset or 0) as records:
            async for record in records:
                assert record.offset == receipt.offset
                break
        async for lent in consumer:
            await lent.ack()
            if lent.offset == receipt.offset:
                break


def test_members_of_groups_hear_of_nodes_although_nothing_happens_to_them(run: Runner) -> None:
    """The chaos row met it: they knew the nodes of their first minute, and no others, ever."""

    async def main() -> None:
        async with (
            grouped(nodes=3, refresh_s=0.05) as (group, client),
            client.group(GROUP).consume("t") as consumer,
        ):
            cluster = group.cluster
            for node in list(cluster.nodes):
                await joined(cluster)
                await until_known(client, cluster.nodes)
                await removed(cluster, node)
                await works(client, consumer)

    run(main())


def test_a_lost_connection_makes_a_client_ask_who_is_there(run: Runner) -> None:
    async def main() -> None:
        async with (
            grouped(nodes=3, refresh_s=LONG_S) as (group, client),
            client.group(GROUP).consume("t") as consumer,
        ):
            cluster = group.cluster
            await works(client, consumer)
            await joined(cluster)
            for node in cluster.nodes:
                node.cut()
            await until_known(client, cluster.nodes)

    run(main())


def test_what_is_known_outlives_a_time_in_which_nobody_answers(run: Runner) -> None:
    async def main() -> None:
        async with (
            grouped(nodes=2, refresh_s=0.05, request_timeout_s=0.3) as (group, client),
            client.group(GROUP).consume("t") as consumer,
        ):
            cluster = group.cluster
            first = list(cluster.nodes)
            for _ in first:
                await joined(cluster)
            await until_known(client, cluster.nodes)
            for node in first:
                await removed(cluster, node)
            await until_known(client, cluster.nodes)
            for node in cluster.nodes:
                await node.stop()
            assert not await client.is_healthy(timeout_s=0.5)
            await asyncio.sleep(0.5)  # long enough for every kind of attempt to fail
            assert all(len(reach.routes.nodes) == 2 for reach in reaches(client))
            for node in cluster.nodes:
                await node.start()
            await works(client, consumer)

    run(main())


def test_seeds_are_tried_when_none_of_the_others_is_there_any_more(run: Runner) -> None:
    async def main() -> None:
        async with (
            grouped(nodes=2, refresh_s=0.05) as (group, client),
            client.group(GROUP).consume("t") as consumer,
        ):
            cluster = group.cluster
            seeds = list(cluster.nodes)
            other = await joined(cluster)
            await until_known(client, cluster.nodes)
            for node in seeds:
                await removed(cluster, node)
            await until_known(client, [other])
            # What was removed is put up again at the same address, as a new node; the other dies.
            cluster.nodes.append(seeds[0])
            await other.stop()
            cluster.nodes.remove(other)
            cluster.topics["t"].partitions[0].leader = seeds[0].id
            await seeds[0].start()
            await works(client, consumer)

    run(main())


def test_a_node_that_knows_of_few_does_not_make_a_client_forget_the_others(run: Runner) -> None:
    """A node that was cut off, or removed, tells of a cluster that was."""

    async def main() -> None:
        async with fake_group(nodes=3) as group:
            cluster = group.cluster
            first, *others = cluster.nodes
            async with (
                Client(cluster.addresses[0], settings=settings(refresh_s=0.05)) as client,
                client.group(GROUP).consume("t") as consumer,
            ):
                await until_known(client, cluster.nodes)
                cluster.nodes = [first]
                await until_known(client, [first])
                cluster.nodes = others
                cluster.topics["t"].partitions[0].leader = others[0].id
                await first.stop()
                await works(client, consumer)

    run(main())


def test_an_answer_that_names_nobody_changes_nothing(run: Runner) -> None:
    async def main() -> None:
        async with grouped(nodes=2, refresh_s=LONG_S) as (group, client):
            cluster = group.cluster
            everybody, cluster.nodes = cluster.nodes, []
            await client.cluster_status()
            assert len(client._reach.routes.nodes) == 2
            cluster.nodes = everybody

    run(main())


def test_addresses_that_just_failed_are_tried_after_those_that_did_not(run: Runner) -> None:
    """Else a few that let every attempt run into its time would hide those behind them."""

    async def main() -> None:
        async with grouped(nodes=3, refresh_s=LONG_S) as (group, client):
            cluster = group.cluster
            routes: Routes = client._reach.routes
            client._reach.pool.cut()
            gone = cluster.nodes[0]
            await gone.stop()
            await eventually(lambda: not client._reach.pool.open_addresses())
            await routes.any_connection()
            assert list(routes._candidates())[-1] == Address(LOCALHOST, gone.port)

    run(main())
