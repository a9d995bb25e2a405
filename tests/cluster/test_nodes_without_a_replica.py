"""Any node answers any client, also about partitions of which it has no replica."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium import Client, TopicConfig
from angarium.testing.broker import in_process_broker
from angarium.testing.cluster import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.api import TopicInfo

PARTITIONS = 6


def is_known(topic: TopicInfo) -> bool:
    """Tell whether everything about every partition is known, the one record of each included.

    Nobody counts as in sync for the first few ticks of a membership.
    """
    return all(
        one.leader == one.replicas[0] and one.end_offset == 1 and bool(one.in_sync)
        for one in topic.partitions
    )


def test_every_node_knows_the_leader_and_the_end_of_every_partition(tmp_path: Path) -> None:
    async def scene() -> None:
        async with in_process_broker(tmp_path, nodes=3, tick_ms=20) as broker:
            alone = TopicConfig(replication=1)
            async with Client(*broker.addresses) as client:
                await client.create_topic("t", partitions=PARTITIONS, config=alone)
                for number in range(PARTITIONS):
                    await client.publish("t", b"x", partition=number)
            for address in broker.addresses:
                async with Client(address) as client:

                    async def all_is_known(client: Client = client) -> bool:
                        (listed,) = await client.list_topics()
                        return is_known(await client.describe_topic("t")) and is_known(listed)

                    await eventually(all_is_known, what=f"{address} knows all")

    asyncio.run(scene())


def test_partitions_whose_only_replica_is_gone_are_shown_without_a_leader(tmp_path: Path) -> None:
    async def scene() -> None:
        async with in_process_broker(tmp_path, nodes=3, tick_ms=20) as broker:
            async with Client(*broker.addresses) as client:
                config = TopicConfig(replication=1)
                await client.create_topic("t", partitions=PARTITIONS, config=config)
            (gone,) = [node.id for node in broker.nodes[2:] if node is not None]
            await broker.stop_node(2)
            async with Client(broker.addresses[0]) as client:

                async def only_those_lack_one() -> bool:
                    parts = (await client.describe_topic("t")).partitions
                    return {one.replicas for one in parts if one.leader is None} == {(gone,)}

                await eventually(only_those_lack_one, what="those on the node that is gone")

    asyncio.run(scene())
