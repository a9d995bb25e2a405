"""Durations as a pipeline's file says them, in Spark's words: "5 seconds", "1 minute"."""

from __future__ import annotations

import re
from typing import Final

from angarium.durations import duration_ms
from angarium.errors import InvalidArgument

_SPARKS: Final = re.compile(r"[0-9]+ (millisecond|second|minute|hour|day)s?")
"""What Spark is told as it is written; it does not know the short forms."""


def is_interval(text: str) -> bool:
    """Tell whether a text is a duration above 0."""
    return _SPARKS.fullmatch(text) is not None and bool(duration_ms(text))


def interval_s(name: str, text: object) -> float:
    """Return the seconds of a duration; `InvalidArgument` says how one is written."""
    if not isinstance(text, str) or not is_interval(text):
        raise InvalidArgument(f"{name}: {text!r} is not like '10 seconds'")
    return (duration_ms(text) or 0) / 1_000
