"""Whoever publishes through a door while a partition has no leader waits; nobody is sent away."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from tests.doors.cluster_of_doors import run
from tests.doors.speaking import http

from angarium.bench.cluster import BenchCluster
from angarium.client import Client
from angarium.testing.cluster.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path


def test_a_publish_between_two_leaders_is_answered_by_the_new_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with BenchCluster(tmp_path) as cluster:
            async with Client(*cluster.servers.split(",")) as client:
                await client.create_topic("orders")

                async def led() -> int | None:
                    return (await client.describe_topic("orders")).partitions[0].leader

                leader = await eventually(led)
                assert leader is not None
            left = [node.http for at, node in enumerate(cluster.nodes, 1) if at != leader]
            os.kill(cluster.nodes[leader - 1].pid, signal.SIGKILL)
            for address in left:
                one = await http(address, "POST", "/v1/topics/orders/records", {"value": "one"})
                # 504: on its way when the leader died, so that nobody knows what became of it.
                assert one.status in (200, 504), one.body
                records = {"records": [{"value": "many"}]}
                many = await http(address, "POST", "/v1/topics/orders/records/batch", records)
                assert many.status == 200, many.body

    run(story())
