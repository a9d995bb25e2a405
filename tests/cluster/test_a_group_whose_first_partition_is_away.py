"""The node of partition 0 is killed: a group goes on, and takes that up when it is back.

Each partition has one replica, as one of a homed topic has its replicas in one region.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from angarium import Client
from angarium.api import TopicConfig
from angarium.client import ClientSettings
from angarium.errors import NotLeader
from angarium.kinds import GroupKind
from angarium.testing.cluster import ProcessCluster, eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.running import Run

    from angarium.client.groups.consumer import Consumer
    from angarium.ids import NodeId

PARTITIONS = 6
WAIT_S = 90.0
SETTINGS = ClientSettings(request_timeout_s=20.0)


@pytest.mark.parametrize("kind", [GroupKind.QUEUE, GroupKind.STREAM])
@pytest.mark.parametrize("is_silent", [False, True], ids=["killed", "silent"])
def test_a_group_goes_on_without_partition_0_and_takes_it_up_later(
    run: Run, tmp_path: Path, kind: GroupKind, is_silent: bool
) -> None:
    async def scenario() -> None:
        async with ProcessCluster(tmp_path) as cluster:
            await cluster.create_topic(
                "orders", partitions=PARTITIONS, config=TopicConfig(replication=1)
            )
            homes = {one: await cluster.leader("orders", one) for one in range(PARTITIONS)}
            away = {one for one, node in homes.items() if node == homes[0]}
            assert 0 < len(away) < PARTITIONS
            servers = [cluster.nodes[node].address for node in cluster.ids if node != homes[0]]
            async with Client(*servers, settings=SETTINGS) as client:
                for one in range(PARTITIONS):
                    await client.publish("orders", b"%d" % one, partition=one)
                async with client.group("old", kind=kind).consume("orders") as consumer:
                    assert await _partitions(consumer, PARTITIONS) == set(range(PARTITIONS))
                gone = cluster.nodes[homes[0]]
                if is_silent:
                    gone.pause()  # connections stay open, and nothing is answered
                else:
                    gone.kill()

                # It is the only one that knows partition 0, and nothing is lost with it.
                async with client.group("old").consume("orders") as consumer:
                    assert consumer.kind is kind
                    for one in homes.keys() - away:
                        await client.publish("orders", b"more of %d" % one, partition=one)
                    left = PARTITIONS - len(away)
                    assert await _partitions(consumer, left) == homes.keys() - away
                    with pytest.raises(NotLeader, match="only partition 0 settles"):
                        await client.group("new").consume("orders").begin()
                    assert [one.name for one in await client.list_groups()] == ["old"]

                    if is_silent:
                        gone.resume()
                    else:
                        cluster.restart(homes[0])
                    await cluster.back(homes[0])
                    for one in away:
                        await _published(cluster, homes[0], client, one)
                    assert await _partitions(consumer, len(away)) == away

                async def can_be_made() -> bool:
                    try:
                        async with client.group("new").consume("orders"):
                            return True
                    except NotLeader:
                        return False

                await eventually(can_be_made, within_s=WAIT_S, what="a new group can be made")

    run(scenario())


async def _partitions(consumer: Consumer, count: int) -> set[int]:
    """Return the partitions of the next records, all acknowledged."""
    found: list[int] = []
    async with asyncio.timeout(WAIT_S):
        while len(found) < count:
            batch = await consumer.next_batch()
            assert batch is not None
            found += [batch.partition] * len(list(batch.values()))
            await batch.ack()
    return set(found)


async def _published(cluster: ProcessCluster, home: NodeId, client: Client, partition: int) -> None:
    """Publish to a partition as soon as its node leads it again."""

    async def leads() -> bool:
        return await cluster.leader("orders", partition) == home

    await eventually(leads, within_s=WAIT_S, what=f"{partition} is led again")
    await client.publish("orders", b"after", partition=partition)
