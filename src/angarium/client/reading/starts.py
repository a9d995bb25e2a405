"""Where to begin to read, as people say it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, TypeAlias

from angarium.api import Start, StartAt
from angarium.client.times import micros
from angarium.errors import InvalidArgument

StartLike: TypeAlias = str | int | datetime | Start | Mapping[int, int]
"""`"live"` or `"latest"` (only what comes from now on), `"earliest"`, an offset, a time, or an
offset for each partition, by number."""

EARLIEST: Final = Start(StartAt.EARLIEST)
LATEST: Final = Start(StartAt.LATEST)
_WORDS: Final = {"live": LATEST, "latest": LATEST, "earliest": EARLIEST}


def start_in(start: StartLike, partition: int) -> Start:
    """Return where to begin in `partition`; one that a mapping leaves out begins at its start."""
    if isinstance(start, Start):
        return start
    if isinstance(start, str):
        if start not in _WORDS:
            raise InvalidArgument(
                f"{start!r} is not a start; use one of {', '.join(sorted(_WORDS))}"
            )
        return _WORDS[start]
    if isinstance(start, datetime):
        return Start(StartAt.TIMESTAMP, micros(start))
    if isinstance(start, Mapping):
        if partition not in start:
            return EARLIEST
        return _offset(start[partition])
    return _offset(start)


def _offset(offset: int) -> Start:
    if offset < 0:
        raise InvalidArgument(f"an offset must not be negative: {offset}")
    return Start(StartAt.OFFSET, offset)
