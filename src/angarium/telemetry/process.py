"""What the operating system says of this process."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Final

from angarium.telemetry.exposition import counter, gauge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.telemetry.exposition import Family

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Return the memory that the process holds."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024


def open_files() -> int:
    """Return how many files and sockets are open; 0 where that cannot be told."""
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  (half the price of a Path each)
    except OSError:
        return 0


def process_families(started_at: float) -> Iterable[Family]:
    """Return the metrics that every process has, by the names that everybody uses."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield counter(
        "process_cpu_seconds_total", "Processor time used.", used.ru_utime + used.ru_stime
    )
    yield gauge("process_resident_memory_bytes", "Memory held.", resident_bytes())
    yield gauge("process_open_fds", "Files and sockets open.", open_files())
    yield gauge("process_start_time_seconds", "When it began, since 1970.", started_at)
