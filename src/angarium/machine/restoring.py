"""Whether batches from a backup fit the end of a partition. Pure, so every replica judges alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from angarium.batch import TIME_MAX, split
from angarium.errors import InvalidBatch, OffsetOutOfRange
from angarium.machine.batch_fields import NUMBERING_FIELDS
from angarium.machine.outcomes import Refused, oversized, refused
from angarium.machine.partition_limits import OFFSET_MAX, RESTORED_AHEAD_US_MAX, RESTORED_GAP_MAX

if TYPE_CHECKING:
    from angarium.machine.commands import Restore


class Restorable(NamedTuple):
    """Batches that follow on each other."""

    batches: tuple[memoryview, ...]
    end: int
    """Where the last one ends; where the partition ends if there is none."""
    latest_time: int
    """When the last one was appended; 0 if there is none."""


def restorable(command: Restore, *, base: int) -> Restorable | Refused:
    """Return what a command brings to a partition that ends at `base`, or why it cannot."""
    end, latest = base, 0
    try:
        batches = split(command.batches)
    except InvalidBatch as error:
        return refused(InvalidBatch, str(error))
    for batch in batches:
        first, time, _, span, *_ = NUMBERING_FIELDS.unpack_from(batch)
        # Exactly where the partition ends: a request that comes twice is refused the second time,
        # and nothing is put behind what others have published meanwhile.
        if first != end:
            said = f"a batch of offset {first} cannot be restored where the partition ends at {end}"
            return refused(OffsetOutOfRange, said)
        latest_allowed = min(command.time + RESTORED_AHEAD_US_MAX, TIME_MAX)
        if not span or not latest < time <= latest_allowed:
            said = "has no records, or no time, or was appended later than it is now"
            return refused(InvalidBatch, f"the batch at {first} {said}")
        end, latest = end + span, time
    past, start = command.next_offset, command.start_offset
    if not end <= past <= OFFSET_MAX or not 0 <= start <= past:
        return refused(OffsetOutOfRange, f"[{start}, {past}) does not hold what ends at {end}")
    if past - end > RESTORED_GAP_MAX:
        return oversized("RESTORED_GAP_MAX", f"{past - end} offsets cannot be left empty at once")
    return Restorable(tuple(batches), end, latest)
