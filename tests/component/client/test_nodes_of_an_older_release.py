"""What a node's release does not know is not sent there: it would do the rest without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.component.client.fake_broker import fake_cluster
from tests.component.client.harness import settings

from angarium.api import TopicConfig
from angarium.api.settings import level_of
from angarium.client import Client
from angarium.errors import PreconditionFailed
from angarium.node.release import REGIONS_LEVEL, WITNESS_LEVEL

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

WITNESSED = TopicConfig(replication=2, witness=("tie",))


def test_settings_that_a_node_would_read_over_are_refused_by_the_client(run: Runner) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster:
            cluster.level = WITNESS_LEVEL - 1
            cluster.add_topic("t", partitions=1)
            async with Client(*cluster.addresses, settings=settings()) as client:
                for asked in (
                    client.create_topic("new", config=WITNESSED),
                    client.restore_topic("new", partitions=1, config=WITNESSED),
                    client.alter_topic("t", config=WITNESSED),
                ):
                    with pytest.raises(PreconditionFailed, match="need feature level 7, node 1"):
                        await asked
                assert list(cluster.topics) == ["t"]
                await client.create_topic("new", config=TopicConfig(regions=("eu",)))

    run(main())


def test_settings_have_the_levels_that_nodes_ask_for() -> None:
    assert level_of(TopicConfig(replication=2, retention_ms=1)) == 1
    assert level_of(TopicConfig(regions=("eu",))) == REGIONS_LEVEL
    assert level_of(TopicConfig(placement="homed", regions=("eu",))) == REGIONS_LEVEL
    assert level_of(WITNESSED) == WITNESS_LEVEL
