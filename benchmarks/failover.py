"""How long a partition is without a leader whose machine is gone without a word.

    python -m benchmarks.failover [--times 5]

The leader's process is stopped (SIGSTOP), so that its connections stay and nothing answers. Beside
it, nobody says so; or its Serf agent is killed and the others notice; or its endpoint is deleted,
as Kubernetes does with a pod. Time runs until another node has stored a record. With the election
timeout of the default settings, and with ten and twenty times as much, as between regions.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop
from tests.kubernetes_api import SERVICE, KubernetesApi
from tests.serf_agents import SerfAgents

from angarium.addresses import Address
from angarium.batch import BatchBuilder
from angarium.cli.output import print_table
from angarium.errors import AngariumError
from angarium.testing.cluster import ProcessCluster

if TYPE_CHECKING:
    from angarium.ids import NodeId
    from angarium.testing.cluster.processes import NodeProcess

TOPIC = "orders"
LOOK_S = 0.02
REST_S = 3.0
"""Between a cluster that has come to rest and the next fault."""


class Word:
    """Somebody who says that a node is gone."""

    def __init__(self, method: str, folder: Path) -> None:
        self.method = method
        self._folder = folder
        self._agents: SerfAgents | None = None
        self._api: KubernetesApi | None = None

    async def begin(self, running: AsyncExitStack) -> None:
        if self.method == "serf":
            self._agents = running.enter_context(SerfAgents(self._folder))
        if self.method == "kubernetes":
            self._api = await running.enter_async_context(KubernetesApi(self._folder / "api"))

    def settings(self, node: NodeProcess) -> dict[str, int | str]:
        if self._agents is not None:
            agent = self._agents.start(node.name, {"wire": str(node.port.number)})
            return {"method": "serf", "serf_agent": str(agent)}
        if self._api is None:
            return {}
        return {
            "method": "kubernetes",
            "kubernetes_service": SERVICE,
            "kubernetes_api": str(self._api.address),
            "kubernetes_credentials": str(self._api.credentials),
        }

    async def here(self, node: NodeProcess) -> None:
        if self._api is not None:
            await self._api.set_slice(node.name, [Address.parse(node.address)])

    async def gone(self, node: NodeProcess) -> None:
        if self._agents is not None:
            self._agents.kill(node.name)
        if self._api is not None:
            await self._api.delete_slice(node.name)


async def leads_and_stores(cluster: ProcessCluster, node: NodeId) -> bool:
    """Tell whether a node says that it leads, and has stored a record.

    Who does not lead would pass a record on to the old leader, and wait for its answer.
    """
    builder = BatchBuilder()
    builder.add(value=b"x")
    contact = cluster.contact(node)
    try:
        (partition,) = (await contact.describe(TOPIC)).partitions
        if partition.leader != node:
            return False
        (ack,) = await contact.publish(TOPIC, 0, [builder.build()])
    except AngariumError:
        return False
    return not ack.code


async def failover_s(method: str, election_ticks: int) -> float:
    """Return how long it took, once, with a cluster of its own."""
    async with AsyncExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        word = Word(method, folder)
        await word.begin(running)
        settings = {"election_ticks": election_ticks}
        cluster = await running.enter_async_context(
            ProcessCluster(folder / "nodes", settings=settings, discovery=word.settings)
        )
        for node in cluster.nodes.values():
            await word.here(node)
        await cluster.create_topic(TOPIC)
        await asyncio.sleep(REST_S)
        leader = await cluster.leader(TOPIC)
        gone = cluster.nodes[leader]
        others = [one for one in cluster.ids if one != leader]
        # A partition that nobody uses rests, and notices up to 16 ticks later.
        await leads_and_stores(cluster, leader)
        gone.pause()
        began = time.monotonic()
        await word.gone(gone)
        while True:
            for one in others:
                if await leads_and_stores(cluster, one):
                    return time.monotonic() - began
            await asyncio.sleep(LOOK_S)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    rows = []
    for election_ticks in (10, 100, 200):
        for method in ("nobody", "serf", "kubernetes"):
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                took = [runner.run(failover_s(method, election_ticks)) for _ in range(times)]
            figures = (statistics.median(took), min(took), max(took))
            rows.append((election_ticks, method, *(f"{one:.2f}" for one in figures)))
            print(*rows[-1], flush=True)
    print_table(("election_ticks", "who says it", "median s", "min", "max"), rows, none="")


if __name__ == "__main__":
    main()
