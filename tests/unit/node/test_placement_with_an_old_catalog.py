"""A node that has just started believes its catalog only once it has caught up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from tests.unit.replica.several_hosts import SeveralHosts

from angarium.ids import NodeId, RaftGroupId
from angarium.machine.catalog import CatalogMachine
from angarium.node.placement import Placement
from angarium.replica.listener import HostListener

GROUP = RaftGroupId(7)
NODE = NodeId(1)

forgotten: list[NodeId] = []


def a_node(*, is_current: bool) -> Any:
    """Return a node with a replica of a group that its catalog has not heard of."""
    one = SeveralHosts([NODE])
    one.form(GROUP, [NODE])
    return SimpleNamespace(
        id=NODE,
        host=one.hosts[NODE],
        catalog=SimpleNamespace(machine=CatalogMachine(), is_current=is_current, watchers=[]),
        peers=SimpleNamespace(ids=[NodeId(2)], forget=forgotten.append),
        hearing=HostListener(),
        wake=lambda: None,
        leader_of=lambda _: None,
    )


def test_a_replica_that_an_old_catalog_does_not_know_stays() -> None:
    forgotten.clear()
    node = a_node(is_current=False)
    asyncio.run(Placement(node)._round())
    assert GROUP in node.host.replicas
    assert not forgotten


def test_a_replica_whose_topic_is_gone_from_a_current_catalog_goes() -> None:
    forgotten.clear()
    node = a_node(is_current=True)
    placement = Placement(node)
    placement._seen = -1  # type: ignore[assignment]  # something has changed
    asyncio.run(placement._round())
    assert GROUP not in node.host.replicas
    assert forgotten == [NodeId(2)]
