"""How much longer things may take here than on a machine that has nothing else to do."""

from __future__ import annotations

import os


def slowness() -> float:
    """Return how many want each processor: 1 where everybody has one, 6 at a load of 12 on two.

    A promise such as "two seconds" is given for a machine with nothing else to do. Where six
    processes share a processor each step may take six times as long, and an assertion about the
    promise has to allow for that.
    """
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
