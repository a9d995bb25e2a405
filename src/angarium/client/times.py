"""Times as people give them, as the microseconds that travel."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from angarium.errors import InvalidArgument

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MILLISECOND: Final = timedelta(milliseconds=1)

Moment: TypeAlias = int | datetime | timedelta
"""Microseconds since 1970, a datetime with its time zone, or a distance from now."""


def micros(time_of: Moment | object) -> int:
    """Return `time_of` in microseconds since 1970; `InvalidArgument` if it is none, or zoneless."""
    if isinstance(time_of, int):
        return time_of
    if isinstance(time_of, timedelta):
        return time.time_ns() // 1000 + time_of // _MICROSECOND
    if not isinstance(time_of, datetime):
        raise InvalidArgument(
            f"{time_of!r} is not a time; give a datetime with its zone, a timedelta from now, or "
            "microseconds since 1970"
        )
    if time_of.tzinfo is None:
        raise InvalidArgument(f"{time_of} has no time zone; write datetime.now(UTC), for instance")
    return (time_of - _EPOCH) // _MICROSECOND


def moment(time_us: int) -> datetime | None:
    """Return microseconds since 1970 as a datetime in UTC.

    None for 0, which stands for no time, and for what is beyond all datetimes: never.
    """
    if not time_us:
        return None
    try:
        return _EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        return None


def milliseconds(span: float | timedelta | None) -> int | None:
    """Return a span of time, given in seconds or as a timedelta, in milliseconds."""
    if span is None:
        return None
    found = span // _MILLISECOND if isinstance(span, timedelta) else round(span * 1000)
    if found < 0:
        raise InvalidArgument(f"a duration must not be negative: {span}")
    return found
