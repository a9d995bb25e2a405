"""Nodes come and go, one after the other, until none of the first ones is left.

Three things go on meanwhile, each with its own judge: producers and subscribers whose every answer
is recorded (`Load`), a consumer group of real processes (`GroupLoad`), and a client that publishes
numbered records of a few keys. All of them were given the addresses of nodes that are gone soon.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from angarium.client import Client
from angarium.errors import NotFound
from angarium.kinds import GroupKind
from angarium.modes import DeliveryMode
from angarium.testing.cluster.chaos.ground import PARTITIONS, TOPIC
from angarium.testing.cluster.chaos.line import Line
from angarium.testing.cluster.group_load import GroupLoad
from angarium.testing.cluster.processes import SMALL
from angarium.testing.cluster.waiting import eventually, now_micros

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from angarium.api import NodeInfo
    from angarium.ids import NodeId
    from angarium.testing.cluster.chaos.ground import Ground
    from angarium.testing.cluster.cluster import ProcessCluster

KEYED: Final = "payments"
WORK: Final = "work"
KEYS: Final = tuple(b"account-%d" % number for number in range(8))
KEYED_PAUSE_S: Final = 0.05
WORK_PER_S: Final = 200
MEMBERS: Final = 3
STEP_S_MAX: Final = 180.0
"""How long each step of a turn may take, on a busy machine."""
SETTLE_S: Final = 180.0
PAUSE_S: Final = 0.04
"""How long a producer rests after each answer: every turn copies what there is by then."""
PROGRAM: Final = (*SMALL, "--chunk-bytes", str(256 << 10))
"""Small files, and copies that do not take longer and longer."""


async def joins_and_removals(ground: Ground) -> Line:
    """Let a node join and get its share, drain and remove another one, again and again."""
    line = Line("node joined, another removed", DeliveryMode.CONSISTENT.name, ground.times)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(ground.cluster(program=PROGRAM))
        for topic in (TOPIC, KEYED, WORK):
            await cluster.create_topic(topic, partitions=PARTITIONS)
        client = await stack.enter_async_context(
            Client(*(one.address for one in cluster.nodes.values()))
        )
        members = GroupLoad(
            cluster, ground.new_folder(), topic=WORK, kind=GroupKind.STREAM, members=MEMBERS
        )
        await stack.enter_async_context(members)
        load = await stack.enter_async_context(ground.load(cluster, pause_s=PAUSE_S))
        over = asyncio.Event()
        numbering = asyncio.create_task(_number(client, over))
        working = asyncio.create_task(_give_work(members, over))
        began = time.monotonic()
        try:
            for _ in range(ground.times):
                await _turn(cluster, client)
                for task in (numbering, working):
                    if task.done():
                        await task  # a publish has failed
                await load.acknowledged_after(now_micros())
        finally:
            over.set()
            counts, _ = await asyncio.gather(numbering, working)
        took = time.monotonic() - began
        line.violations += await _misnumbered(client, counts)
        verdict = await members.conclude(within_s=SETTLE_S)
        line.violations += verdict.violations
        await ground.judge(line, load)
    line.acknowledged += sum(counts.values()) + verdict.records
    line.note = (
        f"{took / ground.times:.0f} s for each; of {verdict.records:,} records of a group "
        f"{verdict.again:,} came again"
    )
    return line


async def _turn(cluster: ProcessCluster, client: Client) -> None:
    """Let one node come and get its share, and the one that has been there longest go."""
    newcomer = await cluster.add()
    await cluster.heard()

    async def is_asked_for() -> bool:
        return (await client.rebalance()).is_running or await has_its_share()

    async def has_its_share() -> bool:
        node = await _seen(client, newcomer)
        return node.replicas > 0 and not (await client.describe_balance()).is_running

    await _until(is_asked_for, f"node {newcomer} is to get its share")
    await _until(has_its_share, f"node {newcomer} has its share")
    leaving = cluster.ids[0]

    async def is_drained() -> bool:
        await client.drain_node(leaving)
        return True

    async def is_empty() -> bool:
        node = await _seen(client, leaving)
        return node.draining and node.replicas == 0 and node.leads == 0

    async def is_removed() -> bool:
        await client.remove_node(leaving)
        return True

    await _until(is_drained, f"node {leaving} is to be drained")
    await _until(is_empty, f"node {leaving} is empty")
    await _until(is_removed, f"node {leaving} is removed")
    process = cluster.nodes.pop(leaving)
    await asyncio.to_thread(process.wait)
    said = process.last_words()
    assert "was removed from its cluster" in said, f"node {leaving} ended otherwise: {said}"
    process.wipe()


async def _until(look: Callable[[], Awaitable[bool]], what: str) -> None:
    await eventually(look, within_s=STEP_S_MAX, what=what)


async def _seen(client: Client, node: NodeId) -> NodeInfo:
    """Return what is known of a node; `NotFound` where nothing is yet."""
    for one in (await client.cluster_status()).nodes:
        if one.id == node:
            return one
    raise NotFound(f"nobody has heard of node {node} yet")


# --- what goes on meanwhile -----------------------------------------------------------------------


async def _number(client: Client, over: asyncio.Event) -> dict[bytes, int]:
    """Publish numbered records of every key until it is over; return how many of each."""
    counts = dict.fromkeys(KEYS, 0)
    while not over.is_set():
        for key in KEYS:
            # Several of a key are on their way at a time: none may overtake another.
            client.publish_nowait(KEYED, b"%d" % counts[key], key=key)
            counts[key] += 1
        await asyncio.sleep(KEYED_PAUSE_S)
    await client.flush()
    return counts


async def _misnumbered(client: Client, counts: dict[bytes, int]) -> list[str]:
    """Return which keys have not each of their records once, in order."""
    found: defaultdict[bytes, list[int]] = defaultdict(list)
    async for record in client.read(KEYED):
        found[record.key or b""].append(int(record.value or b"-1"))
    return [
        f"{key!r}: {count} records were acknowledged, {len(found[key])} are there, or out of order"
        for key, count in counts.items()
        if found[key] != list(range(count))
    ]


async def _give_work(members: GroupLoad, over: asyncio.Event) -> None:
    while not over.is_set():
        await members.publish(WORK_PER_S, seconds=1.0)
