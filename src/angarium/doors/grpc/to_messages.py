"""The contract's values about groups, to and from protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.api import ConsumeRequest, GroupConfig, Held, Place, Settlement, Start, Verb
from angarium.doors.grpc.refusals import error_message
from angarium.doors.grpc.values import config_of, partition_of, start_of
from angarium.errors import InvalidArgument
from angarium.ids import Index
from angarium.kinds import GroupKind
from angarium.proto.v1 import broker_pb2 as pb
from angarium.wire.error_codec import Failure, error_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.api import Settled

CREDIT_DEFAULT: Final = 1_000
"""Records on loan at a time, where a consumer does not say."""

_KINDS: Final[tuple[GroupKind | None, ...]] = (None, *GroupKind)
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
        config=config_of(GroupConfig, wish.config) if wish.HasField("config") else None,
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
