"""The proto sources: documented to the last field, in one style, and what the code is made from."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf import descriptor_pb2
from grpc_tools import protoc
from scripts import proto

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.descriptor_pb2 import FileDescriptorProto

ROOT = Path(__file__).resolve().parents[4]
SOURCES = sorted((ROOT / "proto" / "angarium").rglob("*.proto"))

# Where parts of a file lie in its descriptor: field numbers of descriptor.proto, by which the
# source information names places.
MESSAGE, ENUM, SERVICE = 4, 5, 6
FIELD, NESTED, NESTED_ENUM, ONEOF = 2, 3, 4, 8
VALUE, METHOD = 2, 2

LOWER = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
UPPER = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")
CAMEL = re.compile(r"([A-Z][a-z0-9]+)+")

Place = tuple[int, ...]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> FileDescriptorProto:
    """The file as protoc understands it, with comments."""
    out = tmp_path_factory.mktemp("proto") / "set.binpb"
    status = protoc.main(
        [
            "protoc",
            f"--proto_path={ROOT / 'proto'}",
            "--include_source_info",
            f"--descriptor_set_out={out}",
            *(str(path) for path in SOURCES),
        ]
    )
    assert status == 0
    (file,) = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    return file


def messages(file: FileDescriptorProto) -> Iterator[tuple[Place, Any]]:
    """Yield every message, nested ones too, with its place."""
    waiting: list[tuple[Place, Any]] = [
        ((MESSAGE, number), one) for number, one in enumerate(file.message_type)
    ]
    while waiting:
        place, message = waiting.pop()
        yield place, message
        waiting += [
            ((*place, NESTED, number), one)
            for number, one in enumerate(message.nested_type)
            if not one.options.map_entry  # which protoc makes up itself
        ]


def parts(file: FileDescriptorProto) -> Iterator[tuple[str, Place]]:
    """Yield everything that has to be explained, with its place."""
    for place, message in messages(file):
        yield message.name, place
        for number, one in enumerate(message.field):
            yield f"{message.name}.{one.name}", (*place, FIELD, number)
        for number, one in enumerate(message.oneof_decl):
            if not one.name.startswith("_"):  # those of `optional` are protoc's own
                yield f"{message.name}.{one.name}", (*place, ONEOF, number)
    for number, enum in enumerate(file.enum_type):
        yield enum.name, (ENUM, number)
        for value_number, value in enumerate(enum.value):
            yield value.name, (ENUM, number, VALUE, value_number)
    for number, service in enumerate(file.service):
        yield service.name, (SERVICE, number)
        for method_number, method in enumerate(service.method):
            yield method.name, (SERVICE, number, METHOD, method_number)


def test_the_file_lies_where_its_package_says(described: FileDescriptorProto) -> None:
    assert described.package == "angarium.v1"
    assert described.name == "angarium/v1/broker.proto"
    assert described.syntax == "proto3"


def test_everything_is_explained_in_a_sentence(described: FileDescriptorProto) -> None:
    comments = {
        tuple(one.path): one.leading_comments.strip() for one in described.source_code_info.location
    }
    unexplained = [name for name, place in parts(described) if not comments.get(place)]
    assert unexplained == []
    for name, place in parts(described):
        assert comments[place].endswith("."), f"{name} is not explained in a sentence"


def test_names_follow_the_style_of_protobuf(described: FileDescriptorProto) -> None:
    for _, message in messages(described):
        assert CAMEL.fullmatch(message.name), message.name
        for field in message.field:
            assert LOWER.fullmatch(field.name), f"{message.name}.{field.name}"
        for oneof in message.oneof_decl:
            assert LOWER.fullmatch(oneof.name.removeprefix("_")), oneof.name
    for service in described.service:
        for name in (service.name, *(method.name for method in service.method)):
            assert CAMEL.fullmatch(name), name


def test_times_and_sizes_say_their_unit(described: FileDescriptorProto) -> None:
    for _, message in messages(described):
        for field in message.field:
            named = re.search(r"(time|timestamp|_at|_after|wait|retention)(_|$)", field.name)
            if named and field.type != field.TYPE_BOOL:
                assert re.search(r"_(us|ms|bytes|max)$", field.name), (
                    f"{message.name}.{field.name} has no unit"
                )


def test_enumerations_begin_with_an_unspecified_value_and_bear_their_name(
    described: FileDescriptorProto,
) -> None:
    for enum in described.enum_type:
        prefix = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", enum.name).upper()
        assert (enum.value[0].name, enum.value[0].number) == (f"{prefix}_UNSPECIFIED", 0)
        for value in enum.value:
            assert UPPER.fullmatch(value.name)
            assert value.name.startswith(f"{prefix}_")


def test_every_method_has_a_request_and_a_response_of_its_own(
    described: FileDescriptorProto,
) -> None:
    (service,) = described.service
    for method in service.method:
        assert method.input_type == f".angarium.v1.{method.name}Request"
        assert method.output_type == f".angarium.v1.{method.name}Response"


def test_numbers_run_without_gaps_except_where_they_are_reserved(
    described: FileDescriptorProto,
) -> None:
    for _, message in messages(described):
        used = {field.number for field in message.field}
        kept = {number for one in message.reserved_range for number in range(one.start, one.end)}
        assert not used & kept
        assert used | kept == set(range(1, len(used | kept) + 1)), message.name


def test_room_is_kept_for_what_a_subscriber_may_say_later(described: FileDescriptorProto) -> None:
    wishes = next(one for _, one in messages(described) if one.name == "SubscribeRequest")
    assert [(one.start, one.end) for one in wishes.reserved_range] == [(6, 9)]


def test_the_generated_modules_are_what_the_sources_say() -> None:
    assert proto.stale_modules(proto.generated()) == []


def test_no_install_is_older_than_what_generated_the_modules() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["grpc"]]
    least = dict(re.findall(r"^([\w.-]+)>=([\d.]+)", "\n".join(wanted), re.MULTILINE))
    made_by = (ROOT / "src/angarium/proto/v1/broker_pb2_grpc.py").read_text(encoding="utf-8")
    assert f"GRPC_GENERATED_VERSION = '{least['grpcio']}'" in made_by
    made_for = (ROOT / "src/angarium/proto/v1/broker_pb2.py").read_text(encoding="utf-8")
    (runtime,) = re.findall(r"Protobuf Python Version: ([\d.]+)", made_for)
    assert least["protobuf"] == runtime
    assert version("grpcio-tools") == least["grpcio"]
