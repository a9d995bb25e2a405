"""Groups as JSON, both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from angarium.api import (
    Checkpoint,
    GroupConfig,
    GroupInfo,
    GroupMember,
    GroupPosition,
    Moved,
    Place,
    Settlement,
    Start,
    Verb,
)
from angarium.api.settings import word_of
from angarium.doors.http.forms import answer_form, settings_form, words_pattern, written
from angarium.doors.http.values import INT64_MAX, Count, Partition
from angarium.errors import InvalidArgument
from angarium.ids import Offset
from angarium.kinds import GroupKind

if TYPE_CHECKING:
    from angarium import api
    from angarium.doors.http.socket_messages import Settle

KindName = Annotated[str, Meta(pattern=words_pattern(GroupKind))]
VerbName = Annotated[str, Meta(pattern=words_pattern(Verb))]


if TYPE_CHECKING:
    GroupSettings = msgspec.Struct
else:
    GroupSettings = settings_form(
        "GroupSettings", GroupConfig, "What can be chosen about a group, but for its kind."
    )

MemberOut = answer_form("MemberOut", GroupMember)
PositionOut = answer_form("PositionOut", GroupPosition)
GroupOut = answer_form("GroupOut", GroupInfo, listed_lag=None, lag=int)
MoveOut = answer_form("MoveOut", Moved)


class Groups(msgspec.Struct, frozen=True):
    """All groups, by name, with their lag and without their positions."""

    groups: list[GroupOut]  # type: ignore[valid-type]


class Lag(msgspec.Struct, frozen=True):
    """How far a group is behind: what autoscalers ask."""

    group: str
    lag: int
    """Records that are not settled."""
    lag_ms: int
    """How long ago the oldest of them was appended."""
    positions: list[PositionOut]  # type: ignore[valid-type]


class Seek(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a group shall go on."""

    to: Annotated[str, Meta(pattern="^(earliest|latest|offset|time)$")]
    value: Count = 0
    """The offset, or the time in microseconds since 1970."""
    topic: str | None = None
    partition: Partition | None = None
    dry_run: bool = False


class Moves(msgspec.Struct, frozen=True):
    """What a seek did, or would do."""

    moved: list[MoveOut]  # type: ignore[valid-type]


class Pause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a group shall be handed nothing more."""

    paused: bool = True


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


class Settlements(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Records to settle for a member that is connected elsewhere."""

    member: str
    settlements: Annotated[list[SettlementIn], Meta(min_length=1, max_length=10_000)]


class SettledOut(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one settlement."""

    records: int
    code: str = ""
    message: str = ""


class AllSettled(msgspec.Struct, frozen=True):
    """What became of each settlement, in their order."""

    settled: list[SettledOut]


class CheckpointIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a group of kind checkpoint has come in a partition."""

    topic: str
    partition: Partition
    offset: Annotated[int, Meta(ge=0, le=INT64_MAX)]


class Checkpoints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a group of kind checkpoint has come."""

    checkpoints: Annotated[list[CheckpointIn], Meta(min_length=1, max_length=10_000)]


def kind_of(name: str | None) -> GroupKind | None:
    """Return a group's kind; its name has been checked."""
    return None if name is None else GroupKind[name.upper()]


def seek_start(seek: Seek) -> Start:
    """Return the place a group shall go to."""
    places = {"earliest": Place.EARLIEST, "latest": Place.LATEST, "offset": Place.OFFSET}
    return Start(places.get(seek.to, Place.TIMESTAMP), seek.value)


def settlement_of(given: SettlementIn | Settle) -> Settlement:
    """Return what a consumer says."""
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


def checkpoint_of(given: CheckpointIn) -> Checkpoint:
    """Return how far a group has come."""
    return Checkpoint(given.topic, given.partition, Offset(given.offset))


def settled_out(one: api.Settled) -> SettledOut:
    """Return what became of a settlement."""
    return SettledOut(records=one.records, code=one.code, message=one.message)


def group_out(group: api.GroupInfo) -> dict[str, Any]:
    """Return a group."""
    found: dict[str, Any] = msgspec.to_builtins(group)
    found |= {"kind": word_of(group.kind), "config": written(group.config), "lag": group.lag}
    del found["listed_lag"]
    return found
