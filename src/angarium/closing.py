"""Closing what a call has opened, whatever becomes of the call.

Whoever is cancelled while it closes something would leave it half closed: a member of a group that
nobody reads for is lent records all the same. So what is closed on behalf of a call is closed by a
task of its own, which belongs to whoever serves the calls: the caller waits for it, and if the
caller is cancelled it goes on without it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Coroutine

CLOSE_S_MAX: Final = 15.0
"""How long closing one thing may take. What is not closed by then is told in the log."""

_log = logging.getLogger(__name__)


class Closings:
    """What is being closed for the calls of one door, or for one client."""

    def __init__(self, *, seconds_max: float | None = CLOSE_S_MAX) -> None:
        """Prepare; without `seconds_max` what is closed keeps time itself."""
        self._seconds_max = seconds_max
        self._open: set[asyncio.Task[None]] = set()

    async def see_to(self, closing: Coroutine[Any, Any, None]) -> None:
        """Have `closing` done to its end; return when it is. A caller that is cancelled meanwhile
        is, and `closing` goes on."""
        task = asyncio.get_running_loop().create_task(self._closed(closing))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_tell_failure)  # there is nobody else to hear of it
            raise

    async def drained(self) -> None:
        """Return when everything is closed that somebody began to close."""
        while self._open:
            await asyncio.wait(set(self._open))

    async def _closed(self, closing: Coroutine[Any, Any, None]) -> None:
        try:
            async with asyncio.timeout(self._seconds_max):
                await closing
        except TimeoutError:
            _log.warning("%s took more than %s s", closing, self._seconds_max)


def _tell_failure(task: asyncio.Task[None]) -> None:
    failure = None if task.cancelled() else task.exception()
    if failure is not None:
        _log.error("what a cancelled call had opened was not closed", exc_info=failure)
