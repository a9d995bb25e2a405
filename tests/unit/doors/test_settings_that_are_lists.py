"""A setting that is a list of names, and choices of words, at every door."""

from __future__ import annotations

import msgspec
import pytest

from angarium.api import PartitionInfo, TopicConfig
from angarium.api.settings import check
from angarium.cli.grammar import grammar
from angarium.cli.settings import changed, shown
from angarium.doors.grpc.from_messages import config_of
from angarium.doors.grpc.to_messages import message_of
from angarium.doors.http.forms import chosen, in_json
from angarium.doors.http.graphql.schema import schema
from angarium.doors.http.topic_routes import NewTopic
from angarium.errors import InvalidArgument
from angarium.ids import NodeId
from angarium.proto.v1 import broker_pb2 as pb
from angarium.service.topics import Topics, _config

CONFIG = TopicConfig(
    replication=3,
    placement="homed",
    regions=("eu", "us"),
    readers=("*",),
    key_order="global",
    home_lost="refuse",
)


def test_python_takes_names_in_any_form() -> None:
    for names in ("eu,us", "eu, us", ["eu", "us"], ("eu", "us")):
        assert TopicConfig(regions=names).regions == ("eu", "us")  # type: ignore[arg-type]


def test_the_command_line_reads_and_shows_them() -> None:
    flags = "--replication 3 --placement homed --regions eu,us --readers * --key-order global"
    line = ["topic", "create", "t", *flags.split(), "--home-lost", "refuse"]
    config = changed(TopicConfig(), grammar().parse_args(line))
    assert config == CONFIG
    assert shown(config)["regions"] == "eu, us"
    none = grammar().parse_args(["topic", "alter", "t", "--regions", "none", "--readers", "none"])
    assert changed(CONFIG, none).regions == changed(CONFIG, none).readers == ()


def test_rest_reads_and_shows_them() -> None:
    body = msgspec.json.encode({"name": "t", "config": in_json(CONFIG)})
    wish = msgspec.json.decode(body, type=NewTopic)
    assert chosen(TopicConfig, wish.config) == CONFIG
    properties = msgspec.json.schema(NewTopic)["$defs"]["TopicSettings"]["properties"]
    assert properties["regions"]["type"] == "array"
    assert properties["placement"]["enum"] == ["homed", "spread"]


def test_graphql_has_them() -> None:
    types = schema().type_map
    assert str(types["TopicConfig"].fields["regions"].type) == "[String!]!"  # type: ignore[attr-defined]
    assert str(types["TopicConfigInput"].fields["keyOrder"].type) == "KeyOrder"  # type: ignore[attr-defined]
    assert str(types["Partition"].fields["readers"].type) == "[Int!]!"  # type: ignore[attr-defined]


def test_grpc_has_them() -> None:
    message = message_of(pb.TopicConfig, CONFIG)
    assert message.placement == pb.PLACEMENT_HOMED
    assert list(message.regions) == ["eu", "us"]
    assert config_of(TopicConfig, message) == CONFIG
    assert config_of(TopicConfig, pb.TopicConfig()) == TopicConfig()
    info = PartitionInfo(number=0, replicas=(NodeId(1),), home="eu", readers=(NodeId(4),))
    shown_info = message_of(pb.PartitionInfo, info)
    assert (shown_info.home, list(shown_info.readers)) == ("eu", [4])


def test_the_catalog_keeps_them() -> None:
    desk = object.__new__(Topics)
    kept = desk.settings(CONFIG)
    assert kept.homes == ("eu", "us")
    assert _config(kept) == CONFIG


@pytest.mark.parametrize(
    "config",
    [
        TopicConfig(regions=("eu", "eu")),
        TopicConfig(regions=("",)),
        TopicConfig(readers=("x" * 65,)),
        TopicConfig(readers=tuple(map(str, range(65)))),
        TopicConfig(placement="anywhere"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_name_is_refused(config: TopicConfig) -> None:
    with pytest.raises(InvalidArgument):
        check(config)
