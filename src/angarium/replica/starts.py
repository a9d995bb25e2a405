"""Where a reader's start lies in a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api import StartAt
from angarium.ids import Micros, Offset

if TYPE_CHECKING:
    from angarium.api import Start
    from angarium.log.segments import PartitionLog


def offset_of(log: PartitionLog, start: Start) -> Offset:
    """Return where `start` lies; an offset that a reader names may be outside of the log."""
    match start.at:
        case StartAt.EARLIEST:
            return log.start_offset
        case StartAt.LATEST:
            return log.end_offset
        case StartAt.OFFSET:
            return Offset(start.value)
        case StartAt.TIMESTAMP:
            return log.offset_at(Micros(start.value))
