"""What is said over a WebSocket, both ways. Every message is one JSON object with a `type`."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from angarium.doors.http.group_values import KindName, VerbName
from angarium.doors.http.reading import Encoding
from angarium.doors.http.values import Count, ModeName, NewRecord, Partition

Id = Annotated[str, Meta(max_length=128)]
Credit = Annotated[int, Meta(ge=1, le=1_000_000)]


class Subscribe(
    msgspec.Struct, frozen=True, tag="subscribe", tag_field="type", forbid_unknown_fields=True
):
    """Send the records of a topic under an id of the client's choice."""

    id: Id
    topic: str
    partition: Partition | None = None
    start: Annotated[str, Meta(pattern="^(live|earliest)$")] = "live"
    offset: Count | None = None
    since_us: Count | None = None
    position: Annotated[str, Meta(max_length=8_192)] | None = None
    """Go on after what came last: the `position` of a message of an earlier socket."""
    encoding: Encoding = "text"
    credit: Credit | None = None
    """Records that may be sent before `credit` gives more; without it, as fast as they are read."""


class Consume(
    msgspec.Struct, frozen=True, tag="consume", tag_field="type", forbid_unknown_fields=True
):
    """Take part in a group."""

    id: Id
    group: str
    topics: Annotated[list[str], Meta(min_length=1, max_length=100)]
    kind: KindName | None = None
    member: str = ""
    start: Annotated[str, Meta(pattern="^(latest|earliest)$")] = "earliest"
    credit: Credit = 1_000
    """Records that may be on loan at a time."""
    encoding: Encoding = "text"


class Settle(
    msgspec.Struct, frozen=True, tag="settle", tag_field="type", forbid_unknown_fields=True
):
    """Say what became of records on loan."""

    id: Id
    topic: str
    partition: Partition
    ranges: Annotated[list[Count], Meta(min_length=2, max_length=10_000)]
    """First offset, past the last offset, and so on, ascending."""
    verb: VerbName = "ack"
    delay_ms: Annotated[int, Meta(ge=0, le=1 << 40)] | None = None
    reason: Annotated[str, Meta(max_length=4_096)] = ""
    cumulative: bool = False


class MoreCredit(
    msgspec.Struct, frozen=True, tag="credit", tag_field="type", forbid_unknown_fields=True
):
    """Let so many records more come; for a group, let so many be on loan."""

    id: Id
    records: Credit


class Unsubscribe(
    msgspec.Struct, frozen=True, tag="unsubscribe", tag_field="type", forbid_unknown_fields=True
):
    """Send nothing more under an id; a member leaves its group."""

    id: Id


class Publish(
    msgspec.Struct, frozen=True, tag="publish", tag_field="type", forbid_unknown_fields=True
):
    """Publish a record."""

    id: Id
    topic: str
    record: NewRecord
    partition: Partition | None = None
    mode: ModeName | None = None


Said: TypeAlias = Subscribe | Consume | Settle | MoreCredit | Unsubscribe | Publish

decoder: Final[msgspec.json.Decoder[Said]] = msgspec.json.Decoder(Said, float_hook=Decimal)


class _Named(msgspec.Struct, frozen=True):
    id: Id


_named: Final = msgspec.json.Decoder(_Named)


def id_in(message: str) -> str:
    """Return the id of a message that is otherwise wrong; empty if it has none."""
    try:
        return _named.decode(message).id
    except (msgspec.MsgspecError, RecursionError):
        return ""
