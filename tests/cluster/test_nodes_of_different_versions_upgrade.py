"""A cluster is upgraded node by node while it is in use, and only then uses what is new."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cluster.releases import NEW_NODE, OLD_NODE

from angarium.errors import PreconditionFailed
from angarium.testing.cluster import Load, eventually
from angarium.testing.cluster.faults import Recovery, restart_gracefully
from angarium.testing.cluster.waiting import now_micros

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

    from angarium.testing.cluster import ProcessCluster


async def versions(cluster: ProcessCluster) -> list[str]:
    return sorted([(await cluster.contact(node).status()).version for node in cluster.ids])


async def levels(cluster: ProcessCluster) -> set[int]:
    return {(await cluster.contact(node).status()).feature_level for node in cluster.ids}


def test_a_rolling_upgrade_under_load_loses_nothing_and_ends_with_the_new_level(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, program=OLD_NODE) as cluster:
            await cluster.create_topic("orders", partitions=2)
            recovery = Recovery()
            async with Load(cluster, topic="orders", partitions=2) as load:
                for done, node in enumerate(cluster.ids):
                    contact = cluster.contact(node)
                    with pytest.raises(PreconditionFailed, match="is not known to every node"):
                        await contact.raise_level(2)
                    cluster.nodes[node].program = NEW_NODE
                    await restart_gracefully(cluster, load, recovery, node)
                    assert await versions(cluster) == ["1.0"] * (2 - done) + ["2.0"] * (done + 1)
                    assert await levels(cluster) == {1}

                async def raised() -> bool:
                    # The last node may not have told the catalog yet what it knows.
                    return await cluster.contact(cluster.ids[0]).raise_level() == 2

                await eventually(raised)

                async def all_know() -> bool:
                    return await levels(cluster) == {2}

                await eventually(all_know)
                await load.acknowledged_after(now_micros())
                # The level outlives restarts.
                await restart_gracefully(cluster, load, recovery, cluster.ids[0])
                await eventually(all_know)
                verdict = await load.conclude()
            assert verdict.violations == []
            assert verdict.acknowledged > 100

    run(scenario())
