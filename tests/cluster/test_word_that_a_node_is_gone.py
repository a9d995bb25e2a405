"""The word of Serf or Kubernetes that a node is gone: a reason to ask it, and nothing else.

Elections would begin after 50 seconds of silence here, so that whoever leads before has heard it.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from tests.kubernetes_api import SERVICE, KubernetesApi
from tests.serf_agents import SerfAgents

from angarium.addresses import Address
from angarium.batch import BatchBuilder
from angarium.testing.cluster.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.running import ClusterOf, Run

    from angarium.ids import NodeId
    from angarium.testing.cluster import ProcessCluster
    from angarium.testing.cluster.processes import NodeProcess

SLOW: Final = {"tick_ms": 50, "election_ticks": 1_000}
ELECTION_S: Final = 50.0
LOOKS: Final = 4
"""How often the node that is lied about is asked, at the least, before nothing has changed."""

TOPIC: Final = "orders"


async def publish(cluster: ProcessCluster, node: NodeId, value: bytes) -> None:
    builder = BatchBuilder()
    builder.add(value=value)
    batch = builder.build()

    async def stored() -> bool:
        (ack,) = await cluster.contact(node).publish(TOPIC, 0, [batch])
        return not ack.code

    await eventually(stored, within_s=ELECTION_S, what="a record is stored")


async def another_leads(cluster: ProcessCluster, gone: NodeId) -> NodeId:
    """Wait until one of the others leads the topic, and takes a record."""
    others = [one for one in cluster.ids if one != gone]

    async def led() -> NodeId | None:
        for one in others:
            (partition,) = (await cluster.contact(one).describe(TOPIC)).partitions
            if partition.leader == one:
                return one
        return None

    leader = await eventually(led, within_s=2 * ELECTION_S, what="another leader")
    assert leader is not None
    await publish(cluster, leader, b"after")
    return leader


def test_a_node_that_serf_calls_gone_and_that_is_silent_is_not_waited_for(
    run: Run, cluster_of: ClusterOf, tmp_path: Path
) -> None:
    async def scenario() -> None:
        with SerfAgents(tmp_path) as agents:

            def discovery(node: NodeProcess) -> dict[str, int | str]:
                agent = agents.start(node.name, {"wire": str(node.port.number)})
                return {"method": "serf", "serf_agent": str(agent)}

            async with cluster_of(3, settings=SLOW, discovery=discovery) as cluster:
                await cluster.create_topic(TOPIC)
                leader = await cluster.leader(TOPIC)
                await publish(cluster, leader, b"before")
                node = cluster.nodes[leader]
                # The machine is gone without a word: its connections stay, and nobody answers.
                node.pause()
                agents.kill(node.name)
                began = time.monotonic()
                try:
                    await another_leads(cluster, leader)
                finally:
                    node.resume()
                took_s = time.monotonic() - began
                assert took_s < ELECTION_S, f"{took_s:.1f} s"
                # It stays a member, and follows when it is back.
                status = await (await cluster.someone()).status()
                assert [one.id for one in status.nodes] == cluster.ids
                await cluster.settled(topics=[TOPIC])

    run(scenario())


def test_a_lie_that_a_node_is_gone_changes_nothing_until_it_is_true(
    run: Run, cluster_of: ClusterOf, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with KubernetesApi(tmp_path / "kubernetes") as api:

            def discovery(_: NodeProcess) -> dict[str, int | str]:
                return {
                    "method": "kubernetes",
                    "kubernetes_service": SERVICE,
                    "kubernetes_api": str(api.address),
                    "kubernetes_credentials": str(api.credentials),
                }

            async with cluster_of(3, settings=SLOW, discovery=discovery) as cluster:
                for node in cluster.nodes.values():
                    await api.set_slice(node.name, [Address.parse(node.address)])
                await cluster.create_topic(TOPIC)
                leader = await cluster.leader(TOPIC)
                others = [cluster.nodes[one] for one in cluster.ids if one != leader]
                gone = cluster.nodes[leader]
                catalog_leader = await cluster.catalog_leader()

                async def heard(what: str) -> None:
                    async def said() -> bool:
                        return all(what in one.last_words() for one in others)

                    await eventually(said, within_s=ELECTION_S, what=what)

                # They have heard where everybody is before they hear that one is gone.
                await watched(api, 3)
                await api.delete_slice(gone.name)
                await heard(f"node {leader} is said to be gone, and answers: nothing changes")
                for number in range(LOOKS):
                    await publish(cluster, leader, b"%d" % number)
                    await asyncio.sleep(1.0)  # the pause between two questions
                assert await cluster.leader(TOPIC) == leader
                assert await cluster.catalog_leader() == catalog_leader
                assert not any("elects others" in one.last_words() for one in others)

                # Back, and gone again: now it is true.
                await api.set_slice(gone.name, [Address.parse(gone.address)])
                gone.pause()
                began = time.monotonic()
                try:
                    await api.delete_slice(gone.name)
                    await another_leads(cluster, leader)
                finally:
                    gone.resume()
                took_s = time.monotonic() - began
                assert took_s < ELECTION_S, f"{took_s:.1f} s"

    run(scenario())


async def watched(api: KubernetesApi, count: int) -> None:
    async def is_so() -> bool:
        return sum("watch=1" in one for one in api.requests) >= count

    await eventually(is_so, what="all nodes watch")
