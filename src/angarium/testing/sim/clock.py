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
        while heap and heap[0][0] <= time:
            due, _, action, arguments = pop(heap)
            self.now = due
            self.steps += 1
            action(*arguments)
            if stop is not None and stop():
                return
        self.now = time
