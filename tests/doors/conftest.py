"""One cluster for all tests of this folder, on this worker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.doors.cluster_of_doors import Doors

from angarium.bench.cluster import BenchCluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    cluster = BenchCluster(tmp_path_factory.mktemp("doors"))
    try:
        asyncio.run(cluster.start())
        yield Doors(cluster)
    finally:
        cluster.stop()
