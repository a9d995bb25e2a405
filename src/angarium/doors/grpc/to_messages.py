"""What the contract answers, in protobuf. Fields have the same names in both."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from google.protobuf.message_factory import GetMessageClass

from angarium.doors.grpc.from_messages import OTHER_NAMES
from angarium.doors.grpc.grant_messages import word_number
from angarium.doors.grpc.quota_messages import quota_limit_messages
from angarium.doors.grpc.refusals import error_message
from angarium.doors.intake.acks import error_of_ack
from angarium.proto.v1 import broker_pb2 as pb
from angarium.wire.error_codec import Failure, error_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec
    from google.protobuf.message import Message

    from angarium.api import Ack, Settled
    from angarium.api.access import Grant

M = TypeVar("M", bound="Message")
Shown: TypeAlias = "Callable[[Any], Any]"


def ack_message(ack: Ack, *, row: int | None = None) -> pb.Ack:
    """Return what became of a batch, or of the record that is number `row` in it."""
    offset, next_offset = ack.span(row)
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


def settled_message(settled: Settled) -> pb.Settled:
    """Return what became of a settlement."""
    message = pb.Settled(records=settled.records)
    if settled.code:
        error = error_of(Failure(settled.code, settled.message))
        message.error.CopyFrom(error_message(error))
    return message


def responder(kind: type[M]) -> Callable[[Any], M]:
    """Return what makes a call's response of a result.

    A response with one field has the result in it; one with several has the result's own fields.
    """
    fields: list[Any] = list(kind.DESCRIPTOR.fields)
    if not fields:
        return lambda _: kind()
    if len(fields) > 1:
        return lambda result: message_of(kind, result)
    name, shown = fields[0].name, _shown(fields[0])
    return lambda result: kind(**{name: shown(result)})


def message_of(kind: type[M], value: msgspec.Struct) -> M:
    """Return a struct of the contract as a message, whose fields have the same names."""
    way = _way(kind, type(value))
    return kind(**{name: shown(getattr(value, own)) for name, own, shown in way})


_WAYS: Final[dict[tuple[type[Message], type[msgspec.Struct]], list[tuple[str, str, Shown]]]] = {}


def _way(kind: type[Message], source: type[msgspec.Struct]) -> list[tuple[str, str, Shown]]:
    """Work out, once, which attribute goes into each field, and how."""
    known = _WAYS.get((kind, source))
    if known is None:
        own = {OTHER_NAMES.get(one, one): one for one in source.__struct_fields__}
        known = _WAYS[kind, source] = [
            # Times have their unit in their names there.
            (one.name, own.get(one.name, one.name.removesuffix("_us")), _shown(one))
            for one in kind.DESCRIPTOR.fields
        ]
    return known


def _shown(field: Any) -> Shown:
    """Return how a field shows what the contract has."""
    if field.enum_type is not None:
        numbers = _numbers(field.enum_type)
        return lambda value: _choice_number(value, numbers)
    if field.message_type is None or field.message_type.GetOptions().map_entry:
        return _SHOWN_OTHERWISE.get(field.full_name, lambda value: value)
    kind = GetMessageClass(field.message_type)
    if kind in _SHOWN_OTHERWISE:
        return _SHOWN_OTHERWISE[kind]
    if field.is_repeated:
        return lambda some: [message_of(kind, one) for one in some]
    return lambda one: None if one is None else message_of(kind, one)


def _numbers(choice: Any) -> dict[str, int]:
    """Return the numbers of an enum by the words that settings have for them."""
    prefix = choice.values_by_number[0].name.removesuffix("UNSPECIFIED")
    words = ((one.name.removeprefix(prefix).lower(), one.number) for one in choice.values)
    return {word.replace("_", "-"): number for word, number in words}


def _choice_number(value: Any, numbers: dict[str, int]) -> int:
    """Return the number of a choice: protobuf counts from 1."""
    if isinstance(value, StrEnum):
        return word_number(value)
    return numbers[value] if isinstance(value, str) else int(value) + 1


def _grants_shown(grants: tuple[Grant, ...] | None) -> pb.Grants | None:
    if grants is None:
        return None
    return pb.Grants(grants=[message_of(pb.Grant, one) for one in grants])


_SHOWN_OTHERWISE: Final[dict[object, Shown]] = {
    "angarium.v1.TopicConfig.compact": lambda cleanup: cleanup == "compact",
    # Nothing where they are not known: none at all is something else.
    pb.Nodes: lambda ids: None if ids is None else pb.Nodes(ids=ids),
    pb.Grants: _grants_shown,
    pb.QuotaLimit: quota_limit_messages,
    pb.Settled: lambda some: map(settled_message, some),
    pb.TopicPartition: lambda some: [
        pb.TopicPartition(topic=topic, partition=partition) for topic, partition in some
    ],
}
