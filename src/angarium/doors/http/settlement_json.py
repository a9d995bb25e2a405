"""What a consumer says about records on loan, in a REST request or over a WebSocket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from angarium.api import Settlement, Verb
from angarium.doors.http.forms import words_pattern
from angarium.doors.http.record_json import Count, Partition
from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    from angarium import api

VerbName = Annotated[str, Meta(pattern=words_pattern(Verb))]


class SettlementIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a consumer says about records on loan to it."""

    topic: str
    partition: Partition
    verb: VerbName
    ranges: Annotated[list[Count], Meta(min_length=2, max_length=100_000)]
    """First offset, past the last offset, and so on, ascending."""
    delay_ms: Annotated[int, Meta(ge=0, le=1 << 40)] | None = None
    reason: Annotated[str, Meta(max_length=4_096)] = ""
    cumulative: bool = False


class SettledOut(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one settlement."""

    records: int
    code: str = ""
    message: str = ""


def settlement_of(given: SettlementIn) -> Settlement:
    if len(given.ranges) % 2:
        raise InvalidArgument("ranges come in pairs: first offset, past the last offset")
    return Settlement(
        topic=given.topic,
        partition=given.partition,
        verb=Verb[given.verb.upper()],
        ranges=tuple(given.ranges),
        delay_ms=given.delay_ms,
        reason=given.reason,
        cumulative=given.cumulative,
    )


def settled_out(one: api.Settled) -> SettledOut:
    return SettledOut(records=one.records, code=one.code, message=one.message)
