"""Doors, methods and callers: nothing is missing, and every cell is what the table says."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import uvloop
from graphql import build_schema
from tests.doors.matrix.callers import CALLERS
from tests.doors.matrix.exemptions import EXEMPT, STREAMING
from tests.doors.matrix.graphql_door import GraphqlDoor
from tests.doors.matrix.http_client import HttpConnection
from tests.doors.matrix.report import PAGE, written
from tests.doors.matrix.rest_door import RestDoor, shape
from tests.doors.matrix.rows import METHODS, ROWS
from tests.doors.matrix.stream_doors import SocketDoor
from tests.doors.matrix.trying import ADMIN, DOORS, Tried, cells, try_all
from tests.doors.matrix.wire_door import BETWEEN_NODES, WireDoor
from tests.doors.matrix.world import SecuredCluster, World

from angarium.api.access import Action
from angarium.doors.callers import Callers
from angarium.doors.http import HttpDoor
from angarium.doors.http.faces import nobodys
from angarium.doors.http.socket_messages import Said
from angarium.security.roles import BUILT_IN

if TYPE_CHECKING:
    from tests.doors.matrix.answers import Answer

# --- nothing is missing -------------------------------------------------------------------------


def test_every_method_of_the_contract_has_a_row() -> None:
    assert {one.method for one in ROWS} == set(METHODS)


def test_every_action_is_asked_for_somewhere() -> None:
    asked = {one.action for rule in METHODS.values() for one in rule.asks}
    asked |= {rule.shows.action for rule in METHODS.values() if rule.shows is not None}
    # That one is asked for instead of all others about the topic of audit records: there is none.
    assert asked | {Action.AUDIT_READ} == set(Action)


def test_every_door_has_each_method_or_says_why_not() -> None:
    for door in DOORS:
        has = set(door.methods)
        if door.name in STREAMING:
            assert has == STREAMING[door.name]
        else:
            exempt = set(EXEMPT[door.name])
            assert has | exempt == set(METHODS), door.name
            assert not has & exempt, door.name
        assert set(door.declared().values()) - {""} <= set(METHODS), door.name


def test_every_built_in_role_calls_and_so_do_those_without_one() -> None:
    assert {role for one in CALLERS for role in one.roles} == set(BUILT_IN)
    assert any(one.user and not one.roles and not one.grants for one in CALLERS)
    assert any(not one.user for one in CALLERS)
    assert any(one.narrowing is not None for one in CALLERS)


def test_every_request_over_http_is_in_the_matrix() -> None:
    door = HttpDoor(Callers.everybody(nobodys()), host="127.0.0.1", port=0)
    routes = {f"{one.method} {one.path}" for one in door._guests.router.routes}
    assert {shape(one) for one in routes} == set(RestDoor.declared())


def test_every_operation_of_the_wire_is_in_the_matrix() -> None:
    assert "?" not in WireDoor.declared().values()


def test_a_socket_is_told_nothing_that_was_not_thought_of() -> None:
    said = {str(one.__struct_config__.tag) for one in Said.__args__}
    assert said == set(SocketDoor.declared())


# --- every cell ---------------------------------------------------------------------------------


@dataclass
class Found:
    """What was learnt from a running node."""

    tried: Tried
    fields: set[str]
    as_a_node: dict[str, Answer]
    log: str


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    async def found() -> Found:
        folder = tmp_path_factory.mktemp("matrix")
        cluster = SecuredCluster(folder)
        async with cluster:
            world = World(cluster)
            await world.prepare()
            tried = await try_all(world, cluster.nodes)
            http = HttpConnection(cluster.nodes[0].http)
            schema = (await http.ask("GET", "/graphql/schema")).body.decode()
            await http.close()
            wire = WireDoor(world, cluster.nodes[0])
            as_a_node = {one.name: await wire.ask_as_a_node(ADMIN, one) for one in BETWEEN_NODES}
            await wire.close()
            await world.close()
        built = build_schema(schema)
        roots = [one for one in (built.query_type, built.mutation_type) if one is not None]
        fields = {name for one in roots for name in one.fields}
        return Found(tried, fields, as_a_node, (folder / "node-1.log").read_text())

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(found())


def test_every_cell_is_what_the_table_says(found: Found) -> None:
    assert found.tried.mismatches == []
    assert set(found.tried.outcomes) == set(cells())


def test_every_field_of_graphql_is_in_the_matrix(found: Found) -> None:
    assert found.fields == set(GraphqlDoor.declared())


def test_what_only_nodes_say_is_refused_to_everybody_else(found: Found) -> None:
    allowed = {name for name, answer in found.as_a_node.items() if not answer.code}
    assert allowed == set()


def test_the_page_has_these_counts(found: Found) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page, found.tried) == page, "`make matrix` writes them"


def test_no_secret_is_in_the_log(found: Found) -> None:
    assert "angt_" not in found.log
    assert "angj_" not in found.log
    assert "the password of all of them" not in found.log
