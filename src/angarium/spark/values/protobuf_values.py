"""Protobuf values: messages of one type, by a descriptor set that `protoc` has written.

    protoc --include_imports --descriptor_set_out=shop.desc shop.proto

Messages are parsed in compiled code; their members are then gathered column by column. A member
that knows whether it was set is null when it was not; one that does not has its default. An enum is
the name of its value, a `google.protobuf.Timestamp` a timestamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError

from angarium.errors import InvalidArgument
from angarium.spark.values.codec import Undecodable
from angarium.spark.values.shapes import refuse_unknown_members

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.protobuf.descriptor import Descriptor

_TIMESTAMP: Final = "google.protobuf.Timestamp"
_TIMESTAMPS: Final = pa.timestamp("us", tz="UTC")
_KINDS: Final = {
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    # Spark has no unsigned numbers: the next larger one holds them all.
    FieldDescriptor.CPPTYPE_UINT32: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_ENUM: pa.string(),
}


class ProtobufValues:
    """Values that are messages of one type."""

    def __init__(self, descriptors: bytes, message: str) -> None:
        """Find `message` in a descriptor set; `InvalidArgument` if that cannot be."""
        pool = descriptor_pool.DescriptorPool()
        try:
            files = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
            for one in files.file:
                pool.Add(one)
            self._descriptor: Descriptor = pool.FindMessageTypeByName(message)
        except KeyError:
            raise InvalidArgument(f"the descriptor set has no message {message}") from None
        except (DecodeError, TypeError) as error:
            raise InvalidArgument(
                f"the descriptor set cannot be used: {error}; write it with protoc "
                "--include_imports --descriptor_set_out"
            ) from None
        self._class: Any = message_factory.GetMessageClass(self._descriptor)
        self._kind = _message_kind(self._descriptor, ())
        if not pa.types.is_struct(self._kind):
            raise InvalidArgument(f"{message} has one column type of its own, and no members")

    def kind(self) -> pa.DataType | None:
        """Return the Arrow type of a message."""
        return self._kind

    def check_readable(self, kind: Any) -> None:
        """Raise `InvalidArgument` unless the message has every member, of its type."""
        refuse_unknown_members(kind, self._kind, f"the message {self._descriptor.full_name}")

    def check_writable(self, kind: Any) -> None:
        """Raise `InvalidArgument` unless the message has every member, of its type."""
        self.check_readable(kind)

    def decoded(self, values: pa.Array, kind: pa.DataType) -> pa.Array:
        """Return the messages in a column of bytes."""
        try:
            messages = [None if one is None else self._parsed(one) for one in values.to_pylist()]
            # What the parser lets through may still fit no column: a time beyond all calendars, or
            # a text of proto2 that is not UTF-8.
            return _structs(messages, self._descriptor, kind)
        except (DecodeError, OverflowError, pa.ArrowInvalid) as error:
            raise Undecodable(f"it is no {self._descriptor.full_name} ({error})") from None

    def encoded(self, structs: pa.Array) -> pa.Array:
        """Return structs as messages in bytes; null stays null."""
        return pa.array([self._bytes(row) for row in structs.to_pylist()], pa.binary())

    def _parsed(self, value: bytes) -> Any:
        message = self._class.FromString(value)
        if not message.IsInitialized():
            lacking = ", ".join(message.FindInitializationErrors())
            raise DecodeError(f"it lacks {lacking}")
        return message

    def _bytes(self, row: dict[str, Any] | None) -> bytes | None:
        if row is None:
            return None
        message = self._class()
        try:
            _fill(message, row, self._descriptor)
            written: bytes = message.SerializeToString()
        except (EncodeError, TypeError, ValueError) as error:
            raise InvalidArgument(f"a row is no {self._descriptor.full_name}: {error}") from None
        return written


# --- types ----------------------------------------------------------------------------------------


def _message_kind(descriptor: Descriptor, within: tuple[str, ...]) -> pa.DataType:
    name = descriptor.full_name
    if name == _TIMESTAMP:
        return _TIMESTAMPS
    if name in within:
        raise InvalidArgument(f"the message {name} holds itself, which no column can")
    return pa.struct([(one.name, _kind(one, (*within, name))) for one in descriptor.fields])


def _kind(field: FieldDescriptor, within: tuple[str, ...]) -> pa.DataType:
    if _is_map(field):
        key, value = (_single_kind(one, within) for one in _entry(field))
        return pa.map_(key, value)
    single = _single_kind(field, within)
    return pa.list_(single) if field.is_repeated else single


def _single_kind(field: FieldDescriptor, within: tuple[str, ...]) -> pa.DataType:
    if field.message_type is not None:
        return _message_kind(field.message_type, within)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return pa.binary()
    return _KINDS.get(field.cpp_type, pa.string())


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _entry(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor]:
    """Return the key and the value of a map's entries."""
    assert field.message_type is not None, "a map is a list of messages"
    members = field.message_type.fields_by_name
    return members["key"], members["value"]


# --- messages to columns --------------------------------------------------------------------------


def _structs(messages: Sequence[Any], descriptor: Descriptor, kind: Any) -> pa.Array:
    """Return messages as a column of structs, a member of all of them at a time."""
    there = [message is not None for message in messages]
    # Members of a message that is not there are never seen; an empty one stands in for it.
    empty = message_factory.GetMessageClass(descriptor)()
    filled = [empty if message is None else message for message in messages]
    columns = [_member(filled, descriptor.fields_by_name[one.name], one.type) for one in kind]
    mask = None if all(there) else pa.array([not one for one in there])
    if not columns:
        return pa.array([{} if one else None for one in there], kind)
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=mask)


def _member(messages: Sequence[Any], field: FieldDescriptor, kind: Any) -> pa.Array:
    name = field.name
    if _is_map(field):
        _, value = _entry(field)
        maps = [getattr(message, name) for message in messages]
        keys = pa.array([key for one in maps for key in one], kind.key_type)
        items = _items([one[key] for one in maps for key in one], value, kind.item_type)
        built = pa.MapArray.from_arrays(_ends(maps), keys, items)
        return built.cast(kind)
    if field.is_repeated:
        lists = [getattr(message, name) for message in messages]
        items = _items([item for one in lists for item in one], field, kind.value_type)
        return pa.ListArray.from_arrays(_ends(lists), items).cast(kind)
    if field.has_presence:
        return _items(
            [getattr(one, name) if one.HasField(name) else None for one in messages], field, kind
        )
    return _items([getattr(one, name) for one in messages], field, kind)


def _items(items: Sequence[Any], field: FieldDescriptor, kind: Any) -> pa.Array:
    if field.message_type is not None:
        if field.message_type.full_name == _TIMESTAMP:
            micros = [
                None if one is None else one.seconds * 1_000_000 + one.nanos // 1000
                for one in items
            ]
            return pa.array(micros, pa.int64()).cast(kind)
        return _structs(items, field.message_type, kind)
    if field.enum_type is not None:
        names = {number: one.name for number, one in field.enum_type.values_by_number.items()}
        # A value that a newer schema has is its number, as in Protobuf's own JSON.
        return pa.array([None if one is None else names.get(one, str(one)) for one in items], kind)
    return pa.array(items, kind)


def _ends(parts: Sequence[Any]) -> pa.Array:
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + len(part))
    return pa.array(ends, pa.int32())


# --- rows to messages -----------------------------------------------------------------------------


def _fill(message: Any, row: dict[str, Any], descriptor: Descriptor) -> None:
    for name, value in row.items():
        if value is None:
            continue
        field = descriptor.fields_by_name[name]
        if _is_map(field):
            _fill_map(getattr(message, name), value, _entry(field)[1])
        elif field.message_type is not None:
            _fill_messages(message, field, value)
        elif field.is_repeated:
            getattr(message, name).extend(_scalar(field)(item) for item in value)
        else:
            setattr(message, name, _scalar(field)(value))


def _fill_messages(message: Any, field: FieldDescriptor, value: Any) -> None:
    assert field.message_type is not None, "only messages come here"
    target = getattr(message, field.name)
    for item in value if field.is_repeated else [value]:
        one = target.add() if field.is_repeated else target
        if not field.is_repeated:
            one.SetInParent()
        _fill_one(one, item, field.message_type)


def _fill_map(target: Any, pairs: Sequence[tuple[Any, Any]], field: FieldDescriptor) -> None:
    for key, item in pairs:
        if field.message_type is not None:
            _fill_one(target[key], item, field.message_type)
        else:
            target[key] = _scalar(field)(item)


def _fill_one(message: Any, item: Any, descriptor: Descriptor) -> None:
    if descriptor.full_name == _TIMESTAMP:
        message.FromDatetime(item)
    else:
        _fill(message, item, descriptor)


def _scalar(field: FieldDescriptor) -> Callable[[Any], Any]:
    """Return what makes a member's value of a row's."""
    if field.enum_type is not None:
        numbers = {name: one.number for name, one in field.enum_type.values_by_name.items()}
        return lambda name: numbers[name] if name in numbers else int(name)
    return int if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64 else _same


def _same(value: Any) -> Any:
    return value
