"""A node whose wall clock a test sets, while it runs.

    python -m angarium.testing.cluster.odd_clock FILE --config node.toml [--parent PID]

It is `angarium serve`, and everything that asks Python for the time of day is told another one: the
file says how many seconds the clock is ahead, and how many times as fast it goes. The steady clock,
on which the event loop waits, stays as it is. (libfaketime 0.9.10 would do the same from outside,
but makes Python's `time.sleep` fail.)
"""

from __future__ import annotations

import runpy
import sys
import time
from pathlib import Path
from typing import Final

LOOK_AGAIN_NS: Final = 20_000_000


class OddClock:
    """Sets the clock of one node, from outside."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0.0)

    @property
    def program(self) -> tuple[str, ...]:
        """The node that goes by this clock."""
        return (sys.executable, "-m", "angarium.testing.cluster.odd_clock", str(self._file))

    def set(self, ahead_s: float, *, rate: float = 1.0) -> None:
        """Let it jump to so far ahead of the machine's clock, and go so many times as fast."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        new = self._file.with_suffix(".new")
        new.write_text(f"{ahead_s} {rate} {time.time_ns()}", encoding="utf-8")
        new.replace(self._file)


def bend_time(file: Path) -> None:
    """Let this process go by the clock that `file` describes."""
    true_time = time.time_ns
    steady = time.monotonic_ns
    known: tuple[float, float, int] = (0.0, 1.0, 0)
    look_at = 0

    def odd_time_ns() -> int:
        nonlocal known, look_at
        now, at = true_time(), steady()
        if at >= look_at:
            look_at = at + LOOK_AGAIN_NS
            ahead, rate, since = file.read_text(encoding="utf-8").split()
            known = (float(ahead), float(rate), int(since))
        ahead_s, times, since_ns = known
        return now + int(ahead_s * 1e9) + int((now - since_ns) * (times - 1.0))

    time.time_ns = odd_time_ns
    time.time = lambda: odd_time_ns() / 1e9


if __name__ == "__main__":
    bend_time(Path(sys.argv[1]))
    sys.argv = ["angarium", "serve", *sys.argv[2:]]
    runpy.run_module("angarium", run_name="__main__")
