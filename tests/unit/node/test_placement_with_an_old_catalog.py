"""A node that has just started believes its catalog only once it has caught up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from tests.unit.replica.several_hosts import SeveralHosts

from angarium.ids import NodeId, RaftGroupId, ReplicaId
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
        config=SimpleNamespace(follow_window_s=60.0),
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


def handed_over(*, catalog_leader: NodeId | None) -> list[ReplicaId]:
    """Return to whom a leader gives a partition whose preferred leader is there again."""
    node, preferred = a_node(is_current=True), ReplicaId(2 << 48)
    node.leader_of = lambda _: catalog_leader
    node.is_here = lambda *_: True
    node.time = SimpleNamespace(clocks=SimpleNamespace(trusts=lambda _: True))
    node.readiness = SimpleNamespace(is_disk_full=lambda _: False)
    given: list[ReplicaId] = []
    raft = SimpleNamespace(match=lambda _: 5, last_index=5, transfer_leader=given.append)
    replica: Any = SimpleNamespace(group=GROUP, id=1, raft=raft, poke=lambda: None)

    async def main() -> None:
        placement = Placement(node)
        placement._could_lead[GROUP] = -1e9
        placement._prefer(replica, preferred)

    asyncio.run(main())
    return given


def test_a_partition_is_not_given_to_a_node_that_may_wait_for_the_catalog() -> None:
    """One that has started serves nothing before the catalog has a leader."""
    assert handed_over(catalog_leader=NODE) == [2 << 48]
    assert handed_over(catalog_leader=None) == []
