"""How long a failed record waits: longer each time, up to a limit, and never in step with others.

Chance comes from a seed, mixed with what the wait is for, so that a run can be repeated and two
records that failed together do not come back together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from angarium.machine.changes import GroupSettings

_MASK: Final = (1 << 64) - 1
_DOUBLINGS_MAX: Final = 40
"""More doublings than this reach any limit there is."""


def mixed(*numbers: int) -> int:
    """Return 64 bits that look random and depend on all `numbers` and their order."""
    state = 0x9E3779B97F4A7C15
    for number in numbers:
        # The finisher of SplitMix64: each bit of the input moves half of the bits of the output.
        state = (state ^ number) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _MASK
        state ^= state >> 31
    return state


def backoff(settings: GroupSettings, *, attempts: int, offset: int, seed: int) -> int:
    """Return the microseconds to wait after `attempts` attempts: half fixed, half by chance."""
    doublings = min(attempts - 1, _DOUBLINGS_MAX)
    full = min(settings.backoff_min_micros << doublings, settings.backoff_max_micros)
    return full // 2 + mixed(seed, offset, attempts) % (full - full // 2 + 1)
