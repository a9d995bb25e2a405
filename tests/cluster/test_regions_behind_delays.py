"""The harness of regions: what crosses takes its time and is counted, what does not is not."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from angarium import Client
from angarium.testing.cluster import ProcessCluster
from angarium.testing.cluster.wan import RegionLoop, WanNetwork, calling_from

if TYPE_CHECKING:
    from pathlib import Path

ONE_WAY_S = 0.05


def test_what_crosses_takes_its_time_and_is_counted(tmp_path: Path) -> None:
    async def run() -> None:
        network = WanNetwork(["east", "west"], one_way_s=ONE_WAY_S)
        async with ProcessCluster(tmp_path, nodes=2, network=network) as cluster:
            at = {network.region_of(node): cluster.nodes[node].address for node in cluster.ids}
            taken = {}
            for region in network.regions:
                with calling_from(network, region):
                    async with Client(at["east"]) as client:
                        before = network.crossed_bytes(region)
                        began = time.monotonic()
                        await client.cluster_status()
                        taken[region] = time.monotonic() - began
                        if region == "west":
                            assert network.crossed["west", "east"] > 0
                            assert network.crossed_bytes(region) > before
            assert taken["west"] >= 2 * ONE_WAY_S

    with asyncio.Runner(loop_factory=RegionLoop) as runner:
        runner.run(run())
