"""The time of the doors, which turn "in five minutes" into a time of day.

The doors of a node go by the node's own time, which a majority of the cluster believes, and not by
a clock that may be wrong; the composition of a process says so (`follow`). There is one time in a
process. A gateway, which is no node, has its machine's clock.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def _machine_clock() -> int:
    return time.time_ns() // 1_000


_source: Callable[[], int] = _machine_clock


def follow(source: Callable[[], int]) -> None:
    """Take the time from `source` from now on, in µs."""
    global _source  # noqa: PLW0603  (one process, one time)
    _source = source


def now() -> int:
    """Return the time in µs."""
    return _source()
