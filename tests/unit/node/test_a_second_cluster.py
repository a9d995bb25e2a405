"""Whoever is alone in a cluster, and is looked for by another one, says so."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from angarium.ids import NodeId
from angarium.node.node import Node
from angarium.node.second_cluster import HEARD_S, SecondCluster
from angarium.wire import Hello, Role

if TYPE_CHECKING:
    import pytest


def node_among(*members: int) -> Node:
    """Return node 1 of a cluster with these members."""
    nodes = SimpleNamespace(by_id={NodeId(one): None for one in members})
    catalog = SimpleNamespace(machine=SimpleNamespace(nodes=nodes))
    return cast(Node, SimpleNamespace(id=NodeId(1), catalog=catalog))


def greeting(role: Role = Role.PEER) -> Hello:
    return Hello(role=role, cluster="first", node=2, incarnation=7, address="10.0.0.2:7400")


def test_who_looks_for_a_node_that_is_alone_is_named_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second = SecondCluster(node_among(1))
    assert not list(second.reasons())
    second.hear(greeting())
    (reason,) = second.reasons()
    assert "node 2 (10.0.0.2:7400) of the cluster first" in reason
    assert "--join" in reason
    later = time.monotonic() + HEARD_S
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert not list(second.reasons())


def test_a_node_that_is_not_alone_is_not_made_unready_by_strangers() -> None:
    second = SecondCluster(node_among(1, 2))
    second.hear(greeting())
    assert not list(second.reasons())


def test_a_client_of_another_cluster_is_only_refused() -> None:
    second = SecondCluster(node_among(1))
    second.hear(greeting(Role.CLIENT))
    assert not list(second.reasons())
