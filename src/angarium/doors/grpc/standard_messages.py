"""Messages of the services that come with gRPC: health and reflection.

They are declared here, in a pool of their own: a program that also has the packages which declare
them elsewhere would otherwise find them declared twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

if TYPE_CHECKING:
    from collections.abc import Mapping

Messages: TypeAlias = "Mapping[str, tuple[str, ...]]"
"""Fields by the names of messages: number, type (many, if it begins with `*`) and name; then, for
those of which a message has one at a time, the name that they share."""

_HEALTH: Final[Messages] = {
    "HealthCheckRequest": ("1 string service",),
    "HealthCheckResponse": ("1 ServingStatus status",),
}
_STATES: Final = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
_REFLECTION: Final[Messages] = {
    "ServerReflectionRequest": (
        "1 string host",
        "3 string file_by_filename message_request",
        "4 string file_containing_symbol message_request",
        "5 ExtensionRequest file_containing_extension message_request",
        "6 string all_extension_numbers_of_type message_request",
        "7 string list_services message_request",
    ),
    "ExtensionRequest": ("1 string containing_type", "2 int32 extension_number"),
    "ServerReflectionResponse": (
        "1 string valid_host",
        "2 ServerReflectionRequest original_request",
        "4 FileDescriptorResponse file_descriptor_response message_response",
        "5 ExtensionNumberResponse all_extension_numbers_response message_response",
        "6 ListServiceResponse list_services_response message_response",
        "7 ErrorResponse error_response message_response",
    ),
    "FileDescriptorResponse": ("1 *bytes file_descriptor_proto",),
    "ExtensionNumberResponse": ("1 string base_type_name", "2 *int32 extension_number"),
    "ListServiceResponse": ("1 *ServiceResponse service",),
    "ServiceResponse": ("1 string name",),
    "ErrorResponse": ("1 int32 error_code", "2 string error_message"),
}
REFLECTION_VERSIONS: Final = ("v1", "v1alpha")
"""The same in both, but for the name: clients ask for the newer one first."""


def _file(path: str, messages: Messages) -> descriptor_pb2.FileDescriptorProto:
    package = path.rpartition("/")[0].replace("/", ".")
    file = descriptor_pb2.FileDescriptorProto(name=path, package=package, syntax="proto3")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field in fields:
            _add_field(message, package, *field.split())
    return file


def _add_field(
    message: descriptor_pb2.DescriptorProto,
    package: str,
    number: str,
    kind: str,
    name: str,
    *of: str,
) -> None:
    proto = descriptor_pb2.FieldDescriptorProto
    label = proto.LABEL_REPEATED if kind.startswith("*") else proto.LABEL_OPTIONAL
    field = message.field.add(name=name, number=int(number), label=label)
    kind = kind.removeprefix("*")
    if kind.islower() or kind == "int32":
        field.type = proto.Type.Value(f"TYPE_{kind.upper()}")
    elif kind == "ServingStatus":
        field.type, field.type_name = proto.TYPE_ENUM, f".{package}.{message.name}.{kind}"
    else:
        field.type, field.type_name = proto.TYPE_MESSAGE, f".{package}.{kind}"
    if of:
        if not message.oneof_decl:
            message.oneof_decl.add(name=of[0])
        field.oneof_index = 0


def _add_method(file: Any, name: str, kinds: tuple[str, str], **streams: bool) -> None:
    method = file.service[0].method.add(name=name, **streams)
    method.input_type, method.output_type = [f".{file.package}.{kind}" for kind in kinds]


def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    health = _file("grpc/health/v1/health.proto", _HEALTH)
    states = health.message_type[1].enum_type.add(name="ServingStatus")
    for number, name in enumerate(_STATES):
        states.value.add(name=name, number=number)
    health.service.add(name="Health")
    kinds = ("HealthCheckRequest", "HealthCheckResponse")
    _add_method(health, "Check", kinds)
    _add_method(health, "Watch", kinds, server_streaming=True)
    pool.Add(health)
    for version in REFLECTION_VERSIONS:
        file = _file(f"grpc/reflection/{version}/reflection.proto", _REFLECTION)
        file.service.add(name="ServerReflection")
        kinds = ("ServerReflectionRequest", "ServerReflectionResponse")
        both = {"client_streaming": True, "server_streaming": True}
        _add_method(file, "ServerReflectionInfo", kinds, **both)
        pool.Add(file)
    return pool


POOL: Final = _pool()


def message_class(name: str) -> Any:
    """Return the class of a message by its full name."""
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(name))
