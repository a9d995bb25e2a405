"""Turns for connections that flood: all of them share a bounded part of the event loop's time.

Ending a flooding connection is not enough, because its sender opens the next one. So the sockets of
flooding connections are read only in slices of time, and between two slices the loop belongs to the
others for `100 - FLOODS_PERCENT_MAX` percent. Within a slice connections take turns.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from angarium.wire.flooding.bounds import FLOODS_PERCENT_MAX, SLICE_SECONDS, SLICE_SECONDS_MAX
from angarium.wire.flooding.unproven import UnprovenLoad

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.wire.flooding.meter import FloodMeter

_log = logging.getLogger(__name__)


class FloodGate:
    """The turns of one event loop's flooding connections."""

    def __init__(self, *, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_scheduled = False
        self.unproven = UnprovenLoad(clock=clock)
        """What all connections send that have not logged in."""
        self.turns = 0
        """Turns that were given."""

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` when its turn comes; behind all that wait already."""
        self._waiting.append(go_on)
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._slice)

    def _slice(self) -> None:
        """Give turns for as long as a slice lasts."""
        began = now = self._clock()
        while self._waiting and now - began < SLICE_SECONDS:
            go_on = self._waiting.popleft()
            self.turns += 1
            try:
                go_on()
            except Exception:
                _log.exception("a flooding connection met an unexpected error")
            now = self._clock()
        # Behind the tasks that were woken meanwhile: some frames are handled by one.
        asyncio.get_running_loop().call_soon(self._done, began)

    def _done(self, began: float) -> None:
        """Schedule the next slice, far enough for what this one took with what it led to."""
        took = min(self._clock() - began, SLICE_SECONDS_MAX)
        pause = took * (100 - FLOODS_PERCENT_MAX) / FLOODS_PERCENT_MAX
        asyncio.get_running_loop().call_later(pause, self._rested)

    def _rested(self) -> None:
        if self._waiting:
            self._slice()
        else:
            self._is_scheduled = False


_gates: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, FloodGate]] = WeakKeyDictionary()


def gate_of(loop: asyncio.AbstractEventLoop) -> FloodGate:
    """Return the gate of an event loop: one for all doors."""
    gate = _gates.get(loop)
    if gate is None:
        gate = _gates[loop] = FloodGate()
    return gate


def take_turn(
    loop: asyncio.AbstractEventLoop, meter: FloodMeter, go_on: Callable[[], None]
) -> None:
    """Call `go_on` in the next turn of the loop, or among the floods if the connection is one."""
    if meter.control and meter.is_flooding:
        meter.is_behind = True
        gate_of(loop).wait(go_on)
    else:
        loop.call_soon(go_on)
