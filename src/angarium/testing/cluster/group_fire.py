"""A group at work while its members, and the leaders of its partitions, are killed."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from angarium.testing.cluster.group_load import SETTLE_SECONDS_MAX

if TYPE_CHECKING:
    from angarium.testing.cluster.cluster import ProcessCluster
    from angarium.testing.cluster.group_load import GroupLoad, GroupVerdict

MEMBER_KILLS = 4
"""Members killed for each leader that is."""

BACK_SECONDS_MAX = 120.0
"""How long a node that was killed may take to be back: its group is judged, not the machine."""


async def under_fire(
    cluster: ProcessCluster,
    load: GroupLoad,
    *,
    records: int,
    seconds: float,
    node_kills: int,
    partitions: int,
    seed: int,
    settle_s: float = SETTLE_SECONDS_MAX,
) -> GroupVerdict:
    """Publish over so many seconds, kill meanwhile, and judge what became of every record.

    A node that was killed is started again, and everything is in sync before the next one goes:
    what is promised holds while a majority is there.
    """
    chance = random.Random(seed)
    async with load:
        publishing = asyncio.create_task(load.publish(records, seconds=seconds))
        pause = seconds / node_kills / MEMBER_KILLS
        for _ in range(node_kills):
            for _ in range(MEMBER_KILLS - 1):
                await asyncio.sleep(pause)
                load.kill_member(chance)
            leader = await cluster.leader(load.topic, chance.randrange(partitions))
            cluster.nodes[leader].kill()
            await asyncio.sleep(pause)
            load.kill_member(chance)
            cluster.restart(leader)
            await cluster.back(leader, within_s=BACK_SECONDS_MAX)
            await cluster.settled(within_s=BACK_SECONDS_MAX)
        await publishing
        return await load.conclude(within_s=settle_s)
