"""Where a reader's start lies in a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api import Place
from angarium.ids import Micros, Offset

if TYPE_CHECKING:
    from angarium.api import Start
    from angarium.log.segments import PartitionLog


def offset_of(log: PartitionLog, start: Start) -> Offset:
    """Return where `start` lies; an offset that a reader names may be outside of the log."""
    match start.place:
        case Place.EARLIEST:
            return log.start_offset
        case Place.LATEST:
            return log.end_offset
        case Place.OFFSET:
            return Offset(start.value)
        case Place.TIMESTAMP:
            return log.offset_at(Micros(start.value))
