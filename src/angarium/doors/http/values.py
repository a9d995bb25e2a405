"""What travels as JSON: requests, answers and records, and what each field means.

The OpenAPI document is made from these very classes, so it cannot say anything else than what is
accepted and answered. Bytes that are text travel as text; others as base64 in a field beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from angarium.api import ClusterStatus, NodeInfo, PartitionInfo, TopicConfig, TopicInfo
from angarium.doors.http.forms import answer_form, settings_form

MODES: Final = ("consistent", "eventual", "performance")
INT64_MAX: Final = (1 << 63) - 1
RECORDS_MAX: Final = 100_000
"""Records of one request. More are refused."""

Count = Annotated[int, Meta(ge=0, le=INT64_MAX)]
Partition = Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]
NodeNumber = Annotated[int, Meta(ge=1, le=(1 << 15) - 1)]
ModeName = Annotated[str, Meta(pattern="^(consistent|eventual|performance)$")]


class NewHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A header of a record."""

    name: str
    value: str | None = None
    value_base64: str | None = None
    """For values that are not text."""


class NewRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A record to publish. Without `value` and `value_base64` its value is null."""

    value: Any = None
    """Text is stored as it is; any other JSON value as its JSON text, with content-type."""
    value_base64: str | None = None
    """For values that are not text."""
    key: str | None = None
    key_base64: str | None = None
    headers: list[NewHeader] = []
    timestamp_us: Count = 0
    """The producer's time, in microseconds since 1970; 0: none."""
    expires_at_us: Count = 0
    """When the record is gone; 0: never."""
    deliver_at_us: Count = 0
    """Not before which groups are given it; 0: at once."""
    expires_after_ms: Annotated[int, Meta(ge=0, le=1 << 53)] = 0
    """The same, counted from now."""
    deliver_after_ms: Annotated[int, Meta(ge=0, le=1 << 53)] = 0
    """The same, counted from now."""


class NewRecords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Records to publish together."""

    records: Annotated[list[NewRecord], Meta(min_length=1, max_length=RECORDS_MAX)]


class RecordHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """A header of a record."""

    name: str
    value: str | UnsetType | None = UNSET
    value_base64: str | UnsetType = UNSET
    """Instead of `value`, if that is not text."""


class RecordOut(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A record. Null values and keys are null; a record without an offset was stored nowhere."""

    partition: int
    offset: int | UnsetType = UNSET
    key: str | UnsetType | None = UNSET
    key_base64: str | UnsetType = UNSET
    value: str | UnsetType | None = UNSET
    value_base64: str | UnsetType = UNSET
    """Instead of `value`, if that is not text or base64 was asked for."""
    headers: list[RecordHeader] | UnsetType = UNSET
    timestamp_us: int = 0
    append_time_us: int = 0
    expires_at_us: int | UnsetType = UNSET
    deliver_at_us: int | UnsetType = UNSET
    topic: str | UnsetType = UNSET
    """Where several topics come together."""


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


class Fetched(msgspec.Struct, frozen=True):
    """Committed records, in the order of their offsets."""

    records: list[RecordOut]
    next_offset: int
    """Where to go on."""
    start_offset: int
    """The first offset that can still be read."""
    end_offset: int
    """The end of what is committed, as far as the answering node knows."""


class FoundOffset(msgspec.Struct, frozen=True):
    """An offset."""

    offset: int


if TYPE_CHECKING:
    TopicSettings = msgspec.Struct
else:
    TopicSettings = settings_form(
        "TopicSettings",
        TopicConfig,
        'What can be chosen about a topic; null stands for "no limit".',
    )


class NewTopic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A topic to make."""

    name: str
    partitions: Annotated[int, Meta(ge=1, le=1_024)] = 1
    config: TopicSettings = TopicSettings()


class TopicChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What shall be different about a topic; what is absent stays."""

    partitions: Annotated[int, Meta(ge=1, le=1_024)] | None = None
    """More than now."""
    config: TopicSettings | None = None
    """All settings anew: those left out take their defaults."""


PartitionOut = answer_form("PartitionOut", PartitionInfo)
TopicOut = answer_form("TopicOut", TopicInfo, created_at=None, created_at_us=int)


class Topics(msgspec.Struct, frozen=True):
    """All topics, by name."""

    topics: list[TopicOut]  # type: ignore[valid-type]


NodeOut = answer_form("NodeOut", NodeInfo)
Cluster = answer_form("Cluster", ClusterStatus)


class Drain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a node shall be emptied."""

    draining: bool = True


class Handover(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who shall lead."""

    to: NodeNumber


class LevelWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The feature level to work at; null: the highest that every node knows."""

    level: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


class Level(msgspec.Struct, frozen=True):
    """The feature level."""

    level: int


class ProducerName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who wants to publish; null: nobody in particular."""

    name: str | None = None


class ProducerOut(msgspec.Struct, frozen=True):
    """An idempotent producer's identity."""

    id: int
    epoch: int


class ProblemOut(msgspec.Struct, frozen=True, rename={"kind": "type"}):
    """Why a request failed; RFC 9457. Further members say more where more is known."""

    kind: str
    title: str
    status: int
    detail: str
    code: str
    """Stable, and the same through every door."""
    retriable: bool
    """Whether the same request may succeed later."""
    fault: str
    """Who has to do something about it: caller, cluster or data."""
