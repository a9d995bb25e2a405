"""Clusters of real processes: each test has its own, and shows the nodes' logs where it fails."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import uvloop
from tests.cluster.command_line import FORK_SERVER

from angarium.testing.cluster import ProcessCluster
from angarium.testing.cluster.processes import NodeProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator
    from pathlib import Path

    from tests.cluster.running import ClusterOf, Run


@pytest.fixture(autouse=True, scope="session")
def forked_nodes() -> Iterator[None]:
    """Fork the nodes of all tests: most of what hundreds of starts would cost are imports."""
    NodeProcess.fork_server = FORK_SERVER
    yield
    NodeProcess.fork_server = None


@pytest.fixture
def run() -> Run:
    """Run a coroutine on the event loop that nodes and clients use."""

    def run_on_loop(work: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(work)

    return run_on_loop


@pytest.fixture
def cluster_of(tmp_path: Path) -> ClusterOf:
    """Start a cluster; whatever fails inside brings the nodes' last words along."""

    @asynccontextmanager
    async def started(nodes: int = 3, **settings: Any) -> AsyncIterator[ProcessCluster]:
        cluster = ProcessCluster(tmp_path / "cluster", nodes=nodes, **settings)
        try:
            async with cluster:
                yield cluster
        except BaseException:
            print(cluster.report())
            raise

    return started
