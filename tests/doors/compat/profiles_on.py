"""Nodes of real processes with every profile's listeners on, each on ports of its own."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from angarium.bench.cluster import HOST, BenchCluster, free_ports
from angarium.security import PasswordHash

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

USER, PASSWORD = "alice", "correct horse: battery"
TOKEN = "let me in"


@dataclass(frozen=True)
class Listeners:
    """Where one node listens for whom."""

    hermes: str
    hermes_http: str
    bale: str
    bale_metrics: tuple[str, str]
    geo: str


@dataclass(frozen=True)
class Profiles:
    """A cluster with every profile on."""

    cluster: BenchCluster
    listeners: Sequence[Listeners]

    @property
    def servers(self) -> list[str]:
        return self.cluster.servers.split(",")


@contextmanager
def profiles_on(folder: Path, *, nodes: int) -> Iterator[Profiles]:
    """Run nodes; every listener of each has a port that nobody else has."""
    ports = [free_ports(6) for _ in range(nodes)]
    shared = {
        "ANGARIUM_COMPAT_HERMES_JOIN_TOKEN": str(PasswordHash.of(TOKEN)),
        "ANGARIUM_USERS_HASHES": f"{USER}={PasswordHash.of(PASSWORD)}",
    }
    environments = [
        {
            "ANGARIUM_COMPAT_HERMES_GRPC_PORT": str(one[0]),
            "ANGARIUM_COMPAT_HERMES_HTTP_PORT": str(one[1]),
            "ANGARIUM_COMPAT_BALE_GRPC_PORT": str(one[2]),
            "ANGARIUM_COMPAT_BALE_METRICS_PORTS": f"{one[3]},{one[4]}",
            "ANGARIUM_COMPAT_GEO_GRPC_PORT": str(one[5]),
            **shared,
        }
        for one in ports
    ]
    listeners = [
        Listeners(
            hermes=f"{HOST}:{one[0]}",
            hermes_http=f"{HOST}:{one[1]}",
            bale=f"{HOST}:{one[2]}",
            bale_metrics=(f"{HOST}:{one[3]}", f"{HOST}:{one[4]}"),
            geo=f"{HOST}:{one[5]}",
        )
        for one in ports
    ]
    cluster = BenchCluster(folder, nodes=nodes, environments=environments)
    try:
        asyncio.run(cluster.start())
        yield Profiles(cluster, listeners)
    finally:
        cluster.stop()
