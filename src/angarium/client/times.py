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


def micros(moment: Moment | object) -> int:
    """Return `moment` in microseconds since 1970; `InvalidArgument` if it is none, or zoneless."""
    if isinstance(moment, int):
        return moment
    if isinstance(moment, timedelta):
        return time.time_ns() // 1000 + moment // _MICROSECOND
    if not isinstance(moment, datetime):
        raise InvalidArgument(
            f"{moment!r} is no time; give a datetime with its zone, a timedelta from now, or "
            "microseconds since 1970"
        )
    if moment.tzinfo is None:
        raise InvalidArgument(f"{moment} has no time zone; write datetime.now(UTC), for instance")
    return (moment - _EPOCH) // _MICROSECOND


def milliseconds(span: float | timedelta | None) -> int | None:
    """Return a span of time, given in seconds or as a timedelta, in milliseconds."""
    if span is None:
        return None
    found = span // _MILLISECOND if isinstance(span, timedelta) else round(span * 1000)
    if found < 0:
        raise InvalidArgument(f"a span of time is not negative: {span}")
    return found
