"""Durations as a pipeline's file says them, in Spark's words: "5 seconds", "1 minute"."""

from __future__ import annotations

import re
from typing import Final

from angarium.errors import InvalidArgument

_INTERVAL: Final = re.compile(r"(\d+) (millisecond|second|minute|hour|day)s?")
_SECONDS: Final = {
    "millisecond": 0.001,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86_400.0,
}


def is_interval(text: str) -> bool:
    """Tell whether a text is a duration above 0."""
    found = _INTERVAL.fullmatch(text)
    return found is not None and int(found[1]) > 0


def interval_s(name: str, text: object) -> float:
    """Return the seconds of a duration; `InvalidArgument` says how one is written."""
    found = _INTERVAL.fullmatch(text) if isinstance(text, str) else None
    if found is None or int(found[1]) == 0:
        raise InvalidArgument(f"{name}: {text!r} is not like '10 seconds'")
    return int(found[1]) * _SECONDS[found[2]]
