"""Durations as people write them, read alike everywhere: 500ms, 15m, 1.5h, 7d, 10 seconds."""

from __future__ import annotations

import re
from typing import Final

UNITS_MS: Final = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_WORDS: Final = {
    "millisecond": "ms",
    "second": "s",
    "min": "m",
    "minute": "m",
    "hour": "h",
    "day": "d",
    "week": "w",
}
_WRITTEN: Final = re.compile(
    rf"([0-9]{{1,15}})(\.[0-9]{{1,9}})?\s*(?:({'|'.join(UNITS_MS)})|({'|'.join(_WORDS)})s?)"
)


def duration_ms(text: str) -> float | None:
    """Return the milliseconds that are written there; None if it is no duration."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        return None
    whole, fraction, unit, word = found.groups()
    unit_ms = UNITS_MS[unit or _WORDS[word]]
    # A whole number of units stays one, however large it is.
    return int(whole) * unit_ms + (float(fraction) * unit_ms if fraction else 0)
