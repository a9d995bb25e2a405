"""Option values as people write them: numbers, yes and no, times, durations, JSON.

Every refusal names the option, repeats what was written and says what would have been right.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final, TypeVar

import msgspec

from angarium.durations import duration_ms
from angarium.errors import InvalidArgument

T = TypeVar("T")

NUMBER_MAX: Final = (1 << 63) - 1
"""Offsets and times are no larger than this anywhere."""

MILLIS_MAX: Final = 253_402_300_799_999
"""The last millisecond of the year 9999, where calendars end."""

_YES_NO: Final = {"true": True, "false": False}
_BYTE_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_BYTES: Final = re.compile(r"(\d+)\s*([kmg]?)(?:i?b)?")


def number(option: str, text: str) -> int:
    """Return a whole number above 0."""
    stripped = text.strip()
    if not stripped.isascii() or not stripped.isdigit() or not 0 < int(stripped) <= NUMBER_MAX:
        raise InvalidArgument(f"option {option}: {text!r} is no whole number above 0")
    return int(stripped)


def yes_or_no(option: str, text: str) -> bool:
    """Return what "true" or "false" says."""
    try:
        return _YES_NO[text.strip().lower()]
    except KeyError:
        raise InvalidArgument(f"option {option}: {text!r} is neither 'true' nor 'false'") from None


def duration_s(option: str, text: str) -> float:
    """Return the seconds in "15m", "30s", "500ms", and in "15 minutes", as pipelines say it."""
    found = duration_ms(text.lower())
    if found is None:
        raise InvalidArgument(f"option {option}: {text!r} is no duration; write 15m, 30s or 500ms")
    return found / 1_000


def size_bytes(option: str, text: str) -> int:
    """Return the bytes in "64m", "1g" or "1048576"."""
    found = _BYTES.fullmatch(text.strip().lower())
    if found is None or int(found[1]) == 0:
        raise InvalidArgument(f"option {option}: {text!r} is no size; write 64m, 1g or 1048576")
    return int(found[1]) * _BYTE_UNITS[found[2]]


def moment_micros(option: str, text: str) -> int:
    """Return a time given as milliseconds since 1970, or as 2026-11-15T08:00:00Z, in µs."""
    stripped = text.strip()
    if stripped.isascii() and stripped.isdigit():
        return millis_micros(option, int(stripped))
    try:
        moment = datetime.fromisoformat(stripped)
    except ValueError:
        raise InvalidArgument(
            f"option {option}: {text!r} is no time; write milliseconds since 1970, "
            "or 2026-11-15T08:00:00Z"
        ) from None
    if moment.tzinfo is None:
        raise InvalidArgument(
            f"option {option}: {text!r} has no time zone; for UTC write {moment.isoformat()}Z"
        )
    since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def millis_micros(option: str, millis: int) -> int:
    """Return a time in µs."""
    if millis > MILLIS_MAX:
        raise InvalidArgument(f"option {option}: {millis} is no time in milliseconds since 1970")
    return millis * 1000


def decoded(option: str, text: str, kind: type[T], example: str) -> T:
    """Return the JSON in `text` as a value of type `kind`."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise InvalidArgument(
            f"option {option}: {text!r} is not of the form {example} ({error})"
        ) from None
