"""How late the event loop is: the node's own pulse.

Every tick is due at a known time; how much later it runs is what everything else on the loop waits,
too. Elections must not be started by a slow loop, so the election timeout is to be at least ten
times the lag that only one tick in a thousand exceeds; the node says so in its log when it is not.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from typing import Final

_log = logging.getLogger(__name__)

_BOUNDS_S: Final[tuple[float, ...]] = tuple(0.0005 * 2**power for power in range(14))
"""Upper bounds of the histogram's buckets: half a millisecond to four seconds."""

WINDOW: Final = 10_000
"""Ticks after which counts are halved, so that the figure follows the last few minutes."""

ELECTION_FACTOR: Final = 10


class LoopLag:
    """A histogram of how late ticks were."""

    def __init__(self, *, election_timeout_s: float) -> None:
        self._election_timeout_s = election_timeout_s
        self._counts = [0] * (len(_BOUNDS_S) + 1)
        self._total = 0
        self._has_warned = False

    def record(self, late_s: float) -> None:
        """Note that a tick ran so many seconds after it was due."""
        self._counts[bisect_left(_BOUNDS_S, late_s)] += 1
        self._total += 1
        if self._total >= WINDOW:
            self._counts = [count // 2 for count in self._counts]
            self._total = sum(self._counts)
        if self._total % 1_000 == 0:
            self._compare()

    def quantile(self, share: float) -> float:
        """Return a lag that at least `share` of the ticks did not exceed, in seconds."""
        needed = share * self._total
        seen = 0
        for bound, count in zip((*_BOUNDS_S, float("inf")), self._counts, strict=True):
            seen += count
            if seen >= needed:
                return bound
        return float("inf")

    def _compare(self) -> None:
        lag = self.quantile(0.999)
        too_late = lag * ELECTION_FACTOR > self._election_timeout_s
        if too_late and not self._has_warned:
            _log.warning(
                "the event loop is late by up to %.0f ms; elections start after %.0f ms of "
                "silence, which should be ten times as long: give the node more processor, or "
                "raise tick_ms",
                lag * 1_000,
                self._election_timeout_s * 1_000,
            )
        self._has_warned = too_late
