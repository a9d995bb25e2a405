"""Where a majority is gone a node says of what, and who is missing, once for all partitions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium import Client
from angarium.testing.broker import InProcessBroker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def test_partitions_that_miss_the_same_nodes_share_a_sentence(tmp_path: Path) -> None:
    async def story() -> None:
        cluster = InProcessBroker(tmp_path, nodes=3)
        await cluster.start()
        try:
            async with Client(*cluster.addresses) as client:
                for topic in ("cups", "plates", "spoons"):
                    await client.create_topic(topic, partitions=8)
            first, two, three = cluster.nodes
            assert first is not None
            assert two is not None
            assert three is not None
            missing = ", ".join(
                f"node {one.id} ({first.peers.address_of(one.id)})"
                for one in sorted((two, three), key=lambda one: one.id)
            )
            await cluster.stop_node(1)
            await cluster.stop_node(2)
            await until(lambda: len(first.readiness.reasons()) == 2)
            await until(lambda: "24 partitions" in first.readiness.reasons()[1])
            assert first.readiness.reasons() == (
                "the catalog has 1 of 3 voters: topics, groups and nodes cannot be changed, "
                f"nor new producers let in, until 2 are there; missing: {missing}",
                "24 partitions (of cups, plates, spoons) have 1 of 3 replicas: "
                f"they cannot take records until 2 are there; missing: {missing}",
            )
            group = next(iter(first.host.replicas))
            assert str(first.quorum.no_leader(group)) == (
                f"{first.catalog.name_of(group)} has 1 of 3 replicas: "
                f"it cannot take records until 2 are there; missing: {missing}"
            )
        finally:
            await cluster.stop()

    asyncio.run(story())


def test_of_very_many_topics_some_are_named(tmp_path: Path) -> None:
    async def story() -> None:
        cluster = InProcessBroker(tmp_path, nodes=1)
        await cluster.start()
        try:
            async with Client(*cluster.addresses) as client:
                for number in range(7):
                    await client.create_topic(f"t{number}", partitions=1)
                # The cluster's own topic for dead letters, which comes behind people's.
                await client.publish("t0", b"x")
                async with client.group("g").consume("t0") as records:
                    async for record in records:
                        await record.reject("no")
                        break
            (node,) = cluster.nodes
            assert node is not None
            await until(lambda: len(node.host.replicas) == 8)
            summed_up = node.quorum._summed_up(list(node.host.replicas))
            assert summed_up == "8 partitions (of t0, t1, t2, t3, t4 and 3 more)"
        finally:
            await cluster.stop()

    asyncio.run(story())
