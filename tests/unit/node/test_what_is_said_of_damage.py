"""What a node says of a damaged replica is what will happen, and what somebody has to do."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from angarium.errors import CorruptData
from angarium.ids import NodeId, RaftGroupId, TopicId
from angarium.machine.catalog import CatalogMachine
from angarium.machine.catalog.values import Partition
from angarium.node.healing import Healing
from angarium.raft import LogContradiction
from angarium.replica.host import Host

if TYPE_CHECKING:
    from angarium.node.node import Node

GROUP = RaftGroupId(4)


DAMAGE = CorruptData("its snapshot is damaged")


def said_with(*replicas: int, damage: CorruptData = DAMAGE) -> str:
    """Return what node 1 says of a lost replica whose partition lives on these nodes."""
    machine = CatalogMachine()
    nodes = tuple(map(NodeId, replicas))
    machine.topics.partitions[GROUP] = Partition(GROUP, TopicId(1), 0, nodes, ())
    host = SimpleNamespace(
        lost={GROUP: damage},
        may_renew=partial(Host.may_renew, cast("Host", SimpleNamespace(lost={GROUP: damage}))),
        repairs={},
        replicas={},
        catalog=SimpleNamespace(catalog=SimpleNamespace(machine=machine)),
    )
    catalog = SimpleNamespace(name_of=lambda _: "partition 0 of orders")
    node = SimpleNamespace(id=NodeId(1), host=host, catalog=catalog)
    (reason,) = Healing(cast("Node", node)).reasons()
    assert reason.startswith("partition 0 of orders is damaged on this node (its snapshot is")
    return reason


@pytest.mark.parametrize(
    ("replicas", "sentence"),
    [
        ((1,), "it has no other replica"),
        ((1, 2), "its other replica alone is no majority"),
        ((1, 2, 3), "it is copied anew once a majority of its other replicas is there"),
    ],
)
def test_nobody_is_told_to_wait_for_what_cannot_come(
    replicas: tuple[int, ...], sentence: str
) -> None:
    said = said_with(*replicas)
    assert sentence in said
    assert ("backup" in said) == (len(replicas) < 3)


def test_nobody_is_told_that_a_damaged_replica_is_copied_anew_that_contradicts_its_leader() -> None:
    said = said_with(1, 2, 3, damage=LogContradiction("its snapshot is damaged, and … what to do"))
    assert said.endswith("what to do)")
