"""Deadlines of calls, watched together: a timer for each would cost more than most calls do."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio

    from angarium.wire.grpc.call import Call

LOOK_EVERY_S: Final = 0.02
"""Between two looks at all calls there is so much time at the least; what is due meanwhile waits
for the second. Clients know their deadlines themselves."""


class Deadlines:
    """Calls with a deadline, each ended when that has passed."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: dict[Call, float] = {}
        """As many as there are calls, of which `calls_max` bounds the number."""
        self._look_at = inf
        self._timer: asyncio.TimerHandle | None = None
        self._looked_at = -inf

    def add(self, call: Call, due: float) -> None:
        """End `call` at the loop's time `due`, or a moment later."""
        self._due[call] = due
        if due < self._look_at:
            self._look(max(due, self._looked_at + LOOK_EVERY_S))

    def discard(self, call: Call) -> None:
        """Let a call be: it is over."""
        self._due.pop(call, None)

    def _look(self, at: float) -> None:
        if at < self._look_at:
            if self._timer is not None:
                self._timer.cancel()
            self._look_at = at
            self._timer = self._loop.call_at(at, self._end_what_is_due)

    def _end_what_is_due(self) -> None:
        self._timer = None
        self._look_at = inf
        now = self._looked_at = self._loop.time()
        for call in [call for call, due in self._due.items() if due <= now]:
            call.expire()
        if self._due:
            self._look(max(min(self._due.values()), now + LOOK_EVERY_S))
