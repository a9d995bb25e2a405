"""What callers say in protobuf, as values of the contract."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from angarium.api import (
    Checkpoint,
    ConsumeRequest,
    GroupConfig,
    Held,
    Settlement,
    Start,
    StartAt,
    TopicConfig,
    Verb,
)
from angarium.api.settings import settings_of
from angarium.doors.grpc.grant_messages import (
    grant_of,
    grants_of,
    resource_kind_of,
    role_names,
    subject_kind_of,
)
from angarium.doors.grpc.quota_messages import quota_kinds_of, quota_limits_of, quota_subject_of
from angarium.doors.intake import NOBODY, ProducerIdentity
from angarium.errors import InvalidArgument
from angarium.ids import Epoch, Index, Offset, ProducerId, Sequence
from angarium.kinds import GroupKind
from angarium.modes import DeliveryMode
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from enum import IntEnum

    from google.protobuf.message import Message

    Reader: TypeAlias = Callable[[Any], Any]
    """Reads one field of a request."""

C = TypeVar("C", TopicConfig, GroupConfig)
E = TypeVar("E", bound="IntEnum")

OTHER_NAMES: Final = {"cleanup": "compact"}
"""The one setting that has another type, and so another name, in protobuf: a boolean."""

_MODES: Final = tuple(DeliveryMode)

CREDIT_DEFAULT: Final = 1_000
"""Records on loan at a time, where a consumer does not say."""


# --- single values --------------------------------------------------------------------------


def choice_of(kind: type[E], number: int, *, what: str) -> E | None:
    """Return a choice, or None where none was made: protobuf has 0 for that, and counts from 1."""
    if not 0 <= number <= len(kind):
        raise InvalidArgument(f"there is no {what} {number}")
    return kind(number - 1) if number else None


def mode_of(number: int) -> DeliveryMode | None:
    """Return the delivery mode, or None where none was named."""
    if 0 < number <= len(_MODES):
        return _MODES[number - 1]
    return choice_of(DeliveryMode, number, what="delivery mode")


def wants_batches(format_number: int) -> bool:
    """Return whether whole batches are wanted rather than records."""
    if format_number not in pb.Format.values():
        raise InvalidArgument(f"there is no format {format_number}")
    return format_number == pb.FORMAT_BATCHES


def partition_of(number: int) -> int:
    """Return a partition's number; whether it exists is for the broker to say."""
    if number < 0:
        raise InvalidArgument(f"partitions are numbered from 0, so there is no {number}")
    return number


def start_of(start: pb.Start) -> Start:
    """Return where to begin; where nothing is said, at the end."""
    match start.WhichOneof("place"):
        case "earliest":
            return Start(StartAt.EARLIEST)
        case "offset":
            return Start(StartAt.OFFSET, _not_negative("an offset", start.offset))
        case "timestamp_us":
            return Start(StartAt.TIMESTAMP, _not_negative("a time", start.timestamp_us))
        case _:
            return Start(StartAt.LATEST)


def identity_of(request: pb.PublishRequest | pb.PublishBatchRequest) -> ProducerIdentity:
    """Return who publishes; nobody in particular where the request does not say."""
    if not request.HasField("producer"):
        return NOBODY
    if not request.HasField("partition"):
        raise InvalidArgument(
            "a producer's sequence is counted per partition: name the partition, too"
        )
    producer = request.producer
    if producer.id <= 0:
        raise InvalidArgument("producer ids start at 1; OpenProducer issues them")
    return ProducerIdentity(
        ProducerId(producer.id),
        Epoch(producer.epoch),
        Sequence(_not_negative("a sequence", producer.sequence)),
    )


def _not_negative(what: str, number: int) -> int:
    if number < 0:
        raise InvalidArgument(f"{what} is not negative, and {number} is")
    return number


# --- topics and groups ----------------------------------------------------------------------


def config_of(kind: type[C], message: pb.TopicConfig | pb.GroupConfig) -> C:
    """Return the settings of a topic or a group; what is absent has its default."""
    found: dict[str, Any] = {}
    for one in settings_of(kind):
        name = OTHER_NAMES.get(one.name, one.name)
        value = getattr(message, name)
        if one.is_list:
            found[one.name] = tuple(value)
        elif not one.words:
            if one.kind is bool or message.HasField(name):
                found[one.name] = value
        elif isinstance(value, bool):
            found[one.name] = one.words[value]
        elif value:
            if not 0 < value <= len(one.words):
                raise InvalidArgument(f"{one.name}: there is no {value}")
            found[one.name] = one.words[value - 1]
    return kind(**found)


def consume_request_of(opening: pb.SubscribeRequest.Open) -> ConsumeRequest:
    """Return how somebody wants to take part in a group."""
    if opening.interests:
        raise InvalidArgument("a consumer of a group names topics, and has no interests")
    wish = opening.group
    return ConsumeRequest(
        group=wish.group,
        topics=tuple(wish.topics),
        kind=choice_of(GroupKind, wish.kind, what="kind of group"),
        start=start_of(wish.start) if wish.HasField("start") else Start(StartAt.EARLIEST),
        config=config_of(GroupConfig, wish.config) if wish.HasField("config") else None,
        member=wish.member,
        credit=opening.credit if opening.HasField("credit") else CREDIT_DEFAULT,
        held=tuple(
            Held(one.topic, partition_of(one.partition), tuple(one.ranges), one.attempt)
            for one in wish.held
        ),
    )


def settlements_of(messages: Iterable[pb.Settlement]) -> tuple[Settlement, ...]:
    """Return what a consumer says about records."""
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


def _checkpoints_of(
    messages: Iterable[pb.ReportCheckpointsRequest.Checkpoint],
) -> list[Checkpoint]:
    return [
        Checkpoint(one.topic, partition_of(one.partition), Offset(one.offset)) for one in messages
    ]


# --- whole requests -------------------------------------------------------------------------


def readers(request: type[Message]) -> dict[str, Reader]:
    """Return how each field of a request is read as an argument of the contract, by its name.

    Times have their unit in their names here.
    """
    return {one.name.removesuffix("_us"): _reader(one) for one in request.DESCRIPTOR.fields}


def _reader(field: Any) -> Reader:
    name = field.name
    kind = field.message_type or field.enum_type
    converted = _CONVERTED.get(name if kind is None else kind.name)
    # Without a start it is the end that is meant; anything else that is absent is None.
    may_be_none = field.has_presence and converted is not start_of

    def read(request: Any) -> Any:
        if may_be_none and not request.HasField(name):
            return None
        value = getattr(request, name)
        return value if converted is None else converted(value)

    return read


_CONVERTED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "partition": partition_of,
    "Start": start_of,
    "TopicConfig": partial(config_of, TopicConfig),
    "GroupConfig": partial(config_of, GroupConfig),
    "Settlement": settlements_of,
    "Checkpoint": _checkpoints_of,
    "ResourceKind": resource_kind_of,
    "SubjectKind": subject_kind_of,
    "Grant": grant_of,
    "Grants": grants_of,
    "Roles": role_names,
    "QuotaSubject": quota_subject_of,
    "QuotaKind": quota_kinds_of,
    "QuotaLimit": quota_limits_of,
}
"""Fields that are not taken as they are, by name, or by the name of their message or choice."""
