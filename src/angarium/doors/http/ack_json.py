"""What became of records that were published, as JSON tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from angarium.doors.http.problems import told
from angarium.doors.http.record_json import INT64_MAX
from angarium.doors.intake.acks import error_of_ack
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from angarium import api
    from angarium.doors.intake import Placed

OFFSETS: Final = b'"offset":%d,"next_offset":%d'
"""How an answer tells where a record is."""

_encode: Final = msgspec.json.Encoder().encode

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


class AckWriter:
    """Writes down what became of single records.

    Those that travelled together are acknowledged together: what they are told differs by an
    offset, so that the rest is written once.
    """

    def __init__(self) -> None:
        self._ack: api.Ack | None = None
        self._words: tuple[bytes, bytes] | None = None
        self._whole = b""
        """What all are told alike: where nothing was stored they have no offsets."""

    def written(self, placed: Placed) -> bytes:
        """Return what is told about a record, in JSON."""
        ack, row = placed.ack, placed.row
        if ack is not self._ack:
            self._ack, self._words = ack, answer_words(ack)
            self._whole = _encode(ack_out(ack)) if ack.base_offset is None else b""
        if self._whole:
            return self._whole
        if self._words is None or ack.base_offset is None:
            return _encode(ack_out(ack, row=row))
        offset = ack.base_offset + row
        before, after = self._words
        return b"".join((before, OFFSETS % (offset, offset + 1), after))


def answer_words(ack: api.Ack) -> tuple[bytes, bytes] | None:
    """Return what is told about a record of a batch, before its offset and after the next one.

    The encoder itself writes it, with offsets that no record has; no name of a topic can look like
    them, for it has no quotes. None where there is no offset.
    """
    if ack.base_offset is None or ack.next_offset is None:
        return None
    shown = msgspec.structs.replace(ack_out(ack), offset=INT64_MAX, next_offset=INT64_MAX)
    before, found, after = _encode(shown).partition(OFFSETS % (INT64_MAX, INT64_MAX))
    return (before, after) if found else None
