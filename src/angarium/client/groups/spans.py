"""Ranges of offsets, flat: first, past the last, first, past the last, and so on, ascending."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Spans: TypeAlias = tuple[int, ...]
"""First offset, past the last offset, and so on, ascending."""


def spans_of(offsets: Iterable[int]) -> Spans:
    """Return the ranges that hold exactly these offsets."""
    # One that is given twice must not make up for one that is missing, below.
    ordered = sorted(set(offsets))
    if not ordered:
        return ()
    first, last = ordered[0], ordered[-1]
    if last - first + 1 == len(ordered):
        return (first, last + 1)  # nearly always: what came together is settled together
    found = [first]
    expected = first
    for offset in ordered:
        if offset != expected:
            found += (expected, offset)
        expected = offset + 1
    found.append(expected)
    return tuple(found)


def pairs(spans: Spans) -> Iterator[tuple[int, int]]:
    """Yield each range as its first offset and the one past its last."""
    return zip(spans[::2], spans[1::2], strict=True)


def offsets_in(spans: Spans) -> Iterator[int]:
    """Yield every offset in the ranges."""
    return chain.from_iterable(range(first, past) for first, past in pairs(spans))


def count_in(spans: Spans) -> int:
    """Return how many offsets the ranges hold."""
    return sum(spans[1::2]) - sum(spans[::2])


def below(spans: Spans, end: int) -> Spans:
    """Return the part of the ranges below `end`."""
    found: list[int] = []
    for first, past in pairs(spans):
        if first >= end:
            break
        found += (first, min(past, end))
    return tuple(found)


def contains(spans: Spans, offset: int) -> bool:
    """Tell whether an offset lies in one of the ranges."""
    return any(first <= offset < past for first, past in pairs(spans))


def overlap(some: Spans, others: Spans) -> bool:
    """Tell whether two sets of ranges have an offset in common."""
    return any(
        first < other_past and other_first < past
        for first, past in pairs(some)
        for other_first, other_past in pairs(others)
    )


def halves(spans: Spans) -> tuple[Spans, Spans]:
    """Return the ranges cut in two, each with about half of the offsets; there are two or more."""
    left = count_in(spans) // 2
    lower: list[int] = []
    upper: list[int] = []
    for first, past in pairs(spans):
        cut = min(past, first + left)
        left -= cut - first
        if first < cut:
            lower += (first, cut)
        if cut < past:
            upper += (cut, past)
    return tuple(lower), tuple(upper)
