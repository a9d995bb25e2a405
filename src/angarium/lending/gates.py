"""Keeping a group's keys in order across layouts: what lies behind a fence waits at a gate.

When a topic is given partitions, keys are dealt anew from a fence on, which stands in each older
partition at an offset of its own (docs/decisions/0025). For a group the gate of a layout opens when
everything before its fences is settled, in all older partitions; until then nothing is lent that
lies behind one of them, nor anything of the partitions that came with the layout. So no record is
lent before an earlier one of its key, wherever that one is.

Whether others are drained is asked of replicas, the nearest first: that a floor has passed a fence
is committed, whoever tells it. A gate that was found open stays so while this leader leads, unless
the group is moved; the next leader asks again.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING, Final

from angarium.ids import Micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.lending.led_partition import LedPartition
    from angarium.lending.log_records import LogRecords
    from angarium.machine.cursors import Group
    from angarium.replica.partition_replica import PartitionReplica

ASK_AGAIN_MICROS: Final = 100_000
"""How soon it is asked again whether a gate may open, while something waits behind it."""


def is_drained(replica: PartitionReplica, group: str, layout: int) -> bool:
    """Tell whether a group has settled all that lies before a layout's fence in a partition."""
    machine = replica.partition.machine
    fence = machine.fence(layout)
    if fence is None:
        return False
    known = machine.groups.by_name.get(group)
    # What was trimmed away cannot be lent any more. One that was never opened here may be about
    # to be, at the beginning.
    return max(0 if known is None else known.floor, machine.start_offset) >= fence


class Gate:
    """How far one group may go in one partition that this node leads."""

    def __init__(self, led: LedPartition, group: Group) -> None:
        self._led = led
        self._group = group
        self._generation = group.generation
        self._opened = 0
        """Up to which layout all gates are open."""
        self._drained: set[int] = set()
        """Older partitions that are known to be drained, as far as the next gate asks for it."""
        self._ask_at = 0
        self.bound: int | None = 0
        """Behind which offset nothing may be lent for now; None: no gate is in the way."""

    @property
    def is_in_the_way(self) -> bool:
        """Whether records are there that may not be lent yet."""
        return self.bound is not None and self._led.records.end_offset > self.bound

    def _next_bound(self) -> int | None:
        layout = self._opened + 1
        if self._born >= layout:
            return 0
        return self._led.replica.partition.machine.fence(layout)

    @property
    def _layouts(self) -> tuple[int, ...]:
        return self._led.around.layouts(self._led.topic)

    @property
    def _born(self) -> int:
        return bisect_right(self._layouts, self._led.number)

    def look(self, now: Micros) -> Micros | None:
        """Find out how far the group may go; return when to look again.

        To be called before anything is lent: a fence may have come since, with records behind it.
        """
        if self._group.generation != self._generation:
            # Somebody moved the group: what was settled before may be handled once more.
            self._generation = self._group.generation
            self._opened = 0
            self._drained.clear()
        look_at = self._open(now)
        self.bound = self._next_bound()
        return look_at

    def _open(self, now: Micros) -> Micros | None:
        """Open gates as long as all is drained before them and something waits behind them."""
        end = self._led.records.end_offset
        while (bound := self._next_bound()) is not None and end > bound:
            layout, layouts = self._opened + 1, self._layouts
            if len(layouts) < layout:
                return Micros(now + ASK_AGAIN_MICROS)  # this node's catalog is behind
            older = range(layouts[layout - 1])
            missing = tuple(one for one in older if one not in self._drained)
            if not missing:
                # Planted as gate-opened-too-early.
                self._opened = layout
                self._drained.clear()
                continue
            if now < self._ask_at:
                return Micros(self._ask_at)
            self._ask_at = now + ASK_AGAIN_MICROS
            told = partial(self._told, layout, self._generation)
            self._led.around.ask_drained(self._led.topic, missing, self._group.name, layout, told)
            if any(one not in self._drained for one in older):
                return Micros(self._ask_at)
            self._ask_at = 0
        return None

    def _told(self, layout: int, generation: int, drained: Sequence[int]) -> None:
        # Of another gate, or of the group as it was before it was moved, it says nothing.
        if layout == self._opened + 1 and generation == self._group.generation:
            self._drained.update(drained)


class GatedRecords:
    """A partition's records as one group may be lent them: implements `RecordSource`."""

    def __init__(self, records: LogRecords, gate: Gate) -> None:
        self._gate = gate
        self._records = records
        self.stretch = records.stretch
        self.key_hashes = records.key_hashes
        self.due = records.due
        self.next_due = records.next_due

    @property
    def start_offset(self) -> int:
        return self._records.start_offset

    @property
    def end_offset(self) -> int:
        return self._records.end_offset

    @property
    def lendable_end(self) -> int:
        bound, end = self._gate.bound, self._records.end_offset
        return end if bound is None else min(bound, end)
