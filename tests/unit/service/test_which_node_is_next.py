"""Which node a rolling restart takes next."""

from __future__ import annotations

from typing import Any

from angarium.api.upgrades import NodeState
from angarium.ids import Micros, NodeId
from angarium.service.upgrading import next_node


def state(node: int, version: str, started: int, **more: Any) -> NodeState:
    said = {"alive": True, **more}
    return NodeState(node=NodeId(node), version=version, started_at=Micros(started), **said)


def test_the_one_that_has_run_for_longest_is_next() -> None:
    assert next_node([state(1, "1", 30), state(2, "1", 10), state(3, "1", 20)]) == 2


def test_those_of_the_other_release_come_first() -> None:
    assert next_node([state(1, "1", 30), state(2, "2", 40), state(3, "1", 35)]) == 1


def test_a_release_that_is_put_back_is_the_newer_one() -> None:
    assert next_node([state(1, "2", 10), state(2, "1", 40), state(3, "2", 20)]) == 1


def test_the_leader_of_the_catalog_is_the_last() -> None:
    nodes = [state(1, "1", 1, leads_catalog=True), state(2, "1", 2), state(3, "2", 3)]
    assert next_node(nodes) == 2
    assert next_node([nodes[0], nodes[2]]) == 1


def test_who_is_away_is_not_taken() -> None:
    assert next_node([state(1, "", 0, alive=False), state(2, "1", 5)]) == 2
    assert next_node([state(1, "", 0, alive=False)]) is None
