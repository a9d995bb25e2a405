"""What is done to a cluster under load, and how long it took to recover.

Each fault waits until the cluster is whole again before it returns, so that the next one never
takes a majority away.
"""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from angarium.batch import Batch
from angarium.errors import AngariumError
from angarium.ids import Offset
from angarium.testing.cluster.waiting import eventually, now_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.api import FetchResult
    from angarium.ids import NodeId
    from angarium.testing.cluster.cluster import ProcessCluster
    from angarium.testing.cluster.load import Load

HEARD_S: Final = 3.0
"""How long it takes at most until the others know how far a node's log is: they ask each second."""

REST_S: Final = 2.5
"""How long nobody does anything, so that groups go to rest: they do after a second."""


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


async def roll_back(cluster: ProcessCluster, node: NodeId) -> Callable[[], None]:
    """Copy a node's data folder now; return what puts the copy in the folder's place later.

    The node is stopped for the copy, and runs on.
    """
    process = cluster.nodes[node]
    process.kill()
    copy = process.data.with_name(f"{process.data.name}-copy")
    await asyncio.to_thread(shutil.copytree, process.data, copy, dirs_exist_ok=True)
    cluster.restart(node)
    await cluster.back(node)
    await cluster.settled()

    def put_back() -> None:
        process.wipe()
        shutil.copytree(copy, process.data, dirs_exist_ok=True)
        shutil.rmtree(copy)

    return put_back


async def replace_each(cluster: ProcessCluster, topic: str, values: Sequence[bytes]) -> list[str]:
    """Give every node in turn an empty disk, as the documentation says; return what got lost.

    The next one follows as soon as all nodes say of themselves that they are ready. Nobody
    publishes, so the groups rest. After each, every node is read: it answers with everything, or
    says that it cannot, and never with less. In the end each has everything on its own.
    """
    wrong: list[str] = []
    for node in cluster.ids:
        await asyncio.sleep(REST_S)
        process = cluster.nodes[node]
        process.terminate()
        await asyncio.to_thread(process.wait)
        process.wipe()
        cluster.restart(node)
        await cluster.back(node)
        wrong += await _read_everywhere(cluster, topic, values, f"after node {node} was replaced")
        for one in cluster.ids:
            await cluster.ready(one)
    wrong += await _read_everywhere(cluster, topic, values, "in the end", must_answer=True)
    return wrong


async def _read_everywhere(
    cluster: ProcessCluster,
    topic: str,
    values: Sequence[bytes],
    when: str,
    *,
    must_answer: bool = False,
) -> list[str]:
    wrong = []
    for node in cluster.ids:
        try:
            if must_answer:
                found = await own_values(cluster, node, topic)
            else:
                read = await cluster.contact(node).fetch(topic, 0, Offset(0))
                found = _values(read)
        except AngariumError as refused:
            if must_answer:
                wrong.append(f"node {node} does not answer {when}: {refused}")
            continue
        if found != list(values):
            wrong.append(f"node {node} has {len(found)} of {len(values)} records {when}")
    return wrong


async def own_values(
    cluster: ProcessCluster, node: NodeId, topic: str, *, partition: int = 0
) -> list[bytes | None]:
    """Return what a node's own replica holds; raises if it has none that may be read.

    A node passes a read on where its own replica lacks something. So all others are paused
    meanwhile: there is nobody to pass it on to. Before that it has heard of what the others have.
    """

    async def has_heard() -> bool:
        seen = [await cluster.contact(one).describe(topic) for one in cluster.running]
        ends = {one.partitions[partition].end_offset or 0 for one in seen}
        # Not by describing: a node tells what others have while its own replica may not be read.
        own = await cluster.contact(node).fetch(topic, partition, Offset(0))
        return own.node == node and own.end_offset >= max(ends)

    await eventually(has_heard, what=f"node {node} has heard of all of {topic}")
    others = [cluster.nodes[one] for one in cluster.running if one != node]
    for one in others:
        one.pause()
    try:
        contact, values = cluster.contact(node), list[bytes | None]()
        offset, end = Offset(0), Offset(1)
        while offset < end:
            read = await contact.fetch(topic, partition, offset)
            end = read.end_offset
            if not read.batches:
                break
            values += _values(read)
            offset = Batch.parse(read.batches[-1]).next_offset
        return values
    finally:
        for one in others:
            one.resume()


def _values(read: FetchResult) -> list[bytes | None]:
    return [record.value for batch in read.batches for record in Batch.parse(batch)]
