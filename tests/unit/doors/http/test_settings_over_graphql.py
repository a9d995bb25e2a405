"""Settings over GraphQL: every one is shown and taken, and what is not said has its default.

What the contract answers is shown in full, too.
"""

from __future__ import annotations

from typing import Any, cast

from tests.on_a_loop import run
from tests.unit.doors.grpc.memory_broker import MemoryBroker

from angarium.api import (
    ClusterStatus,
    GroupConfig,
    GroupInfo,
    GroupPosition,
    NodeInfo,
    PartitionInfo,
    TopicConfig,
)
from angarium.api.settings import settings_of
from angarium.doors.http.forms import form_of
from angarium.doors.http.graphql.derived_types import camel
from angarium.doors.http.graphql.execution import Executor, Operation
from angarium.doors.http.graphql.resolving import Resolvers
from angarium.doors.http.graphql.schema import schema
from angarium.doors.intake import Intake
from angarium.kinds import Behind, GroupKind, Poison


class Groups:
    """Takes whatever settings a group is given."""

    async def alter_group(self, group: str, config: GroupConfig) -> GroupInfo:
        return GroupInfo(name=group, kind=GroupKind.STREAM, config=config)


def asked(query: str) -> Any:
    async def ask() -> Any:
        resolvers = Resolvers(Intake(MemoryBroker()), cast("Any", Groups()))
        executor = Executor(resolvers)
        return await executor.executed(Operation(query), executor.prepared(query))

    return run(ask())


def test_every_setting_is_shown_and_taken() -> None:
    types: Any = schema().type_map
    for name, config in (("TopicConfig", TopicConfig), ("GroupConfig", GroupConfig)):
        wanted = {camel(one.name) for one in settings_of(config)}
        assert types[name].fields.keys() == wanted
        assert types[f"{name}Input"].fields.keys() == wanted


def test_what_a_group_does_in_trouble_can_be_chosen() -> None:
    config = "{ poison: STOP, behind: JUMP, maxAttempts: null, ackTimeoutMs: 5000 }"
    shown = "{ config { poison behind maxAttempts ackTimeoutMs } }"
    answer = asked(f'mutation {{ alterGroup(name: "g", config: {config}) {shown} }}')
    assert answer["data"]["alterGroup"]["config"] == {
        "poison": Poison.STOP.name,
        "behind": Behind.JUMP.name,
        "maxAttempts": GroupConfig().max_attempts,
        "ackTimeoutMs": 5_000,
    }


def test_every_field_of_an_answer_is_shown() -> None:
    types: Any = schema().type_map
    for name, answered in (
        ("Cluster", ClusterStatus),
        ("Node", NodeInfo),
        ("Partition", PartitionInfo),
        ("Position", GroupPosition),
    ):
        fields = form_of(answered).__struct_fields__  # times have their unit in the name
        wanted = {camel(one) for one in fields if one != "addresses"}
        assert wanted <= types[name].fields.keys()
    assert str(types["Partition"].fields["inSync"].type) == "[Int!]"
    assert str(types["Node"].fields["clockAheadMs"].type) == "Long"
    assert types["Position"].fields["floor"].description == "Everything below is settled."


def test_a_node_says_why_not_to_rely_on_it() -> None:
    answer = asked("{ status { nodes { id wire unready clockAgrees } } }")
    assert answer["data"]["status"]["nodes"][0]["unready"] == []
