"""Ranges of offsets laid out flat: first, past the last, first, past the last, ascending."""

from __future__ import annotations


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
