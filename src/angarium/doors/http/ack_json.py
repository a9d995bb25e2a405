"""What became of records that were published, as JSON tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from angarium.doors.http.problems import told
from angarium.doors.intake.acks import error_of_ack
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from angarium import api

MODES: Final = ("consistent", "eventual", "performance")
ModeName = Annotated[str, Meta(pattern=f"^({'|'.join(MODES)})$")]


class Ack(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What became of a record, or of records of one partition that were packed together."""

    topic: str
    partition: int
    mode: ModeName
    offset: int | UnsetType = UNSET
    """Of the (first) record; none in mode performance, which stores nothing."""
    next_offset: int | UnsetType = UNSET
    append_time_us: int | UnsetType = UNSET
    term: int | UnsetType = UNSET
    provisional: bool = False
    """Mode eventual: the offset holds as long as this leader's log does."""
    duplicate: bool = False
    """It had been stored before; this is where."""
    id: str = ""
    """Mode performance: the leader's epoch and a counter."""
    subscribers: int | UnsetType = UNSET
    """Mode performance: how many it was handed to."""
    error: dict[str, Any] | UnsetType = UNSET
    """Why these records were refused, while others were not."""


class Published(msgspec.Struct, frozen=True):
    """What became of records that were published together."""

    acks: list[Ack]
    """Records of one partition keep their order; the offsets of an ack are those of the next ones
    of the request that went to its partition."""
    partitions: list[int]
    """Each record's partition, in the order of the request."""


def mode_of(name: str | None) -> DeliveryMode | None:
    """Return the delivery mode; its name has been checked."""
    return None if name is None else DeliveryMode(MODES.index(name))


def ack_out(ack: api.Ack, *, row: int | None = None) -> Ack:
    """Return what became of a batch, or of the record at one `row` of it."""
    start, end = ack.span(row)
    return Ack(
        topic=ack.topic,
        partition=ack.partition,
        mode=MODES[ack.mode],
        offset=UNSET if start is None else start,
        next_offset=UNSET if end is None else end,
        append_time_us=UNSET if ack.append_time is None else ack.append_time,
        term=UNSET if ack.term is None else ack.term,
        provisional=ack.provisional,
        duplicate=ack.duplicate,
        id=ack.id,
        subscribers=ack.subscribers if ack.mode is DeliveryMode.PERFORMANCE else UNSET,
        error=told(error_of_ack(ack)) if ack.code else UNSET,
    )
