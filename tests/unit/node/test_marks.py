"""What a node writes down of the others' logs: of those who are who they say, while they belong."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from angarium.ids import Incarnation, NodeId, replica_id
from angarium.log import peer_ends
from angarium.log.memory_disk import MemoryDisk
from angarium.node.admission import Admission
from angarium.node.marks import Marks
from angarium.wire import Hello, Role

if TYPE_CHECKING:
    from angarium.node.node import Node

OTHER = NodeId(2)
KNOWN = Incarnation(20)


class Around:
    """A node that knows node 2, and whoever answers as it."""

    def __init__(self) -> None:
        self.nodes = SimpleNamespace(
            by_id={OTHER: SimpleNamespace(incarnation=KNOWN)}, next_id=NodeId(3)
        )
        self.answers = KNOWN
        self.disk = MemoryDisk()
        machine = SimpleNamespace(nodes=self.nodes)
        replica = SimpleNamespace(catalog=SimpleNamespace(machine=machine))
        node = SimpleNamespace(
            host=SimpleNamespace(catalog=replica),
            peers=SimpleNamespace(connection=lambda _: self._connection()),
        )
        node.admission = Admission(cast("Node", node))
        self.marks = Marks(cast("Node", node), self.disk)

    def _connection(self) -> object:
        hello = Hello(role=Role.PEER, node=OTHER, incarnation=self.answers)
        return SimpleNamespace(peer=SimpleNamespace(hello=hello))

    def saved(self) -> dict[int, int]:
        asyncio.run(self.marks.save())
        return {int(replica): end for replica, end in peer_ends.load(self.disk).items()}


def test_nodes_that_were_removed_are_forgotten() -> None:
    around = Around()
    around.marks.note(OTHER, 700)
    assert around.saved() == {replica_id(OTHER, KNOWN): 700}
    del around.nodes.by_id[OTHER]
    assert around.saved() == {}


def test_somebody_else_who_answers_as_a_node_is_not_remembered_in_its_place() -> None:
    around = Around()
    around.marks.note(OTHER, 700)
    around.answers = Incarnation(66)
    around.marks.note(OTHER, 900)
    assert around.saved() == {replica_id(OTHER, KNOWN): 700}
