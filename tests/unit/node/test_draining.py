"""Moving replicas away from a node that is being drained, and only where they can go."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from angarium.ids import Incarnation, Micros, NodeId
from angarium.machine.catalog import CatalogMachine, NodeDrain, NodeRegister, Reassign, TopicCreate
from angarium.machine.catalog.values import Labels, TopicSettings
from angarium.node.placement import Placement

LEAVING = NodeId(3)


def proposals(*, nodes: int) -> list[Reassign]:
    """Return what the catalog's leader proposes while node 3 of so many is being drained."""
    machine = CatalogMachine()
    for number in range(1, nodes + 1):
        machine.nodes.register(
            NodeRegister(
                node=None,
                incarnation=Incarnation(number),
                addresses=(("wire", f"127.0.0.1:{number}"),),
                labels=Labels(),
                level_min=1,
                level_max=1,
            )
        )
    first_three = machine.nodes.placeable()[:3]
    settings = TopicSettings(replication=3)
    machine.topics.create(
        TopicCreate(name="t", partitions=2, settings=settings, time=Micros(0)), first_three
    )
    machine.nodes.drain(NodeDrain(node=LEAVING))
    proposed: list[Reassign] = []

    async def submit(command: Reassign) -> None:
        proposed.append(command)

    node: Any = SimpleNamespace(
        id=NodeId(1),
        leader_of=lambda _: NodeId(1),
        catalog=SimpleNamespace(machine=machine, submit=submit),
    )
    asyncio.run(Placement(node)._reassign_all(machine))
    return proposed


def test_replicas_move_where_there_is_a_host_for_them() -> None:
    assert [one.leaving for one in proposals(nodes=4)] == [(LEAVING,), (LEAVING,)]


def test_nothing_is_proposed_where_no_host_is_left() -> None:
    # Each refusal was an entry in the catalog's log, for every partition and every round.
    assert proposals(nodes=3) == []
