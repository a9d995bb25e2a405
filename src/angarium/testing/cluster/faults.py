"""What is done to a cluster under load, and how long it took to recover.

Each fault waits until the cluster is whole again before it returns, so that the next one never
takes a majority away.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from angarium.testing.cluster.waiting import now_micros

if TYPE_CHECKING:
    from angarium.ids import NodeId
    from angarium.testing.cluster.cluster import ProcessCluster
    from angarium.testing.cluster.load import Load


@dataclass(slots=True)
class Recovery:
    """How a cluster got over one fault or several."""

    gaps_s: list[float] = field(default_factory=list)
    """From each fault to the first ack of a publish begun after it, in the partition concerned;
    for a graceful restart, the longest time between two acks of each partition."""
    available: list[float] = field(default_factory=list)
    """The share of 100 ms windows with an ack in that partition, from each fault until the
    cluster was whole."""

    @property
    def longest_s(self) -> float:
        """The longest time without an answer."""
        return max(self.gaps_s)


async def kill_leader(
    cluster: ProcessCluster, load: Load, recovery: Recovery, *, partition: int = 0
) -> NodeId:
    """Kill a partition's leader under load, see the others take over, and start it again."""
    leader = await cluster.leader(load.topic, partition)
    moment = now_micros()
    cluster.nodes[leader].kill()
    await _recovered(load, recovery, moment, partition)
    cluster.restart(leader)
    await cluster.back(leader)
    await cluster.settled(topics=[load.topic])
    recovery.available.append(load.availability(moment, now_micros(), partition=partition))
    return leader


async def pause_leader(
    cluster: ProcessCluster,
    load: Load,
    recovery: Recovery,
    *,
    partition: int = 0,
    extra_s: float = 1.0,
) -> NodeId:
    """Pause a partition's leader until the others have taken over, and a little longer."""
    leader = await cluster.leader(load.topic, partition)
    moment = now_micros()
    cluster.nodes[leader].pause()
    try:
        await _recovered(load, recovery, moment, partition)
        await asyncio.sleep(extra_s)
    finally:
        cluster.nodes[leader].resume()
    await cluster.settled(topics=[load.topic])
    recovery.available.append(load.availability(moment, now_micros(), partition=partition))
    return leader


async def part_leader(
    cluster: ProcessCluster,
    load: Load,
    recovery: Recovery,
    *,
    partition: int = 0,
    extra_s: float = 1.0,
) -> NodeId:
    """Cut a partition's leader off from the other nodes until they have taken over.

    Clients still reach it. What it answers in EVENTUAL mode meanwhile may be lost, so the takeover
    is an ack under a later term than the old leader's.
    """
    assert cluster.network is not None, "the cluster was started without a network to cut"
    leader = await cluster.leader(load.topic, partition)
    moment = now_micros()
    term = load.term_now(partition)
    cluster.network.cut_off(leader, cluster.ids)
    try:
        answered = await load.acknowledged_after(moment, partition=partition, above_term=term)
        recovery.gaps_s.append((answered - moment) / 1_000_000)
        await asyncio.sleep(extra_s)
    finally:
        cluster.network.heal()
    await cluster.settled(topics=[load.topic])
    recovery.available.append(load.availability(moment, now_micros(), partition=partition))
    return leader


async def wipe(cluster: ProcessCluster, load: Load, recovery: Recovery, node: NodeId) -> None:
    """Kill a node, throw its data away, and let the others bring it back under its old id."""
    moment = now_micros()
    cluster.nodes[node].kill()
    cluster.nodes[node].wipe()
    for partition in load.groups:
        await load.acknowledged_after(moment, partition=partition)
    recovery.gaps_s.append((now_micros() - moment) / 1_000_000)
    cluster.restart(node)
    await cluster.back(node)
    await cluster.settled(topics=[load.topic])
    recovery.available += [
        load.availability(moment, now_micros(), partition=partition) for partition in load.groups
    ]


async def restart_gracefully(
    cluster: ProcessCluster, load: Load, recovery: Recovery, node: NodeId
) -> None:
    """Stop a node in good order and start it again."""
    moment = now_micros()
    process = cluster.nodes[node]
    process.terminate()
    status = await asyncio.to_thread(process.wait)
    assert status == 0, f"{process.name} stopped with status {status}"
    cluster.restart(node)
    await cluster.back(node)
    await cluster.settled(topics=[load.topic])
    for partition in load.groups:
        await load.acknowledged_after(now_micros(), partition=partition)
        now = now_micros()
        recovery.gaps_s.append(load.longest_gap_s(moment, now, partition=partition))
        recovery.available.append(load.availability(moment, now, partition=partition))


async def _recovered(load: Load, recovery: Recovery, moment: int, partition: int) -> None:
    answered = await load.acknowledged_after(moment, partition=partition)
    recovery.gaps_s.append((answered - moment) / 1_000_000)
