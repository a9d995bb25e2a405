"""Clocks that are wrong: one node of three at a time, and retention that would delete by it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from angarium.api import TopicConfig
from angarium.batch import encode
from angarium.modes import DeliveryMode
from angarium.testing.cluster.chaos.ground import PARTITIONS, TOPIC
from angarium.testing.cluster.chaos.line import Line
from angarium.testing.cluster.cluster import ProcessCluster
from angarium.testing.cluster.odd_clock import OddClock
from angarium.testing.cluster.waiting import eventually, now_micros

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.ids import NodeId
    from angarium.testing.cluster.chaos.ground import Ground

DAY_S: Final = 86_400.0

RETENTION: Final = TopicConfig(retention_ms=3_600_000)

SHORT_LIVED: Final = "short-lived"
"""A topic that keeps its records for a second: where they are gone, leaders have trimmed."""

NOTICED_S_MAX: Final = 60.0
"""How long it may take on a busy machine until everybody has noticed, and leaders have trimmed."""


class OddCluster:
    """Three nodes, each with a clock of its own, and a topic that keeps an hour."""

    def __init__(self, folder: Path) -> None:
        self._clocks = {name: OddClock(folder / f"{name}.clock") for name in "abc"}
        programs = {name: clock.program for name, clock in self._clocks.items()}
        self.cluster = ProcessCluster(folder, programs=programs)

    def set_clock(self, node: NodeId, ahead_s: float, *, rate: float = 1.0) -> None:
        """Let the clock of a node jump."""
        self._clocks[self.cluster.nodes[node].name].set(ahead_s, rate=rate)

    async def create_topics(self) -> None:
        """Make the topic that must keep everything, and the one that shows that others do not."""
        await self.cluster.create_topic(TOPIC, partitions=PARTITIONS, config=RETENTION)
        short = TopicConfig(retention_ms=1_000)
        await self.cluster.create_topic(SHORT_LIVED, config=short)

    async def everybody_knows(self, wrong: NodeId | None) -> None:
        """Wait until all nodes say whose clock is wrong, and that one leads nothing."""

        async def known() -> bool:
            for node in self.cluster.ids:
                status = await self.cluster.contact(node).status()
                said = {one.id for one in status.nodes if not one.clock_agrees}
                leads = {one.id for one in status.nodes if one.leads}
                if said != ({wrong} - {None}) or wrong in leads or status.catalog_leader == wrong:
                    return False
            return True

        await eventually(known, within_s=NOTICED_S_MAX, what=f"all know that {wrong} is wrong")

    async def leaders_have_trimmed(self) -> None:
        """Wait until a record is gone that was stored now and is kept for a second."""
        leader = await self.cluster.leader(SHORT_LIVED)
        contact = self.cluster.contact(leader)
        acks = await contact.publish(SHORT_LIVED, 0, [encode([b"short"])], timeout_s=10.0)
        end = acks[0].next_offset
        assert end is not None

        async def trimmed() -> bool:
            led = await self.cluster.leader(SHORT_LIVED)
            info = await self.cluster.contact(led).describe(SHORT_LIVED)
            return (info.partitions[0].start_offset or 0) >= end

        await eventually(trimmed, within_s=NOTICED_S_MAX, what="a leader has trimmed by age")

    async def starts(self) -> list[int]:
        """Return where each replica of the topic that keeps an hour begins, on every node."""
        found = []
        for node in self.cluster.ids:
            info = await self.cluster.contact(node).describe(TOPIC)
            found += [one.start_offset or 0 for one in info.partitions]
        return found


async def clock_ahead(ground: Ground) -> Line:
    """Let one clock after the other be a day ahead or behind, or go too fast; nothing goes."""
    line = Line("one clock wrong by a day, or drifting", DeliveryMode.CONSISTENT.name, ground.times)
    rng = random.Random(ground.times)
    odd = OddCluster(ground.new_folder())
    async with odd.cluster as cluster:
        await odd.create_topics()
        async with ground.load(cluster) as load:
            for number in range(ground.times):
                # Whoever leads is worth it most.
                node = await cluster.leader(TOPIC, number % PARTITIONS)
                moment = now_micros()
                if number % 3 == 2:
                    odd.set_clock(node, rng.choice((-5.0, 5.0)), rate=rng.choice((0.5, 2.0)))
                else:
                    odd.set_clock(node, rng.choice((-1, 1)) * DAY_S)
                await odd.everybody_knows(node)
                await load.acknowledged_after(moment, partition=number % PARTITIONS)
                await odd.leaders_have_trimmed()
                line.violations += [
                    f"records under an hour old were trimmed: a replica begins at {start}"
                    for start in await odd.starts()
                    if start
                ]
                odd.set_clock(node, 0.0)
                await odd.everybody_knows(None)
            await ground.judge(line, load)
    return line
