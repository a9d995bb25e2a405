"""The Python client on a cluster whose leaders die: it goes on by itself, and loses nothing."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING

from angarium.client import Client
from angarium.testing.cluster import eventually

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

WORKERS = 20
KILLS = 2


def test_a_client_publishes_and_subscribes_through_the_death_of_leaders(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders", partitions=2)
            addresses = [cluster.nodes[node].address for node in cluster.ids]
            acknowledged: dict[int, dict[int, bytes]] = defaultdict(dict)
            received: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
            publishing = True

            async def publish(client: Client, worker: int) -> None:
                number = 0
                while publishing:
                    value = b"%d.%d" % (worker, number)
                    receipt = await client.publish("orders", value, key=b"%d" % worker)
                    assert receipt.offset is not None
                    assert receipt.offset not in acknowledged[receipt.partition]
                    acknowledged[receipt.partition][receipt.offset] = value
                    number += 1
                    await asyncio.sleep(0.01)

            async def subscribe(client: Client) -> None:
                async for record in client.subscribe("orders", start="earliest"):
                    assert record.offset is not None
                    assert record.value is not None
                    received[record.partition].append((record.offset, record.value))

            async with Client(*addresses) as client, Client(*addresses) as reader:
                following = asyncio.create_task(subscribe(reader))
                workers = [asyncio.create_task(publish(client, one)) for one in range(WORKERS)]
                for _ in range(KILLS):
                    leader = await cluster.leader("orders")
                    before = sum(map(len, acknowledged.values()))
                    cluster.nodes[leader].kill()

                    async def go_on(before: int = before) -> bool:
                        return sum(map(len, acknowledged.values())) > before + 200

                    await eventually(go_on, within_s=60.0, what="publishing goes on")
                    cluster.restart(leader)
                    await cluster.back(leader)
                    await cluster.settled(topics=["orders"])
                publishing = False
                async with asyncio.timeout(60):
                    await asyncio.gather(*workers)

                async def all_received() -> bool:
                    return sum(map(len, received.values())) >= sum(map(len, acknowledged.values()))

                await eventually(all_received, within_s=60.0, what="everything is received")
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
            for partition, offsets in acknowledged.items():
                assert received[partition] == sorted(offsets.items()), "in order, once, no gap"

    run(scenario())
