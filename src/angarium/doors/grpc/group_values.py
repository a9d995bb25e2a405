"""The contract's values about groups, to and from protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.api import ConsumeRequest, GroupConfig, Held, Place, Settlement, Start, Verb
from angarium.doors.grpc.refusals import error_message
from angarium.doors.grpc.values import partition_of, start_of
from angarium.errors import InvalidArgument
from angarium.ids import Index
from angarium.kinds import Behind, GroupKind, Poison
from angarium.proto.v1 import broker_pb2 as pb
from angarium.wire.error_codec import Failure, error_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.api import GroupInfo, GroupMember, GroupPosition, Settled

CREDIT_DEFAULT: Final = 1_000
"""Records on loan at a time, where a consumer does not say."""

_DEFAULTS: Final = GroupConfig()
_KINDS: Final[tuple[GroupKind | None, ...]] = (None, *GroupKind)
_POISONS: Final = (Poison.DEAD_LETTER, *Poison)
_BEHINDS: Final = (Behind.ERROR, *Behind)
"""By number in protobuf, where 0 means that nothing was said."""


# --- inwards ---------------------------------------------------------------------------------


def consume_request_of(opening: pb.SubscribeRequest.Open) -> ConsumeRequest:
    """Return how somebody wants to take part in a group."""
    if opening.interests:
        raise InvalidArgument("a consumer of a group names topics, and has no interests")
    wish = opening.group
    start = start_of(wish.start) if wish.HasField("start") else Start(Place.EARLIEST)
    return ConsumeRequest(
        group=wish.group,
        topics=tuple(wish.topics),
        kind=kind_of(wish.kind),
        start=start,
        config=group_config_of(wish.config) if wish.HasField("config") else None,
        member=wish.member,
        credit=opening.credit if opening.HasField("credit") else CREDIT_DEFAULT,
        held=tuple(
            Held(one.topic, partition_of(one.partition), tuple(one.ranges), one.attempt)
            for one in wish.held
        ),
    )


def kind_of(number: int) -> GroupKind | None:
    """Return a group's kind, or None where none was named."""
    if not 0 <= number < len(_KINDS):
        raise InvalidArgument(f"there is no kind of group {number}")
    return _KINDS[number]


def group_config_of(config: pb.GroupConfig) -> GroupConfig:
    """Return a group's settings; what is absent has its default."""
    if config.poison >= len(_POISONS) or config.behind >= len(_BEHINDS):
        raise InvalidArgument("there is no such choice for a poison record, or for falling behind")

    def given(name: str) -> int:
        found: int = getattr(config if config.HasField(name) else _DEFAULTS, name)
        return found

    return GroupConfig(
        max_attempts=given("max_attempts"),
        ack_timeout_ms=given("ack_timeout_ms"),
        backoff_min_ms=given("backoff_min_ms"),
        backoff_max_ms=given("backoff_max_ms"),
        dead_letter_topic=(
            config.dead_letter_topic
            if config.HasField("dead_letter_topic")
            else _DEFAULTS.dead_letter_topic
        ),
        poison=_POISONS[config.poison],
        behind=_BEHINDS[config.behind],
    )


def settlements_of(messages: Iterable[pb.Settlement]) -> tuple[Settlement, ...]:
    """Return what a consumer says."""
    return tuple(map(_settlement_of, messages))


def _settlement_of(message: pb.Settlement) -> Settlement:
    if not 1 <= message.verb <= len(Verb):
        raise InvalidArgument("a settlement says what became of the records: its verb")
    return Settlement(
        message.topic,
        partition_of(message.partition),
        Verb(message.verb - 1),
        tuple(message.ranges),
        message.delay_ms if message.HasField("delay_ms") else None,
        message.reason,
        message.cumulative,
        Index(message.generation) if message.HasField("generation") else None,
    )


# --- outwards --------------------------------------------------------------------------------


def settled_message(settled: Settled) -> pb.Settled:
    """Return what became of a settlement."""
    message = pb.Settled(records=settled.records)
    if settled.code:
        error = error_of(Failure(settled.code, settled.message))
        message.error.CopyFrom(error_message(error))
    return message


def group_message(group: GroupInfo) -> pb.GroupInfo:
    """Return a group."""
    return pb.GroupInfo(
        name=group.name,
        kind=group.kind + 1,  # type: ignore[arg-type]  # any number is taken, the stub wants names
        config=group_config_message(group.config),
        paused=group.paused,
        members=map(_member_message, group.members),
        positions=map(_position_message, group.positions),
    )


def group_config_message(config: GroupConfig) -> pb.GroupConfig:
    """Return a group's settings."""
    return pb.GroupConfig(
        max_attempts=config.max_attempts,
        ack_timeout_ms=config.ack_timeout_ms,
        backoff_min_ms=config.backoff_min_ms,
        backoff_max_ms=config.backoff_max_ms,
        dead_letter_topic=config.dead_letter_topic,
        poison=config.poison + 1,  # type: ignore[arg-type]
        behind=config.behind + 1,  # type: ignore[arg-type]
    )


def _member_message(member: GroupMember) -> pb.GroupMember:
    return pb.GroupMember(
        name=member.name,
        node=member.node,
        partitions=[
            pb.TopicPartition(topic=topic, partition=partition)
            for topic, partition in member.partitions
        ],
        pending=member.pending,
    )


def _position_message(position: GroupPosition) -> pb.GroupPosition:
    return pb.GroupPosition(
        topic=position.topic,
        partition=position.partition,
        floor=position.floor,
        start_offset=position.start_offset,
        end_offset=position.end_offset,
        acked_above=position.acked_above,
        pending=position.pending,
        retrying=position.retrying,
        lag=position.lag,
        lag_ms=position.lag_ms,
        is_behind=position.is_behind,
        owner=position.owner,
    )
