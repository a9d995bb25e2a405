"""Those who are no nodes, or should not be: forged peers, and a second process on a folder."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from angarium.doors.status import Exit
from angarium.errors import AngariumError
from angarium.modes import DeliveryMode
from angarium.testing.cluster.chaos.ground import PARTITIONS, TOPIC
from angarium.testing.cluster.chaos.line import Line
from angarium.testing.cluster.forgery import forge, greet, greet_as, join_elsewhere, who_is
from angarium.testing.cluster.processes import NodeProcess
from angarium.testing.cluster.waiting import eventually, now_micros

if TYPE_CHECKING:
    from angarium.ids import NodeId
    from angarium.testing.cluster.chaos.ground import Ground
    from angarium.testing.cluster.cluster import ProcessCluster
    from angarium.testing.cluster.load import Load
    from angarium.wire import Connection


async def forged_peer(ground: Ground) -> Line:
    """Register a living node elsewhere; speak in the name of one that is down: absurd terms and
    commits, to both others."""
    line = Line("forged peer", DeliveryMode.CONSISTENT.name, ground.times)
    async with ground.cluster() as cluster:
        await cluster.create_topic(TOPIC, partitions=PARTITIONS)
        async with ground.load(cluster, DeliveryMode.CONSISTENT) as load:
            for number in range(ground.times):
                await _forge(cluster, load, line, cluster.ids[number % 3])
            await ground.judge(line, load)
    return line


async def _forge(cluster: ProcessCluster, load: Load, line: Line, name: NodeId) -> None:
    forged = who_is(cluster.nodes[name])
    for node in cluster.running:
        try:
            await join_elsewhere(cluster.nodes[node], name, forged.incarnation)
            line.violations.append(f"node {node} registered node {name} elsewhere unasked")
        except AngariumError:
            pass  # as it should be
    cluster.nodes[name].kill()
    for node in cluster.running:
        there = cluster.nodes[node]
        try:
            await greet(there)
            line.violations.append(f"node {node} took somebody without a name for a peer")
        except AngariumError:
            pass  # as it should be

        async def let_in(there: NodeProcess = there) -> Connection:
            return await greet_as(there, forged)

        stranger = await eventually(let_in, within_s=30.0, what="the forged peer is let in")
        forge(stranger, there, forged, load.groups.values())
        await stranger.close()
    moment = now_micros()
    for partition in load.groups:
        answered = await load.acknowledged_after(moment, partition=partition)
        line.recovery.gaps_s.append((answered - moment) / 1_000_000)
    cluster.restart(name)
    await cluster.back(name)
    await cluster.settled(topics=[TOPIC])


async def same_folder_twice(ground: Ground) -> Line:
    """Start a second process on a living node's folder; it is refused, the first goes on."""
    line = Line("same folder twice", DeliveryMode.CONSISTENT.name, ground.times)
    async with ground.cluster() as cluster:
        await cluster.create_topic(TOPIC, partitions=PARTITIONS)
        async with ground.load(cluster, DeliveryMode.CONSISTENT) as load:
            for number in range(ground.times):
                first = cluster.nodes[cluster.ids[number % 3]]
                second = NodeProcess(name="second", folder=first.log.parent, data=first.data)
                second.start(join=[first.address])
                try:
                    status = await asyncio.to_thread(partial(second.wait, within_s=60.0))
                finally:
                    second.end()
                if status != Exit.CONFLICT or not first.is_running:
                    line.violations.append(f"the second process ended with status {status}")
                moment = now_micros()
                answered = await load.acknowledged_after(moment)
                line.recovery.gaps_s.append((answered - moment) / 1_000_000)
            await ground.judge(line, load)
    return line
