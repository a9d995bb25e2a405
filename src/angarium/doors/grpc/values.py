"""The contract's values, to and from protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec
from google.protobuf.message_factory import GetMessageClass

from angarium.api import Place, Start
from angarium.api.settings import settings_of
from angarium.doors.grpc.refusals import error_message
from angarium.doors.intake import NOBODY, Identity
from angarium.doors.intake.acks import error_of_ack, span
from angarium.errors import InvalidArgument
from angarium.ids import Epoch, ProducerId, Sequence
from angarium.modes import DeliveryMode
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

    from angarium.api import Ack

C = TypeVar("C", bound=msgspec.Struct)
M = TypeVar("M", bound="Message")
Shown: TypeAlias = "Callable[[Any], Any]"

_OTHER_NAMES: Final = {"cleanup": "compact"}
"""The one setting that has another type, and so another name, in protobuf: a boolean."""

_MODES: Final[tuple[DeliveryMode | None, ...]] = (None, *DeliveryMode)
"""By number in protobuf, where 0 means that none was named."""


# --- inwards ---------------------------------------------------------------------------------


def mode_of(number: int) -> DeliveryMode | None:
    """Return the delivery mode, or None where none was named."""
    if not 0 <= number < len(_MODES):
        raise InvalidArgument(f"there is no delivery mode {number}")
    return _MODES[number]


def wants_batches(format_number: int) -> bool:
    """Return whether whole batches are wanted rather than records."""
    if format_number == pb.FORMAT_BATCHES:
        return True
    if format_number not in (pb.FORMAT_UNSPECIFIED, pb.FORMAT_RECORDS):
        raise InvalidArgument(f"there is no format {format_number}")
    return False


def partition_of(number: int) -> int:
    """Return a partition's number; whether it exists is for the broker to say."""
    if number < 0:
        raise InvalidArgument(f"partitions are numbered from 0, so there is no {number}")
    return number


def start_of(start: pb.Start) -> Start:
    """Return where to begin; without a place, at the end."""
    match start.WhichOneof("place"):
        case "earliest":
            return Start(Place.EARLIEST)
        case "offset":
            return Start(Place.OFFSET, _not_negative("an offset", start.offset))
        case "timestamp_us":
            return Start(Place.TIMESTAMP, _not_negative("a time", start.timestamp_us))
        case _:
            return Start(Place.LATEST)


def identity_of(request: pb.PublishRequest | pb.PublishBatchRequest) -> Identity:
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
    return Identity(
        ProducerId(producer.id),
        Epoch(producer.epoch),
        Sequence(_not_negative("a sequence", producer.sequence)),
    )


def config_of(kind: type[C], message: pb.TopicConfig | pb.GroupConfig) -> C:
    """Return the settings of a topic or a group; what is absent has its default."""
    found: dict[str, Any] = {}
    for one in settings_of(kind):
        name = _OTHER_NAMES.get(one.name, one.name)
        value = getattr(message, name)
        if not one.words:
            if one.kind is bool or message.HasField(name):
                found[one.name] = value
        elif isinstance(value, bool):
            found[one.name] = one.words[value]
        elif value:
            if not 0 < value <= len(one.words):
                raise InvalidArgument(f"{one.name}: there is no {value}")
            found[one.name] = one.words[value - 1]
    return kind(**found)


def _not_negative(what: str, number: int) -> int:
    if number < 0:
        raise InvalidArgument(f"{what} is not negative, and {number} is")
    return number


# --- outwards --------------------------------------------------------------------------------


def ack_message(ack: Ack, *, place: int | None = None) -> pb.Ack:
    """Return what became of a batch, or of the record at one `place` in it."""
    offset, next_offset = span(ack, place)
    message = pb.Ack(
        mode=ack.mode + 1,  # type: ignore[arg-type]  # any number is taken, the stub wants names
        topic=ack.topic,
        partition=ack.partition,
        offset=offset,
        next_offset=next_offset,
        append_time_us=ack.append_time,
        term=ack.term,
    )
    # What is rare is not worth a keyword on every publish.
    if ack.provisional:
        message.provisional = True
    if ack.duplicate:
        message.duplicate = True
    if ack.id:
        message.id = ack.id
        message.subscribers = ack.subscribers
    if ack.code:
        message.error.CopyFrom(error_message(error_of_ack(ack)))
    return message


def message_of(kind: type[M], value: msgspec.Struct) -> M:
    """Return a struct of the contract as a message, whose fields have the same names."""
    way = _way(kind, type(value))
    return kind(**{name: shown(getattr(value, own)) for name, own, shown in way})


_WAYS: Final[dict[tuple[type[Message], type[msgspec.Struct]], list[tuple[str, str, Shown]]]] = {}


def _way(kind: type[Message], source: type[msgspec.Struct]) -> list[tuple[str, str, Shown]]:
    """Work out, once, which attribute goes into each field, and how."""
    known = _WAYS.get((kind, source))
    if known is None:
        own = {_OTHER_NAMES.get(one, one): one for one in source.__struct_fields__}
        known = _WAYS[kind, source] = [
            # Times have their unit in their names there.
            (one.name, own.get(one.name, one.name.removesuffix("_us")), _shown(one))
            for one in kind.DESCRIPTOR.fields
        ]
    return known


def _shown(field: Any) -> Shown:
    """Return how a field shows what the contract has."""
    if field.enum_type is not None:
        return lambda value: value + 1
    if field.message_type is None or field.message_type.GetOptions().map_entry:
        return _SHOWN_OTHERWISE.get(field.full_name, lambda value: value)
    kind = GetMessageClass(field.message_type)
    if kind in _SHOWN_OTHERWISE:
        return _SHOWN_OTHERWISE[kind]
    if field.is_repeated:
        return lambda some: [message_of(kind, one) for one in some]
    return lambda one: message_of(kind, one)


_SHOWN_OTHERWISE: Final[dict[object, Shown]] = {
    "angarium.v1.TopicConfig.compact": lambda cleanup: cleanup == "compact",
    # Nothing where they are not known: none at all is something else.
    pb.Nodes: lambda ids: None if ids is None else pb.Nodes(ids=ids),
    pb.TopicPartition: lambda some: [
        pb.TopicPartition(topic=topic, partition=partition) for topic, partition in some
    ],
}
