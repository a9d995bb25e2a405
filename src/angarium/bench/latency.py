"""Percentiles of measured times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


class Latency(msgspec.Struct, frozen=True):
    """A distribution in milliseconds; every measured value is in it, none is an estimate."""

    count: int
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float


def latency(nanoseconds: Sequence[int]) -> Latency | None:
    """Return the distribution; None if nothing was measured."""
    if not nanoseconds:
        return None
    ascending = sorted(nanoseconds)
    return Latency(
        count=len(ascending),
        p50_ms=_ms(percentile(ascending, 0.5)),
        p99_ms=_ms(percentile(ascending, 0.99)),
        p999_ms=_ms(percentile(ascending, 0.999)),
        max_ms=_ms(ascending[-1]),
    )


def percentile(ascending: Sequence[int], share: float) -> int:
    """Return the smallest value that at least `share` of all values do not exceed."""
    assert ascending, "there is no percentile of nothing"
    # The nearest rank: always one of the measured values.
    rank = -(-len(ascending) * share // 1)
    return ascending[max(int(rank) - 1, 0)]


def _ms(nanoseconds: int) -> float:
    return round(nanoseconds / 1e6, 3)
