"""Consumer groups under fire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.api import GroupConfig
from angarium.kinds import GroupKind
from angarium.testing.cluster.chaos.ground import PARTITIONS, TOPIC
from angarium.testing.cluster.chaos.line import Line
from angarium.testing.cluster.group_fire import under_fire
from angarium.testing.cluster.group_load import GroupLoad

if TYPE_CHECKING:
    from angarium.testing.cluster.chaos.ground import Ground

GROUP_RECORDS: Final = 1_000_000
GROUP_S: Final = 100.0
"""How many records a group consumes under fire, and over how long they are published."""

GROUP_SETTLE_S: Final = 600.0
"""How long it may take to be done with a million of them after that, on a busy machine."""


async def groups(ground: Ground, kind: GroupKind) -> Line:
    """Kill members of a group, and leaders, while it works; judge every record."""
    line = Line(f"{kind.name.lower()} group: members and leaders killed", "CONSISTENT", 1)
    poison = kind is GroupKind.QUEUE
    async with ground.cluster() as cluster:
        await cluster.create_topic(TOPIC, partitions=PARTITIONS)
        load = GroupLoad(
            cluster,
            ground.folder / f"members-{kind.name.lower()}",
            topic=TOPIC,
            kind=kind,
            config=GroupConfig(max_attempts=5 if poison else 100, backoff_max_ms=500),
            fail_share=0.002 if poison else 0.0,
            poison_every=50_021 if poison else 0,
            work_ms=10,
        )
        verdict = await under_fire(
            cluster,
            load,
            records=GROUP_RECORDS,
            seconds=GROUP_S,
            node_kills=max(1, ground.times // 2),
            partitions=PARTITIONS,
            seed=ground.times,
            settle_s=GROUP_SETTLE_S,
        )
    line.times = verdict.killed
    line.acknowledged = verdict.records
    line.violations += verdict.violations
    line.note = (
        f"{verdict.deliveries:,} handed out, {verdict.again:,} of them again, "
        f"{verdict.dead} dead letters"
    )
    return line
