"""Ranges of offsets laid out flat: first, past the last, first, past the last, ascending."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.delivery.blocks import blocks, pairs, runs

if TYPE_CHECKING:
    from collections.abc import Iterable


def records_in(ranges: tuple[int, ...]) -> int:
    """Return how many offsets the ranges cover."""
    return sum(ranges[1::2]) - sum(ranges[::2])


def without(ranges: tuple[int, ...], gone: tuple[int, ...]) -> tuple[int, ...]:
    """Return `ranges` without what is in `gone`."""
    if not gone or not ranges or gone[-1] <= ranges[0] or gone[0] >= ranges[-1]:
        return ranges
    left: list[int] = []
    at_gone = 0
    for start, end in zip(ranges[::2], ranges[1::2], strict=True):
        at = start
        while at_gone < len(gone) and gone[at_gone + 1] <= at:
            at_gone += 2
        look = at_gone
        while look < len(gone) and gone[look] < end:
            first, past = gone[look], gone[look + 1]
            if first > at:
                left += (at, first)
            at = max(at, past)
            look += 2
        if at < end:
            left += (at, end)
    return tuple(left)


def tightened(ranges: tuple[int, ...]) -> tuple[int, ...]:
    """Return the same ranges, those that touch each other as one; what is out of order stays."""
    if len(ranges) <= 2 or len(ranges) & 1:
        return ranges
    tight = [ranges[0]]
    last = ranges[1]
    for at in range(2, len(ranges), 2):
        if ranges[at] != last:
            tight += (last, ranges[at])
        last = ranges[at + 1]
    tight.append(last)
    return tuple(tight) if len(tight) < len(ranges) else ranges


def flattened(rows: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """Return several rows of ranges, in any order, as one."""
    found: dict[int, int] = {}
    for row in rows:
        for block, bits in by_block(row).items():
            found[block] = found.get(block, 0) | bits
    return runs(sorted(found.items()))


def by_block(ranges: tuple[int, ...]) -> dict[int, int]:
    """Return the offsets as bitmaps, by block."""
    found: dict[int, int] = {}
    for start, end in pairs(ranges):
        for block, bits in blocks(start, end):
            found[block] = found.get(block, 0) | bits
    return found
