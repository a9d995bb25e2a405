"""What a consumer has on loan of one partition, as its own node knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.delivery.blocks import SHIFT, blocks, pairs, runs
from angarium.lending.flat import by_block

if TYPE_CHECKING:
    from angarium.api import Settlement


class Holdings:
    """Offsets with the number of the attempt at them. Costs go by blocks, not by records."""

    __slots__ = ("_attempts", "count")

    def __init__(self) -> None:
        self._attempts: dict[int, dict[int, int]] = {}
        """By attempt, by block, which of its records are on loan."""
        self.count = 0
        """How many records are on loan."""

    def add(self, ranges: tuple[int, ...], attempt: int) -> None:
        """Note records that were lent; one that was on loan already is now in this attempt."""
        self.remove(ranges)
        held = self._attempts.setdefault(attempt, {})
        for start, end in pairs(ranges):
            self.count += end - start
            for block, bits in blocks(start, end):
                held[block] = held.get(block, 0) | bits

    def remove(self, ranges: tuple[int, ...]) -> None:
        """Forget records that were settled or taken back, as far as they are on loan."""
        if not self._attempts:
            return
        if len(ranges) == 2 and (ranges[1] - ranges[0]) >> SHIFT > self.count:
            gone = self._overlap(*ranges)
        else:
            gone = by_block(ranges)
        for attempt, held in list(self._attempts.items()):
            self._remove(held, gone)
            if not held:
                del self._attempts[attempt]

    def settled(self, settlement: Settlement) -> None:
        """Forget what a settlement has ended, for everything below it too if it says so."""
        ranges = settlement.ranges
        if settlement.cumulative and ranges:
            ranges = (0, ranges[-1])
        self.remove(ranges)

    def held(self) -> tuple[tuple[int, int, int], ...]:
        """Return first offset, past the last offset and attempt of everything on loan."""
        return tuple(
            (start, end, attempt)
            for attempt, held in sorted(self._attempts.items())
            for start, end in pairs(runs(sorted(held.items())))
        )

    def _overlap(self, start: int, end: int) -> dict[int, int]:
        """Return the part of a wide range in which something may be on loan."""
        low, high = start >> SHIFT, (end - 1) >> SHIFT
        return {
            block: _bits_of(block, start, end)
            for held in self._attempts.values()
            for block in held
            if low <= block <= high
        }

    def _remove(self, held: dict[int, int], gone: dict[int, int]) -> None:
        for block, bits in gone.items():
            old = held.get(block, 0)
            new = old & ~bits
            self.count -= (old ^ new).bit_count()
            if new:
                held[block] = new
            elif old:
                del held[block]


def _bits_of(block: int, start: int, end: int) -> int:
    base = block << SHIFT
    return next(blocks(max(start, base), min(end, base + (1 << SHIFT))))[1]
