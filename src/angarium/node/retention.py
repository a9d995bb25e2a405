"""Retention: as the leader of a partition, propose to trim what its topic need not keep.

The trim is an entry of the partition's log, so all replicas agree on where the partition starts;
each removes its own files when it has applied it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.errors import CorruptData
from angarium.ids import Micros, Offset
from angarium.machine import Trim
from angarium.node.arrivals import Arrivals
from angarium.node.led_partitions import hosted_partitions, propose
from angarium.node.timekeeping import steady_clock

if TYPE_CHECKING:
    from angarium.ids import RaftGroupId
    from angarium.log.segments import PartitionLog
    from angarium.machine.catalog import TopicSettings
    from angarium.node.node import Node

ROUND_S = 5.0
"""How often partitions are looked at: how much longer than asked records may stay."""


class Retention:
    """Looks after the partitions this node leads."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._arrivals: dict[RaftGroupId, Arrivals] = {}

    async def run(self) -> None:
        """Trim until cancelled."""
        while True:
            await asyncio.sleep(ROUND_S)
            self.round()

    def round(self) -> None:
        """Propose a trim wherever one is due."""
        node, steady = self._node, steady_clock()
        arrivals, self._arrivals = self._arrivals, {}
        for replica, settings in hosted_partitions(node):
            if not limits_anything(settings):
                continue
            log, age, now, young = replica.partition.log, settings.retention_micros, None, None
            if age is not None:
                seen = self._arrivals[replica.group] = arrivals.get(replica.group) or Arrivals()
                is_full = not replica.shortfall()
                seen.note(log.end_offset, is_full=is_full, steady=steady, age=age)
                young = seen.young_from(steady=steady, age=age)
                now = node.time.trimming_now(age)
            if not replica.may_serve:
                continue
            settled = replica.partition.machine.groups.lowest_floor()
            start = retained_from(log, settings, now=now, young=young, settled=settled)
            if start > log.start_offset:
                propose(node, replica, Trim(start_offset=start))


def limits_anything(settings: TopicSettings) -> bool:
    """Tell whether a topic is trimmed at all."""
    limits = (settings.retention_micros, settings.retention_bytes)
    return settings.until_consumed or any(one is not None for one in limits)


def retained_from(
    log: PartitionLog,
    settings: TopicSettings,
    *,
    now: Micros | None,
    young: Offset | None = None,
    settled: int | None = None,
) -> Offset:
    """Return the first offset that the settings keep; the current start if all is kept.

    `settled` is where the group furthest behind stands; None if there is no group. Without a `now`
    that can be trusted nothing is too old, nor is what lies from `young` on.
    """
    start = log.start_offset
    if settings.until_consumed and settled is not None:
        start = max(start, Offset(min(settled, log.end_offset)))
    if settings.retention_micros is not None and now is not None:
        old = _appended_by(log, Micros(now - settings.retention_micros))
        start = max(start, old if young is None else min(old, young))
    if settings.retention_bytes is not None:
        start = max(start, _within_bytes(log, settings.retention_bytes))
    return start


def _appended_by(log: PartitionLog, time: Micros) -> Offset:
    """Return the first offset appended at `time` or later; the start while that cannot be read."""
    try:
        return log.offset_at(time)
    except CorruptData:
        # The damage is noted and mended from a peer. Until then nothing is too old: one unreadable
        # byte must neither trim records nor end the node.
        return log.start_offset


def _within_bytes(log: PartitionLog, bytes_max: int) -> Offset:
    """Return where the newest whole segments begin that together do not exceed `bytes_max`."""
    segments = list(log.segments)
    held = sum(segment.bytes for segment in segments)
    start = log.start_offset
    # The last segment is still growing and stays, however large.
    for segment in segments[:-1]:
        if held <= bytes_max:
            break
        held -= segment.bytes
        start = max(start, segment.next_offset)
    return start
