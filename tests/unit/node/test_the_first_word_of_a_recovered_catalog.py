"""A recovered catalog decides nothing before it has become that of another cluster."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from angarium.errors import NotLeader
from angarium.ids import Index, NodeId, Term
from angarium.machine.catalog import CatalogMachine, ClusterRecover, ProducerBlock
from angarium.machine.outcomes import Done
from angarium.node.catalog import NodeCatalog

if TYPE_CHECKING:
    from angarium.machine.catalog import CatalogCommand
    from angarium.node.node import Node

FORMER, LATER = f"{1:032x}", f"{2:032x}"
RECOVER = ClusterRecover(
    cluster=LATER, previous=FORMER, node=NodeId(1), last_term=Term(1), last_index=Index(1), by=""
)


class Leading:
    """A replica that leads the catalog, and what it was given."""

    may_serve = True
    applied = Index(1)

    def __init__(self, cluster: str) -> None:
        machine = CatalogMachine()
        machine.cluster = cluster
        self.catalog = SimpleNamespace(machine=machine)
        self.taken: list[CatalogCommand | None] = []

    def submit(self, command: CatalogCommand, *, now: int, reply: Any) -> None:
        del now
        self.taken.append(command)
        reply(Done())

    def read_index(self, reply: Any) -> None:
        self.taken.append(None)
        reply(None)

    def poke(self) -> None:
        pass


def taken(cluster: str, command: CatalogCommand | None) -> list[CatalogCommand | None]:
    """Return what a node of the later cluster hands to a catalog of `cluster`."""
    replica = Leading(cluster)
    node = SimpleNamespace(
        id=NodeId(1),
        host=SimpleNamespace(catalog=replica),
        folder_identity=SimpleNamespace(cluster_id=2),
        config=SimpleNamespace(request_timeout_s=5.0),
        leader_of=lambda _: NodeId(1),
        now=lambda: 1,
        wake=lambda: None,
    )
    asyncio.run(NodeCatalog(cast("Node", node))._here(command))
    return replica.taken


def test_ids_that_the_lost_may_have_issued_are_not_issued_in_between() -> None:
    for command in (ProducerBlock(count=1), None):
        with pytest.raises(NotLeader, match="recovered"):
            taken(FORMER, command)
    assert taken(FORMER, RECOVER) == [RECOVER]


def test_then_and_before_it_was_formed_everything_is_taken() -> None:
    for cluster in (LATER, ""):
        for command in (ProducerBlock(count=1), RECOVER, None):
            assert taken(cluster, command) == [command]
