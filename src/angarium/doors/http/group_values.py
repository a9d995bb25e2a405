"""Groups as JSON, both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta

from angarium.api import Checkpoint, GroupConfig, Place, Settlement, Start, Verb
from angarium.doors.http.values import INT64_MAX, Count, Partition
from angarium.errors import InvalidArgument
from angarium.ids import Offset
from angarium.kinds import Behind, GroupKind, Poison

if TYPE_CHECKING:
    from angarium import api

KINDS: Final = ("stream", "queue", "key", "checkpoint")
POISONS: Final = ("dead-letter", "retry", "stop")
BEHINDS: Final = ("error", "jump")
VERBS: Final = ("ack", "nack", "release", "extend")

KindName = Annotated[str, Meta(pattern=f"^({'|'.join(KINDS)})$")]
Duration = Annotated[int, Meta(ge=1, le=1 << 40)]


class GroupSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What can be chosen about a group, but for its kind."""

    max_attempts: Annotated[int, Meta(ge=1, le=1_000_000)] = 5
    ack_timeout_ms: Duration = 30_000
    backoff_min_ms: Duration = 100
    backoff_max_ms: Duration = 60_000
    dead_letter_topic: str = "angarium.dlq"
    poison: Annotated[str, Meta(pattern=f"^({'|'.join(POISONS)})$")] = "dead-letter"
    """Stream groups: what happens to a record whose attempts are used up."""
    behind: Annotated[str, Meta(pattern=f"^({'|'.join(BEHINDS)})$")] = "error"
    """What happens when records that the group has not seen were trimmed away."""


class MemberOut(msgspec.Struct, frozen=True):
    """Who takes part in a group."""

    name: str
    node: int
    partitions: list[tuple[str, int]]
    pending: int


class PositionOut(msgspec.Struct, frozen=True):
    """Where a group stands in one partition."""

    topic: str
    partition: int
    floor: int
    start_offset: int
    end_offset: int
    acked_above: int
    pending: int
    retrying: int
    lag: int
    lag_ms: int
    is_behind: bool
    owner: str


class GroupOut(msgspec.Struct, frozen=True):
    """A group."""

    name: str
    kind: KindName
    config: GroupSettings
    paused: bool
    members: list[MemberOut]
    positions: list[PositionOut]
    lag: int
    """Records that are not settled, over all partitions; 0 in a list of groups."""


class Groups(msgspec.Struct, frozen=True):
    """All groups, by name, without their positions."""

    groups: list[GroupOut]


class Lag(msgspec.Struct, frozen=True):
    """How far a group is behind: what autoscalers ask."""

    group: str
    lag: int
    """Records that are not settled."""
    lag_ms: int
    """How long ago the oldest of them was appended."""
    positions: list[PositionOut]


class Seek(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a group shall go on."""

    to: Annotated[str, Meta(pattern="^(earliest|latest|offset|time)$")]
    value: Count = 0
    """The offset, or the time in microseconds since 1970."""
    topic: str | None = None
    partition: Partition | None = None
    dry_run: bool = False


class MoveOut(msgspec.Struct, frozen=True):
    """What a seek did, or would do, in one partition."""

    topic: str
    partition: int
    old_floor: int
    new_floor: int


class Moves(msgspec.Struct, frozen=True):
    """What a seek did, or would do."""

    moved: list[MoveOut]


class Pause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a group shall be handed nothing more."""

    paused: bool = True


class SettlementIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a consumer says about records on loan to it."""

    topic: str
    partition: Partition
    verb: Annotated[str, Meta(pattern=f"^({'|'.join(VERBS)})$")]
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
    return None if name is None else GroupKind(KINDS.index(name))


def group_config(settings: GroupSettings) -> GroupConfig:
    """Return a group's settings."""
    return GroupConfig(
        max_attempts=settings.max_attempts,
        ack_timeout_ms=settings.ack_timeout_ms,
        backoff_min_ms=settings.backoff_min_ms,
        backoff_max_ms=settings.backoff_max_ms,
        dead_letter_topic=settings.dead_letter_topic,
        poison=Poison(POISONS.index(settings.poison)),
        behind=Behind(BEHINDS.index(settings.behind)),
    )


def seek_start(seek: Seek) -> Start:
    """Return the place a group shall go to."""
    places = {"earliest": Place.EARLIEST, "latest": Place.LATEST, "offset": Place.OFFSET}
    return Start(places.get(seek.to, Place.TIMESTAMP), seek.value)


def settlement_of(given: SettlementIn) -> Settlement:
    """Return what a consumer says."""
    if len(given.ranges) % 2:
        raise InvalidArgument("ranges come in pairs: first offset, past the last offset")
    return Settlement(
        topic=given.topic,
        partition=given.partition,
        verb=Verb(VERBS.index(given.verb)),
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


def group_out(group: api.GroupInfo) -> GroupOut:
    """Return a group."""
    config = group.config
    return GroupOut(
        name=group.name,
        kind=KINDS[group.kind],
        config=GroupSettings(
            max_attempts=config.max_attempts,
            ack_timeout_ms=config.ack_timeout_ms,
            backoff_min_ms=config.backoff_min_ms,
            backoff_max_ms=config.backoff_max_ms,
            dead_letter_topic=config.dead_letter_topic,
            poison=POISONS[config.poison],
            behind=BEHINDS[config.behind],
        ),
        paused=group.paused,
        members=[
            MemberOut(
                name=one.name,
                node=one.node,
                partitions=list(one.partitions),
                pending=one.pending,
            )
            for one in group.members
        ],
        positions=[position_out(one) for one in group.positions],
        lag=group.lag,
    )


def position_out(one: api.GroupPosition) -> PositionOut:
    """Return where a group stands in a partition."""
    fields: dict[str, Any] = {name: getattr(one, name) for name in PositionOut.__struct_fields__}
    return PositionOut(**fields)
