"""Leaders that are killed, paused or cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.modes import DeliveryMode
from angarium.testing.cluster.chaos.ground import PARTITIONS, TOPIC
from angarium.testing.cluster.chaos.line import Line
from angarium.testing.cluster.faults import kill_leader, part_leader, pause_leader
from angarium.testing.cluster.live import LiveLoad
from angarium.testing.cluster.silence import cut_silently, pause_briefly
from angarium.testing.cluster.waiting import now_micros

if TYPE_CHECKING:
    from angarium.testing.cluster.chaos.ground import Ground

FAILOVER_SECONDS_MAX: Final = 2.0
"""The promise: from a leader's death to the first CONSISTENT ack."""

NOTICED_SECONDS_MAX: Final = 4.0
"""The promise: from the moment at which a node's packets vanish until it says that it is not ready,
and every other one that it is not alive."""


async def kills(ground: Ground, mode: DeliveryMode) -> Line:
    """Kill the leader under load, again and again."""
    line = Line("leader killed (SIGKILL)", mode.name, ground.times)
    async with ground.cluster() as cluster:
        await cluster.create_topic(TOPIC, partitions=PARTITIONS)
        async with ground.load(cluster, mode) as load:
            for number in range(ground.times):
                partition = number % PARTITIONS
                await kill_leader(cluster, load, line.recovery, partition=partition)
            await ground.judge(line, load)
    line.expect_within(FAILOVER_SECONDS_MAX)
    return line


async def live_kills(ground: Ground) -> Line:
    """Kill the leader while records pass through memory only."""
    line = Line("leader killed (SIGKILL)", DeliveryMode.PERFORMANCE.name, ground.times)
    async with ground.cluster() as cluster:
        await cluster.create_topic(TOPIC)
        async with LiveLoad(cluster, topic=TOPIC) as load:
            for _ in range(ground.times):
                leader = await cluster.leader(TOPIC)
                moment = now_micros()
                cluster.nodes[leader].kill()
                answered = await load.acknowledged_after(moment)
                line.recovery.gaps_s.append((answered - moment) / 1_000_000)
                cluster.restart(leader)
                await cluster.back(leader)
                await cluster.settled(topics=[TOPIC])
            await load.stop()
        line.acknowledged = load.acknowledged
        line.violations = load.incidents
        handed = min(load.delivered.values())
        line.note = f"each subscriber was handed at least {handed / load.acknowledged:.1%}"
    return line


async def pauses(ground: Ground, mode: DeliveryMode) -> Line:
    """Pause the leader until another one has taken over."""
    line = Line("leader paused (SIGSTOP)", mode.name, ground.times)
    async with ground.cluster() as cluster:
        await cluster.create_topic(TOPIC, partitions=PARTITIONS)
        async with ground.load(cluster, mode) as load:
            for number in range(ground.times):
                partition = number % PARTITIONS
                await pause_leader(cluster, load, line.recovery, partition=partition)
            await ground.judge(line, load)
    return line


async def parts(ground: Ground, mode: DeliveryMode) -> Line:
    """Cut the leader off from the others, but not from its clients."""
    line = Line("leader cut off from the others", mode.name, ground.times)
    async with ground.cluster(parted=True) as cluster:
        await cluster.create_topic(TOPIC, partitions=PARTITIONS)
        async with ground.load(cluster, mode) as load:
            for number in range(ground.times):
                partition = number % PARTITIONS
                await part_leader(cluster, load, line.recovery, partition=partition)
            await ground.judge(line, load)
    return line


async def silent_cuts(ground: Ground) -> Line:
    """Let a leader's packets vanish until all notice; then stop it for a second, unnoticed."""
    line = Line("node cut off silently, noticed", DeliveryMode.CONSISTENT.name, ground.times)
    async with ground.cluster(parted=True) as cluster:
        assert cluster.network is not None
        await cluster.create_topic(TOPIC, partitions=PARTITIONS)
        async with ground.load(cluster) as load:
            for number in range(ground.times):
                node = await cluster.leader(TOPIC, number % PARTITIONS)
                try:
                    noticed = await cut_silently(cluster, node)
                    line.recovery.gaps_s += [noticed.unready_s, noticed.not_alive_s]
                except TimeoutError as unnoticed:
                    line.violations.append(str(unnoticed))
                finally:
                    cluster.network.heal()
                await cluster.settled(topics=[TOPIC])
                line.violations += await pause_briefly(cluster, node)
                await cluster.settled(topics=[TOPIC])
            await ground.judge(line, load)
    line.expect_within(NOTICED_SECONDS_MAX)
    line.note = "until the node is not ready and no other one calls it alive"
    return line
