"""Durations, sizes and starts as people write them: 7d, 10GiB, earliest, 2024-05-01T12:00Z."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime
from typing import Final, NamedTuple

from angarium import durations
from angarium.durations import UNITS_MS

_BYTES: Final = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}

NO_LIMIT: Final = -1
"""How "none" is kept where a limit is read: None would mean "not given"."""

_AMOUNT: Final = re.compile(r"([0-9]{1,15})\s*([a-zA-Z]*)")


class From(NamedTuple):
    """Where to begin to read, as written; the client has its own words for it."""

    at: str
    """live, earliest, latest, offset or timestamp"""
    value: int = 0
    """The offset, or the time in µs since 1970."""


def duration_ms(text: str) -> int:
    """Read a duration such as 500ms, 15m or 7d; "none" is no limit."""
    if text == "none":
        return NO_LIMIT
    found = durations.duration_ms(text)
    if found is None or found != int(found):
        raise argparse.ArgumentTypeError(
            f'{text!r} is not a duration; write a number and ms, s, m, h, d or w, or "none"'
        )
    return int(found)


def seconds(text: str) -> float:
    """Read a positive number of seconds, or of the unit behind it: 30, 0.5, 30s, 2m, 500ms."""
    value = (durations.duration_ms(text if text[-1:].isalpha() else f"{text}s") or 0) / 1_000
    if not 0.0 < value <= 86_400.0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of seconds up to a day; 30, 30s, 2m and 500ms are"
        )
    return value


def size_bytes(text: str) -> int:
    """Read a size such as 65536, 64KiB or 10GB; "none" is no limit."""
    if text == "none":
        return NO_LIMIT
    found = _AMOUNT.fullmatch(text.strip())
    if found is None or found[2].lower() not in _BYTES:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size; write bytes, or a number and KiB, MiB, GiB or kB, MB, GB,"
            ' or "none"'
        )
    return int(found[1]) * _BYTES[found[2].lower()]


def start(text: str) -> From:
    """Read where to begin: a word, an offset, or a time."""
    if text in ("live", "earliest", "latest"):
        return From(text)
    if text.isascii() and text.isdecimal() and len(text) < 19:
        return From("offset", int(text))
    if text.startswith("-") and text[1:] != "none":
        ago = duration_ms(text[1:])
        return From("timestamp", int(datetime.now(UTC).timestamp() * 1e6) - ago * 1_000)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a start; write earliest, latest, live, an offset, a time such"
            " as 2024-05-01T12:00:00Z, or an age such as -15m"
        ) from None
    # A time without a zone is the reader's own.
    moment = moment if moment.tzinfo else moment.astimezone()
    return From("timestamp", int(moment.timestamp() * 1_000_000))


def shown_duration(ms: int | None) -> str:
    """Return a duration in its largest whole unit."""
    if ms is None:
        return "none"
    # Weeks are read and not written: most people think of retention in days.
    unit = next(unit for unit in ("d", "h", "m", "s", "ms") if ms % UNITS_MS[unit] == 0)
    return f"{ms // UNITS_MS[unit]}{unit}" if ms else "0s"


def shown_age(ms: int) -> str:
    """Return how old something is, in one or two units: 3.2s, 11m 51s, 2h 5m, 3d 1h."""
    if ms < UNITS_MS["m"]:
        return f"{ms / 1000:.1f}s"
    larger, smaller = next(
        (one, below) for one, below in (("d", "h"), ("h", "m"), ("m", "s")) if ms >= UNITS_MS[one]
    )
    rest = ms % UNITS_MS[larger] // UNITS_MS[smaller]
    return f"{ms // UNITS_MS[larger]}{larger}" + (f" {rest}{smaller}" if rest else "")


def shown_size(size: int | None) -> str:
    """Return a size in the unit that leaves two or three digits in front of the point."""
    if size is None:
        return "none"
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if amount == int(amount) else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def shown_time(micros: int) -> str:
    """Return a point in time to the millisecond, in UTC."""
    try:
        moment = datetime.fromtimestamp(micros / 1e6, UTC)
    except (OverflowError, ValueError, OSError):
        return str(micros)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03d}"
