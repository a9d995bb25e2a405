"""What is said over a WebSocket, both ways. Every message is one JSON object with a `type`."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from angarium.doors.http.ack_json import ModeName
from angarium.doors.http.forms import words_pattern
from angarium.doors.http.record_json import Count, Encoding, NewRecord, Partition
from angarium.doors.http.settlement_json import SettlementIn, VerbName
from angarium.kinds import GroupKind
from angarium.security.credentials import AUTHORIZATION_CHARACTERS_MAX, authorization_of

Id = Annotated[str, Meta(max_length=128)]
KindName = Annotated[str, Meta(pattern=words_pattern(GroupKind))]
Credit = Annotated[int, Meta(ge=1, le=1_000_000)]


class _Said(
    msgspec.Struct, frozen=True, tag=str.lower, tag_field="type", forbid_unknown_fields=True
):
    """A message under an id of the client's choice; its `type` is its class's name."""

    id: Id


class Subscribe(_Said, frozen=True):
    """Send the records of a topic."""

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
    max_staleness_ms: Count | None = None
    """All that was committed so long ago has come, or the subscription ends with TOO_STALE."""
    at_least: Annotated[str, Meta(max_length=8_192)] | None = None
    """Offsets of receipts, as PARTITION:OFFSET with commas between them: up to there the leader is
    asked for what the nearest replica does not have yet."""


class Consume(_Said, frozen=True):
    """Take part in a group."""

    group: str
    topics: Annotated[list[str], Meta(min_length=1, max_length=100)]
    kind: KindName | None = None
    member: str = ""
    start: Annotated[str, Meta(pattern="^(latest|earliest)$")] = "earliest"
    credit: Credit = 1_000
    """Records that may be on loan at a time."""
    encoding: Encoding = "text"


class Settle(SettlementIn, frozen=True, kw_only=True, tag="settle", tag_field="type"):
    """Say what became of records on loan."""

    id: Id
    ranges: Annotated[list[Count], Meta(min_length=2, max_length=10_000)]
    verb: VerbName = "ack"


class MoreCredit(_Said, frozen=True, tag="credit"):
    """Let so many records more come; for a group, let so many be on loan."""

    records: Credit


class Unsubscribe(_Said, frozen=True):
    """Send nothing more; a member leaves its group."""


class Publish(_Said, frozen=True):
    """Publish a record."""

    topic: str
    record: NewRecord
    partition: Partition | None = None
    mode: ModeName | None = None


class Authenticate(_Said, frozen=True):
    """Say who one is: the first message, where no header could."""

    id: Id = ""
    token: Annotated[str, Meta(max_length=AUTHORIZATION_CHARACTERS_MAX)] | None = None
    user: Annotated[str, Meta(max_length=1_024)] | None = None
    password: Annotated[str, Meta(max_length=1_024)] | None = None

    def header(self) -> str:
        """Return the same as an `Authorization` header says it; raises `InvalidArgument`."""
        return authorization_of(token=self.token, user=self.user, password=self.password)

    def __repr__(self) -> str:
        return "Authenticate(…)"


Said: TypeAlias = Authenticate | Subscribe | Consume | Settle | MoreCredit | Unsubscribe | Publish

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
