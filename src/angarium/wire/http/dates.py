"""Dates as HTTP writes them (RFC 9110, section 5.6.7): always in GMT, and always in English.

The standard library has this among its tools for e-mail, which are a megabyte of memory.
"""

from __future__ import annotations

import time
from typing import Final

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip


def http_date(seconds: float) -> str:
    """Return a time, in seconds since 1970, as the header `Date` has it."""
    at = time.gmtime(seconds)
    day, month = _DAYS[at.tm_wday], _MONTHS[at.tm_mon - 1]
    hour, minute, second = at.tm_hour, at.tm_min, at.tm_sec
    return f"{day}, {at.tm_mday:02} {month} {at.tm_year:04} {hour:02}:{minute:02}:{second:02} GMT"
