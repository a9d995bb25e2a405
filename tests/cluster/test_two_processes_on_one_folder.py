"""A data folder has one process. A second one is refused before it has touched anything."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.doors.status import Exit
from angarium.doors.wire.door import WireDoor
from angarium.log.folder_lock import lock_folder
from angarium.node.config import NodeConfig
from angarium.node.node import Node
from angarium.service.access import Access
from angarium.service.metering import MeteredService
from angarium.testing.cluster import Load
from angarium.testing.cluster.processes import NodeProcess
from angarium.testing.cluster.waiting import now_micros

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from tests.cluster.running import ClusterOf, Run


def test_a_second_process_on_a_folder_in_use_is_refused_and_nothing_is_lost(
    run: Run, cluster_of: ClusterOf, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with cluster_of(1) as cluster:
            await cluster.create_topic("orders")
            first = cluster.nodes[cluster.ids[0]]
            async with Load(cluster, topic="orders", partitions=1, producers=2) as load:
                await load.acknowledged_after(now_micros())
                for number in range(2):
                    second = NodeProcess(name=f"second-{number}", folder=tmp_path, data=first.data)
                    second.start(form=True)
                    try:
                        assert await asyncio.to_thread(second.wait) == Exit.CONFLICT
                    finally:
                        second.end()
                    sentence = second.last_words().splitlines()[-1]
                    assert f"{first.data} is in use by process {first.pid} on " in sentence
                await load.acknowledged_after(now_micros())
                # A process that is killed leaves its lock file, and no lock.
                first.kill()
                cluster.restart(cluster.ids[0])
                await cluster.back(cluster.ids[0])
                await load.acknowledged_after(now_micros())
                verdict = await load.conclude()
            assert verdict.violations == []

    run(scenario())


def test_a_node_waits_a_moment_for_its_predecessor_to_be_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("angarium.node.node.LOCK_PATIENCE_S", 60.0)

    async def scenario() -> None:
        predecessor = lock_folder(tmp_path)
        node = Node(NodeConfig(data_directory=tmp_path, wire_port=0, form=True))
        service = MeteredService(node)
        node.welcome = WireDoor(node, service, Access(service)).welcome
        start = asyncio.create_task(node.start())
        done, _ = await asyncio.wait([start], timeout=0.2)
        assert not done
        predecessor.release()
        await start
        await node.stop()
        lock_folder(tmp_path).release()

    asyncio.run(scenario())
