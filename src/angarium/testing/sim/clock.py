"""Simulated time: a heap of events, and nothing at all between two of them."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MILLISECOND = 1_000
SECOND = 1_000_000

START = 1_700_000_000 * SECOND
"""When simulated time begins."""


EVENTS_AT_ONCE_MAX = 100_000
"""So many events in one moment mean that something calls itself without end; runs have tens."""


class Spinning(Exception):
    """Somebody is busy without end: a real process would use a whole core for nothing."""


class Scheduler:
    """Runs actions in the order of their time; those of one moment in the order of their asking."""

    __slots__ = ("_heap", "_sequence", "now", "steps")

    def __init__(self, start: int) -> None:
        self.now = start
        """Microseconds, as everywhere."""
        self.steps = 0
        self._heap: list[tuple[int, int, Callable[..., object], tuple[Any, ...]]] = []
        self._sequence = 0

    def after(self, delay: int, action: Callable[..., object], *arguments: Any) -> None:
        """Run `action` `delay` microseconds from now."""
        self._sequence += 1
        heapq.heappush(self._heap, (self.now + delay, self._sequence, action, arguments))

    def run_until(self, time: int, *, stop: Callable[[], bool] | None = None) -> None:
        """Run everything due up to `time`, or until `stop` says enough."""
        heap = self._heap
        pop = heapq.heappop
        moment = self.steps
        while heap and heap[0][0] <= time:
            due, _, action, arguments = pop(heap)
            if due != self.now:
                self.now, moment = due, self.steps
            elif self.steps - moment > EVENTS_AT_ONCE_MAX:
                raise Spinning(f"{EVENTS_AT_ONCE_MAX:,} events, and no time passes: {action}")
            self.steps += 1
            action(*arguments)
            if stop is not None and stop():
                return
        self.now = time
