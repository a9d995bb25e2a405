"""How what waits in a lane is packed: as few batches as possible share a call."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.doors.intake.outgoing import single_batch
from angarium.doors.intake.packing import cut
from angarium.errors import AngariumError

if TYPE_CHECKING:
    from collections import deque

    from angarium.doors.intake.lanes import Waiting
    from angarium.ids import Buffer

CALL_BYTES: Final = 2 << 20
"""About how many bytes one call to the broker carries; the rest waits for the next one."""


class Parcel(NamedTuple):
    """Publishes that share a batch, or one with batches of its own: settled together."""

    batches: tuple[Buffer, ...]
    waiting: list[Waiting]
    error: AngariumError | None = None
    """Why it is left out of the call after all."""


def packed(waiting: deque[Waiting], bytes_max: int) -> list[Parcel]:
    """Take what one call carries from the front: what has the first one's mode, in its order."""
    mode = waiting[0].mode
    if sum([one.size for one in waiting]) < CALL_BYTES and all(one.mode is mode for one in waiting):
        taken = list(waiting)
        waiting.clear()
    else:
        taken = []
        size = 0
        while waiting and size < CALL_BYTES and waiting[0].mode is mode:
            taken.append(waiting.popleft())
            size += taken[-1].size
    if None not in [one.record for one in taken]:
        return _sharing(taken, bytes_max)
    parcels: list[Parcel] = []
    for may_share, found in groupby(taken, lambda one: one.record is not None):
        some = list(found)
        parcels += _sharing(some, bytes_max) if may_share else map(alone, some)
    return parcels


def _sharing(some: list[Waiting], bytes_max: int) -> list[Parcel]:
    """Return records as parcels of one batch each."""
    if len(some) == 1:
        return [alone(some[0])]
    try:
        batches = cut([one.record for one in some if one.record is not None], bytes_max=bytes_max)
    except AngariumError:
        return list(map(alone, some))  # so that only the one that is wrong hears of it
    parcels: list[Parcel] = []
    at = 0
    for batch, count in batches:
        parcels.append(Parcel((batch,), some[at : at + count]))
        at += count
    return parcels


def alone(one: Waiting) -> Parcel:
    """Return a publish as a parcel of its own."""
    if one.record is None:
        return Parcel(one.batches, [one])
    try:
        return Parcel((single_batch(one.record),), [one])
    except AngariumError as error:
        return Parcel((), [one], error.with_traceback(None))
