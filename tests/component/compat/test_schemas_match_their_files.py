"""The schemas that the listeners serve, and the files that clients are made from, say the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from google.protobuf import descriptor_pb2
from grpc_tools import protoc

from angarium_compat.bale.schema import SCHEMA as BALE
from angarium_compat.geo.schema import SCHEMA as GEO
from angarium_compat.hermes.schema import SCHEMA as HERMES

if TYPE_CHECKING:
    from angarium_compat.schemas import Schema

FOLDER = Path(__file__).resolve().parents[3] / "proto" / "compat"


@pytest.mark.parametrize(("name", "schema"), [("hermes", HERMES), ("bale", BALE), ("geo", GEO)])
def test_a_schema_is_what_its_file_says(name: str, schema: Schema, tmp_path: Path) -> None:
    made = tmp_path / "set"
    arguments = ["protoc", f"-I{FOLDER}", f"--descriptor_set_out={made}", f"{name}.proto"]
    assert protoc.main(arguments) == 0
    (compiled,) = descriptor_pb2.FileDescriptorSet.FromString(made.read_bytes()).file
    served = descriptor_pb2.FileDescriptorProto()
    schema.pool.FindServiceByName(schema.service).file.CopyToProto(served)
    for both in (compiled, served):
        both.name = "broker.proto"
        for message in (*both.message_type, *(n for m in both.message_type for n in m.nested_type)):
            for field in message.field:
                field.ClearField("json_name")
        # Their order in the file means nothing.
        both.message_type.sort(key=lambda one: one.name)
    assert served == compiled


def test_the_three_live_side_by_side_under_their_original_names() -> None:
    assert (HERMES.service, BALE.service, GEO.service) == (
        "broker.BrokerService",
        "broker.Broker",
        "broker.Broker",
    )
    assert BALE["PublishRequest"](subject="a").SerializeToString()
    assert GEO["PublishRequest"](topic="a").SerializeToString()
    assert GEO["SubscribeRequest"](topics={"a": 1}).topics == {"a": 1}
