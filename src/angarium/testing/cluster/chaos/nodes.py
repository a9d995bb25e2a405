"""Nodes that are restarted, wiped or dead."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
from typing import TYPE_CHECKING, Final

from angarium.batch import encode
from angarium.modes import DeliveryMode
from angarium.testing.cluster.chaos.ground import PARTITIONS, TOPIC
from angarium.testing.cluster.chaos.line import Line
from angarium.testing.cluster.faults import (
    HEARD_S,
    replace_each,
    restart_gracefully,
    roll_back,
    wipe,
)
from angarium.testing.cluster.processes import SMALL
from angarium.testing.cluster.waiting import now_micros

if TYPE_CHECKING:
    from angarium.testing.cluster.chaos.ground import Ground
    from angarium.testing.cluster.load import Load

MANY_PARTITIONS: Final = 100
MEASURE_S: Final = 5.0
RECORDS_BEFORE_REST: Final = 100

FAILOVER_MANY_SECONDS_MAX: Final = 5.0
"""The promise: from a node's death to a CONSISTENT ack from every one of a hundred partitions."""

THROUGHPUT_MIN: Final = 0.8
"""The promise: what is left of the throughput with one of three nodes dead."""


async def rolling(ground: Ground) -> Line:
    """Restart every node in good order, round after round."""
    rounds = max(1, ground.times // 4)
    line = Line("rolling restart (SIGTERM)", DeliveryMode.CONSISTENT.name, 3 * rounds)
    async with ground.cluster() as cluster:
        await cluster.create_topic(TOPIC, partitions=PARTITIONS)
        async with ground.load(cluster, DeliveryMode.CONSISTENT) as load:
            for _ in range(rounds):
                for node in cluster.ids:
                    await restart_gracefully(cluster, load, line.recovery, node)
            await ground.judge(line, load)
    return line


async def wipes(ground: Ground) -> Line:
    """Kill nodes, throw their data away and let the others bring them back."""
    line = Line("node killed and wiped", DeliveryMode.CONSISTENT.name, ground.times)
    async with ground.cluster(program=SMALL) as cluster:
        await cluster.create_topic(TOPIC, partitions=PARTITIONS)
        async with ground.load(cluster, DeliveryMode.CONSISTENT) as load:
            for number in range(ground.times):
                await wipe(cluster, load, line.recovery, cluster.ids[number % 3])
            await ground.judge(line, load)
    return line


async def replaced_when_idle(ground: Ground) -> Line:
    """Give all nodes of an idle cluster empty disks, one by one, with only `ready` to go by."""
    line = Line("idle, replaced one by one", DeliveryMode.CONSISTENT.name, ground.times)
    for _ in range(ground.times):
        async with ground.cluster() as cluster:
            await cluster.create_topic(TOPIC)
            values = [f"{number}".encode() for number in range(RECORDS_BEFORE_REST)]
            contact = cluster.contact(await cluster.leader(TOPIC))
            for value in values:
                await contact.publish(TOPIC, 0, [encode([value])])
            line.acknowledged += len(values)
            line.violations += await replace_each(cluster, TOPIC, values)
    return line


async def rolled_back(ground: Ground) -> Line:
    """Replace a node's data folder by an older copy under load: it is refused, and comes anew."""
    line = Line("data folder rolled back", DeliveryMode.CONSISTENT.name, ground.times)
    async with ground.cluster(program=SMALL) as cluster:
        await cluster.create_topic(TOPIC, partitions=PARTITIONS)
        async with ground.load(cluster, DeliveryMode.CONSISTENT) as load:
            for number in range(ground.times):
                node = cluster.ids[number % 3]
                process = cluster.nodes[node]
                put_back = await roll_back(cluster, node)
                await load.acknowledged_after(now_micros())
                await asyncio.sleep(HEARD_S)
                process.kill()
                put_back()
                cluster.restart(node)
                try:
                    await asyncio.to_thread(process.wait)
                except subprocess.TimeoutExpired:
                    line.violations.append(f"node {node} goes on with an older copy of its data")
                    process.kill()
                process.wipe()
                cluster.restart(node)
                await cluster.back(node)
                await cluster.ready(node)
                await cluster.settled(topics=[TOPIC])
            await ground.judge(line, load)
    return line


async def many_partitions(ground: Ground) -> Line:
    """Kill a node that leads its share of a hundred partitions; all must answer again."""
    line = Line(f"node of {MANY_PARTITIONS} partitions killed", "CONSISTENT", 3)
    async with ground.cluster() as cluster:
        await cluster.create_topic(TOPIC, partitions=MANY_PARTITIONS)
        async with ground.load(
            cluster, DeliveryMode.CONSISTENT, partitions=MANY_PARTITIONS, pause_s=0.25
        ) as load:
            for partition in load.groups:
                await load.acknowledged_after(0, partition=partition)
            for node in cluster.ids:
                moment = now_micros()
                cluster.nodes[node].kill()
                last = 0
                for partition in load.groups:
                    last = max(last, await load.acknowledged_after(moment, partition=partition))
                line.recovery.gaps_s.append((last - moment) / 1_000_000)
                cluster.restart(node)
                await cluster.back(node)
                await cluster.settled(topics=[TOPIC])
            await ground.judge(line, load)
        line.note = "until every partition answered"
    line.expect_within(FAILOVER_MANY_SECONDS_MAX)
    return line


async def throughput_with_one_dead(ground: Ground) -> Line:
    """Compare what is acknowledged in five seconds before and after a node is gone."""
    line = Line("one of three nodes dead", "CONSISTENT", 3)
    ratios = []
    async with ground.cluster() as cluster:
        await cluster.create_topic(TOPIC, partitions=PARTITIONS)
        async with ground.load(cluster, DeliveryMode.CONSISTENT, producers=24, pause_s=0.0) as load:
            for node in cluster.ids:
                before = await _rate(load)
                cluster.nodes[node].kill()
                for partition in load.groups:
                    await load.acknowledged_after(now_micros(), partition=partition)
                ratios.append(await _rate(load) / before)
                cluster.restart(node)
                await cluster.back(node)
                await cluster.settled(topics=[TOPIC])
            await ground.judge(line, load)
    line.note = f"throughput {statistics.median(ratios):.0%} of before"
    if statistics.median(ratios) < THROUGHPUT_MIN:
        line.violations.append(line.note)
    return line


async def _rate(load: Load) -> float:
    start = now_micros()
    await asyncio.sleep(MEASURE_S)
    return load.acknowledged_records(start, now_micros()) / MEASURE_S
