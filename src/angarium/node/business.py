"""How busy the event loop is: the share of the time in which its thread ran, or was ready to run.

Both count: a loop that waits for a processor that others use is as late as one that is always
running. Linux reports both; elsewhere only the time that the thread ran is known.

While the loop is pressed (overloaded), work with a fixed cost per round waits for more to share the
round. Everybody waits then anyway, and the time saved makes everybody faster.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

RELAXED: Final = 0.85
"""Up to this share of the time at work a loop counts as one that keeps up."""


def pressure(busy: float) -> float:
    """Return how pressed a loop is that has work for the share `busy`: from 0, not at all, to 1."""
    return min(1.0, max(0.0, (busy - RELAXED) / (1 - RELAXED)))


class ThreadTime:
    """The time for which the thread that makes this ran, or wanted to."""

    def __init__(self, figures: str | None = None) -> None:
        """Read the kernel's `figures`, those of this thread if none are named."""
        self._file: int | None = None
        path = figures or f"/proc/self/task/{threading.get_native_id()}/schedstat"
        with suppress(OSError):
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def seconds(self) -> float:
        """Return how long since the thread began; without figures, how long it ran."""
        if self._file is None:
            return time.thread_time()
        ran, waited, _ = os.pread(self._file, 100, 0).split()
        return (int(ran) + int(waited)) / 1e9

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class Business:
    """Measures the thread that it is made in."""

    def __init__(
        self, at_work: ThreadTime | None = None, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._at_work = at_work or ThreadTime()
        self._now = now
        self._worked, self._since = self._at_work.seconds(), now()

    def share(self) -> float:
        """Return the share since the last call, from 0 to 1; call it in the same thread."""
        worked, now = self._at_work.seconds(), self._now()
        share = (worked - self._worked) / max(now - self._since, 1e-6)
        self._worked, self._since = worked, now
        return min(1.0, share)

    def close(self) -> None:
        """Give the kernel's figures back."""
        self._at_work.close()
