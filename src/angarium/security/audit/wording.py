"""What callers chose, as it goes into an audit record: bounded, and without control characters."""

from __future__ import annotations

from typing import Final

from angarium.telemetry.logs import escaped

NAME_CHARACTERS_MAX: Final = 256
"""Of a name of anything. What is longer is cut, and says how long it was."""

SENTENCE_CHARACTERS_MAX: Final = 1_024
"""Of a rule, and of the details. An escaped character may take ten: a record has up to 40 KiB."""


def named(text: str) -> str:
    """Return a name as it is told."""
    return _bounded(text, NAME_CHARACTERS_MAX)


def said(text: str) -> str:
    """Return a sentence as it is told."""
    return _bounded(text, SENTENCE_CHARACTERS_MAX)


def _bounded(text: str, characters_max: int) -> str:
    if len(text) > characters_max:
        text = f"{text[:characters_max]}… ({len(text)} characters)"
    return escaped(text)
