"""Compaction: as the leader of a partition, propose to keep only the latest record of each key.

The proposal is an entry of the partition's log with two numbers, and every replica rewrites its own
files accordingly, in its own time. One goes after the other: while this node's own files are not
yet what the last one asked for, nothing is proposed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.ids import Micros, Offset
from angarium.log.segments.compacted_mark import Pass
from angarium.machine import Compact
from angarium.machine.catalog.values import Cleanup
from angarium.node.led_partitions import led_partitions, propose

if TYPE_CHECKING:
    from angarium.log.segments import PartitionLog
    from angarium.machine.catalog import TopicSettings
    from angarium.node.node import Node

ROUND_S: Final = 5.0
"""How often partitions are looked at."""

DIRTY_BYTES_MIN: Final = 1 << 20
"""Less than this that came since the last compaction is left for later: a compaction closes the
growing segment, and needs a snapshot."""


class Compaction:
    """Looks after the compacted partitions that this node leads."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def run(self) -> None:
        """Propose until cancelled."""
        while True:
            await asyncio.sleep(ROUND_S)
            self.round()

    def round(self) -> None:
        """Propose a compaction wherever one is worth it."""
        node = self._node
        for replica, settings in led_partitions(node):
            if settings.cleanup is not Cleanup.COMPACT:
                continue
            reached = Pass(*replica.partition.machine.compaction)
            now = node.time.trimming_now(settings.tombstone_micros)
            command = proposal(replica.partition.log, settings, reached, now=now)
            if command is not None:
                propose(node, replica, command)


def proposal(
    log: PartitionLog, settings: TopicSettings, reached: Pass, *, now: Micros | None
) -> Compact | None:
    """Return the compaction to propose after the one that `reached` so far; None for none.

    It is worth it when the part that came since is large enough against the whole, or when a
    tombstone that was kept has had its time. Without a `now` that can be trusted none has.
    """
    if log.compactor.is_behind(reached):
        return None
    before = Micros(0 if now is None else max(now - settings.tombstone_micros, 0))
    total = sum(segment.bytes for segment in log.segments)
    dirty = sum(segment.bytes for segment in log.segments if segment.next_offset > reached.until)
    if dirty >= DIRTY_BYTES_MIN and dirty * 100 >= settings.dirty_percent * total:
        return Compact(until=log.end_offset, tombstones_before=before)
    oldest = log.compactor.oldest_tombstone
    if oldest is not None and oldest < before:
        return Compact(until=Offset(reached.until), tombstones_before=before)
    return None
