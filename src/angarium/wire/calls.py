"""Requests we wait for.

One timer watches over all waiting requests of a connection: nearly all are answered long before
their deadline, and a timer each would cost more than the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.wire.errors import DeadlineExceeded

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from angarium.errors import AngariumError
    from angarium.wire.frames import Frame

_LOOK_INTERVAL_S: Final = 0.005
"""Deadlines are looked after no more often than this, so one may be noticed that much late."""


class Calls:
    """The requests of one connection that wait for an answer."""

    __slots__ = ("_looking_at", "_loop", "_on_late", "_timer", "waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop, *, on_late: Callable[[int], None]) -> None:
        self.waiting: dict[int, tuple[asyncio.Future[Frame], float]] = {}
        """By id: what will hold the answer, and its deadline."""
        self._loop = loop
        self._on_late = on_late
        self._timer: asyncio.TimerHandle | None = None
        self._looking_at = 0.0

    def add(self, call_id: int, deadline: float) -> asyncio.Future[Frame]:
        """Return what will hold the answer, or `DeadlineExceeded` at `deadline` (loop time)."""
        future: asyncio.Future[Frame] = self._loop.create_future()
        self.waiting[call_id] = (future, deadline)
        if self._timer is None or deadline < self._looking_at:
            self._look_at(deadline)
        return future

    def answer(self, frame: Frame) -> bool:
        """Hand `frame` to who waits for it; False if nobody does any more."""
        waiting = self.waiting.pop(frame.id, None)
        if waiting is None:
            return False
        if not waiting[0].done():
            waiting[0].set_result(frame)
        return True

    def fail(self, call_id: int, error: AngariumError) -> bool:
        """Raise `error` where the answer is waited for; False if it is no longer."""
        waiting = self.waiting.pop(call_id, None)
        if waiting is None:
            return False
        if not waiting[0].done():
            waiting[0].set_exception(error)
        return True

    def forget(self, call_id: int) -> bool:
        """No longer wait; False if the answer had come already."""
        return self.waiting.pop(call_id, None) is not None

    def fail_all(self, error_for: Callable[[], AngariumError]) -> None:
        """Fail everything that waits, each with an error of its own; stop the timer."""
        for call_id in list(self.waiting):
            self.fail(call_id, error_for())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_at(self, moment: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._looking_at = max(moment, self._loop.time() + _LOOK_INTERVAL_S)
        self._timer = self._loop.call_at(self._looking_at, self._look)

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        late = [call_id for call_id, (_, deadline) in self.waiting.items() if deadline <= now]
        for call_id in late:
            self.fail(call_id, DeadlineExceeded("no answer came before the deadline"))
            self._on_late(call_id)
        if self.waiting:
            self._look_at(min(deadline for _, deadline in self.waiting.values()))
