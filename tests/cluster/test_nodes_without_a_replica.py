"""Any node answers any client, also about partitions of which it has no replica."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium import Client, TopicConfig
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.api import TopicInfo

PARTITIONS = 6


def is_known(topic: TopicInfo) -> bool:
    """Tell whether everything about every partition is known, and will stay as it is.

    Nobody counts as in sync for the first few ticks of a membership.
    """
    return all(
        one.leader is not None and one.end_offset is not None and bool(one.in_sync)
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
                    await eventually_known(client)
                    topic = await client.describe_topic("t")
                    assert [one.leader for one in topic.partitions] == [
                        one.replicas[0] for one in topic.partitions
                    ]
                    assert [one.end_offset for one in topic.partitions] == [1] * PARTITIONS
                    assert await client.list_topics() == (topic,)

    async def eventually_known(client: Client) -> None:
        async with asyncio.timeout(60):
            while not is_known(await client.describe_topic("t")):  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0.01)

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
                topic = await client.describe_topic("t")
                assert {one.replicas for one in topic.partitions if one.leader is None} == {(gone,)}

    asyncio.run(scene())
