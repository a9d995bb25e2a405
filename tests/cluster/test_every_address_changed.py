"""A cluster whose nodes all come back at other addresses finds itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.testing.cluster.chaos.addresses import moved

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run


def test_nodes_that_all_moved_find_each_other(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders", partitions=3)
            for _ in range(2):
                await moved(cluster)
            await cluster.settled(topics=["orders"])

    run(scenario())
