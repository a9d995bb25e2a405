"""Real nodes find each other by DNS, Serf and Kubernetes when all that they remember is wrong.

dnsmasq and Serf's agents are the real ones; Kubernetes' API server is `tests/kubernetes_api.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from tests.dns_server import DnsServer, service
from tests.kubernetes_api import SERVICE, KubernetesApi
from tests.serf_agents import SerfAgents

from angarium.addresses import Address
from angarium.node.greetings import greetings_at
from angarium.testing.cluster.waiting import eventually
from angarium.wire import Hello

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.running import ClusterOf, Run

    from angarium.testing.cluster import ProcessCluster
    from angarium.testing.cluster.processes import NodeProcess

PATIENCE_S = 120.0
NAME = "_wire._tcp.nodes.test"


def addresses(cluster: ProcessCluster) -> list[Address]:
    return [Address.parse(one.address) for one in cluster.nodes.values()]


async def all_ready(cluster: ProcessCluster) -> None:
    async def ready() -> bool:
        said = await cluster.unready()
        if said and time.monotonic() > deadline:
            raise TimeoutError("; ".join(said))
        return not said

    deadline = time.monotonic() + PATIENCE_S
    await eventually(ready, within_s=PATIENCE_S + 1, what="all nodes ready at new addresses")


async def joined(cluster: ProcessCluster, node: NodeProcess) -> None:
    """Start a new node that nobody has told whom to join, and wait until it is a member."""
    count = len(cluster.nodes)

    async def is_there() -> bool:
        status = await (await cluster.someone()).status()
        return sum(one.alive for one in status.nodes) == count + 1

    node.start()
    await eventually(is_there, within_s=PATIENCE_S, what="a node joined")


def discovered(dns: DnsServer) -> list[dict[str, Any]]:
    """Return what `angarium discover` shows."""
    done = subprocess.run(
        [sys.executable, "-m", "angarium", "discover", f"dns:{NAME}", "--format", "json"],
        env={**os.environ, "ANGARIUM_DISCOVERY_DNS_SERVERS": str(dns.address)},
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    shown: list[dict[str, Any]] = json.loads(done.stdout)["nodes"]
    return shown


def test_nodes_find_each_other_by_dns(run: Run, cluster_of: ClusterOf, tmp_path: Path) -> None:
    async def scenario() -> None:
        with DnsServer(tmp_path) as dns:
            settings: dict[str, int | str] = {"method": "dns", "dns_name": NAME}
            async with cluster_of(3) as cluster:
                await cluster.create_topic("orders", partitions=3)
                for node in cluster.nodes.values():
                    node.discovery = {**settings, "dns_servers": str(dns.address)}
                # First all are somewhere else; then each is where another one was before.
                for is_rotated in (False, True):
                    await cluster.stop_all()
                    if is_rotated:
                        cluster.rotate_ports()
                    else:
                        for one in cluster.ids:
                            cluster.move(one)
                    for node in cluster.nodes.values():
                        node.start()
                    # They look in vain before the records are there, and go on looking.
                    dns.answer(*service(NAME, addresses(cluster)))
                    await all_ready(cluster)
                await cluster.settled(topics=["orders"])
                shown = await asyncio.to_thread(discovered, dns)
                assert {row["address"]: row["node"] for row in shown} == {
                    node.address: number for number, node in cluster.nodes.items()
                }
                newcomer = cluster.prepare()
                newcomer.discovery = next(iter(cluster.nodes.values())).discovery
                await joined(cluster, newcomer)

    run(scenario())


def test_nodes_find_each_other_by_serf(run: Run, cluster_of: ClusterOf, tmp_path: Path) -> None:
    async def scenario() -> None:
        with SerfAgents(tmp_path) as agents:
            async with cluster_of(3) as cluster:
                await cluster.create_topic("orders", partitions=3)
                await cluster.stop_all()
                for one in cluster.ids:
                    cluster.move(one)
                for node in cluster.nodes.values():
                    agent = agents.start(node.name, {"wire": str(node.port.number)})
                    node.discovery = {"method": "serf", "serf_agent": str(agent)}
                    node.start()
                await all_ready(cluster)
                # As pods do: all come back where others were, and only their tags say so.
                await cluster.stop_all()
                cluster.rotate_ports()
                for node in cluster.nodes.values():
                    agents.retag(node.name, wire=str(node.port.number))
                    node.start()
                await all_ready(cluster)
                newcomer = cluster.prepare()
                newcomer.discovery = next(iter(cluster.nodes.values())).discovery
                await joined(cluster, newcomer)

    run(scenario())


def test_nodes_find_each_other_by_kubernetes_and_form_one_cluster(
    run: Run, cluster_of: ClusterOf, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with KubernetesApi(tmp_path / "kubernetes") as api, cluster_of(2) as cluster:
            for node in cluster.nodes.values():
                node.discovery = {
                    "method": "kubernetes",
                    "kubernetes_service": SERVICE,
                    "kubernetes_api": str(api.address),
                    "kubernetes_credentials": str(api.credentials),
                }
            await cluster.stop_all()
            cluster.rotate_ports()
            for node in cluster.nodes.values():
                await api.set_slice(node.name, [Address.parse(node.address)])
                node.start()
            await all_ready(cluster)
            # Who is to form a cluster and has lost its disk does not form a second one.
            founder = cluster.prepare()
            founder.discovery = next(iter(cluster.nodes.values())).discovery
            founder.start(form=True)
            assert await asyncio.to_thread(founder.wait) != 0
            assert "to form a cluster here would make a second one" in founder.last_words()

    run(scenario())


def test_of_several_clusters_the_settings_say_which_one_to_join(
    run: Run, cluster_of: ClusterOf, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with KubernetesApi(tmp_path / "kubernetes") as api, cluster_of(1) as cluster:
            settings: dict[str, int | str] = {
                "method": "kubernetes",
                "kubernetes_service": SERVICE,
                "kubernetes_api": str(api.address),
                "kubernetes_credentials": str(api.credentials),
            }
            other = cluster.prepare()
            other.start(form=True)

            async def is_formed() -> bool:
                where = Address.parse(other.address)
                hello = (await greetings_at([where], tls=None))[where]
                return isinstance(hello, Hello) and bool(hello.node)

            # A cluster that does not answer yet is none of several.
            await eventually(is_formed, within_s=PATIENCE_S, what="the other cluster is formed")
            somebody = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
            foreign = Address("127.0.0.1", somebody.sockets[0].getsockname()[1])
            (member,) = addresses(cluster)
            for one in (foreign, Address.parse(other.address), member):
                await api.set_slice(f"slice-{one.port}", [one])
            newcomer = cluster.prepare()
            newcomer.discovery = settings
            newcomer.start()

            async def asks_which() -> bool:
                return "say which one to join, cluster_id in [discovery]" in newcomer.last_words()

            await eventually(asks_which, within_s=PATIENCE_S)
            newcomer.kill()
            status = await cluster.contact(cluster.ids[0]).status()
            newcomer.discovery = {**settings, "cluster_id": status.cluster_id}
            await joined(cluster, newcomer)
            somebody.close()

    run(scenario())


def test_a_node_that_finds_nobody_says_why(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(1) as cluster:
            lonely = cluster.prepare()
            lonely.discovery = {"method": "serf", "serf_agent": "127.0.0.1:1"}
            lonely.start()

            async def says_why() -> bool:
                return "the Serf agent at 127.0.0.1:1 cannot be reached" in lonely.last_words()

            await eventually(says_why, within_s=PATIENCE_S)

    run(scenario())
