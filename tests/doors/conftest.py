"""One cluster for all tests of this folder, on this worker, and one with every profile on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.doors.cluster_of_doors import Doors
from tests.doors.compat.profiles_on import Profiles, profiles_on

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


@pytest.fixture(scope="session")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Profiles]:
    with profiles_on(tmp_path_factory.mktemp("profiles"), nodes=3) as found:
        yield found
