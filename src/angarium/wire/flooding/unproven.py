"""Counting together what all connections send that have not logged in.

Each of them may stay below its own bound; what they cost is their sum.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from angarium.wire.flooding.bounds import UNPROVEN_FRAMES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable


class UnprovenLoad:
    """The counted frames of one event loop's connections before login, as a rate.

    What is counted fades by `UNPROVEN_FRAMES_MAX` a second.
    """

    __slots__ = ("_clock", "_level", "_seen")

    def __init__(self, *, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._level = 0.0
        self._seen = clock()

    def add(self, frames: int) -> None:
        """Count frames."""
        self._fade()
        self._level = min(self._level + frames, 2.0 * UNPROVEN_FRAMES_MAX)

    @property
    def is_over(self) -> bool:
        """Return whether all of them together send too much."""
        self._fade()
        return self._level > UNPROVEN_FRAMES_MAX

    def _fade(self) -> None:
        now = self._clock()
        self._level = max(0.0, self._level - (now - self._seen) * UNPROVEN_FRAMES_MAX)
        self._seen = now
