"""How fast a node copies: as fast as it can while nobody else needs it, gently while somebody does.

A drain, a rebalance and the making good of a lost disk all copy segments, and share the loop, the
processors and the disk with publishers. What publishers feel is how long a round of the log takes:
from the moment that entries are handed to the disk until the loop hears that they are there. It has
everything in it: the disk, the threads, the loop, the processor. Before copies begin a node knows
how long its rounds take in quiet; while rounds take much longer than that, or the loop is at work
for most of the time, each tick takes a part of the pace away, and otherwise adds a little. Without
publishers there are hardly any rounds, and only the loop's own share holds a copy back.

The pace stays between two settings. At the lower one it goes on however busy the node is, so that a
move ends. Where publishers write faster than that, a copy may be outrun (`replica.pacing`): then
the lower bound grows with each time, as far as the upper one, until the newcomer follows.
"""

from __future__ import annotations

from typing import Final

from angarium.replica.pacing import OUTRUN_FACTOR

BUSY: Final = 0.5
"""The share of the time that the loop may be at work while a copy becomes no slower: what is left
is for whoever comes next."""

LONGER: Final = 1.15
LONGER_S: Final = 0.0002
"""How many times as long as in quiet, and this besides, a round may take."""

SLOWER: Final = 0.85
FASTER: Final = 1.02
"""What becomes of the pace in a tick: it is halved within a quarter of a second, and doubled within
two."""

ROUNDS_MIN: Final = 4.0
"""Rounds that a tick has at least, on average, where somebody publishes all the time. With fewer
nobody waits for anybody."""

IDLE_TICKS: Final = 20
"""Ticks without a byte of a copy after which it is quiet. Between regions an answer takes some."""

_SMOOTH: Final = 0.2
"""The weight of the newest tick in what is smoothed while copies pass: a quarter of a second."""

_SMOOTH_QUIET: Final = 0.02
"""The same in quiet: a few seconds."""


class CopyPacing:
    """One node's pace, found anew with every tick."""

    def __init__(self, *, tick_s: float, bytes_per_s_min: int, bytes_per_s_max: int) -> None:
        """Stay between two paces; without an upper one (0) nothing is held back in quiet."""
        self._tick_s = tick_s
        self._least = max(1.0, bytes_per_s_min * tick_s)
        self._most = bytes_per_s_max * tick_s if bytes_per_s_max else float("inf")
        self._least = min(self._least, self._most)
        self._pace = self._least
        self._share = 0.0
        self._rounds = 0
        self._rounds_s = 0.0
        self._rate = 0.0
        """Rounds in a tick."""
        self._round_s = 0.0
        """How long one takes."""
        self._quiet_s: float | None = None
        """How long one takes in quiet, as far as that is known."""
        self._idle_ticks = IDLE_TICKS

    @property
    def bytes_per_s(self) -> float:
        """The pace of now."""
        return self._pace / self._tick_s

    def round_took(self, seconds: float) -> None:
        """Hear how long a round of the log took."""
        self._rounds += 1
        self._rounds_s += seconds

    def next_tick(self, *, share: float, passed_bytes: int, outrun_times: int = 0) -> int:
        """Return how many bytes may pass in the tick that begins.

        In the one that ends, the loop was at work for `share` of the time, copies brought
        `passed_bytes`, and one of them had been outrun so many times.
        """
        least = min(self._least * OUTRUN_FACTOR**outrun_times, self._most)
        rounds, took = self._rounds, self._rounds_s
        self._rounds, self._rounds_s = 0, 0.0
        self._idle_ticks = 0 if passed_bytes else self._idle_ticks + 1
        self._share += _SMOOTH * (share - self._share)
        self._rate += _SMOOTH * (rounds - self._rate)
        if rounds:
            self._round_s += _SMOOTH * (took / rounds - self._round_s)
        if self._idle_ticks > IDLE_TICKS:
            if rounds:
                before = self._quiet_s if self._quiet_s is not None else took / rounds
                self._quiet_s = before + _SMOOTH_QUIET * (took / rounds - before)
            # The next copy begins gently, and has reached what is possible within seconds.
            self._pace = least
        elif self._is_disturbed:
            self._pace *= SLOWER
        # One that is not nearly used up does not grow: nobody has tried so much yet.
        elif passed_bytes >= self._pace / 4:
            self._pace = min(self._most, self._pace * FASTER)
        self._pace = max(least, self._pace)
        return int(self._pace)

    @property
    def _is_disturbed(self) -> bool:
        if self._share > BUSY:
            return True
        if self._quiet_s is None or self._rate < ROUNDS_MIN:
            return False
        return self._round_s > self._quiet_s * LONGER + LONGER_S
