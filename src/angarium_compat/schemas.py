"""Protobuf schemas that must not share the default pool: the profiles use the same names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.protobuf.message import Message

_TYPES: Final = {
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
    "uint64": descriptor_pb2.FieldDescriptorProto.TYPE_UINT64,
}
_MAP: Final = "map<string,"


@dataclass(frozen=True, slots=True)
class Method:
    """A call: what it takes and returns, and which of the two is a stream."""

    request: str
    response: str
    client_streams: bool = False
    server_streams: bool = False


class Schema:
    """One proto file, in a pool of its own."""

    def __init__(
        self,
        *,
        file: str,
        package: str,
        service: str,
        messages: Mapping[str, Sequence[tuple[int, str, str]]],
        methods: Mapping[str, Method],
        enums: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Build it. A message's fields are (number, name, type).

        A type is a scalar's or an enum's name, `repeated T`, or `map<string,T>` with a scalar T.
        """
        proto = descriptor_pb2.FileDescriptorProto(name=file, package=package, syntax="proto3")
        for name, values in (enums or {}).items():
            enum = proto.enum_type.add(name=name)
            for number, value in enumerate(values):
                enum.value.add(name=value, number=number)
        for name, fields in messages.items():
            message = proto.message_type.add(name=name)
            for number, field, kind in fields:
                _add_field(message, number, field, kind, package=package)
        described = proto.service.add(name=service)
        for name, method in methods.items():
            described.method.add(
                name=name,
                input_type=f".{package}.{method.request}",
                output_type=f".{package}.{method.response}",
                client_streaming=method.client_streams,
                server_streaming=method.server_streams,
            )
        self.pool = descriptor_pool.DescriptorPool()
        self.pool.Add(proto)
        self.service = f"{package}.{service}"
        self.methods = dict(methods)
        self._classes: dict[str, type[Message]] = {
            name: message_factory.GetMessageClass(
                self.pool.FindMessageTypeByName(f"{package}.{name}")
            )
            for name in messages
        }

    def __getitem__(self, name: str) -> Any:
        """Return the class of a message."""
        return self._classes[name]


def _add_field(
    message: descriptor_pb2.DescriptorProto, number: int, name: str, kind: str, *, package: str
) -> None:
    if kind.startswith(_MAP):
        _add_map(message, number, name, kind.removeprefix(_MAP).removesuffix(">"), package=package)
        return
    label = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
    if kind.startswith("repeated "):
        label = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
        kind = kind.removeprefix("repeated ")
    field = message.field.add(name=name, number=number, label=label)
    if kind in _TYPES:
        field.type = _TYPES[kind]
    else:
        field.type = descriptor_pb2.FieldDescriptorProto.TYPE_ENUM
        field.type_name = f".{package}.{kind}"


def _add_map(
    message: descriptor_pb2.DescriptorProto, number: int, name: str, kind: str, *, package: str
) -> None:
    """Add a map as protoc does: a repeated message of pairs, marked as the entry of a map."""
    entry_name = f"{name.capitalize()}Entry"
    entry = message.nested_type.add(name=entry_name)
    entry.options.map_entry = True
    _add_field(entry, 1, "key", "string", package=package)
    _add_field(entry, 2, "value", kind, package=package)
    message.field.add(
        name=name,
        number=number,
        label=descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED,
        type=descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE,
        type_name=f".{package}.{message.name}.{entry_name}",
    )
