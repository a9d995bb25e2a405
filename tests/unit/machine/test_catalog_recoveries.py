"""Partitions that go on with one replica, in the catalog."""

from __future__ import annotations

from angarium.ids import Incarnation, Index, Micros, NodeId, RaftGroupId, Term, replica_id
from angarium.machine.catalog import (
    CatalogCommand,
    CatalogMachine,
    CatalogOutcome,
    Form,
    NodeDrain,
    NodeRegister,
    PartitionRecover,
    TopicCreate,
    TopicDelete,
    TopicSettings,
    encode,
)
from angarium.machine.outcomes import Done, Refused

GROUP = RaftGroupId(1)


class Catalog:
    """One machine, fed entry by entry."""

    def __init__(self, nodes: int) -> None:
        self.machine = CatalogMachine()
        self._index = 0
        self.enter(Form(cluster="c", level=6))
        for number in range(nodes):
            self.register(number + 1)
        self.enter(TopicCreate(name="orders", settings=TopicSettings(replication=3)))

    def enter(self, command: CatalogCommand) -> CatalogOutcome:
        self._index += 1
        return self.machine.apply(Index(self._index), Term(1), encode(command)).outcomes[0]

    def register(self, node: int, *, incarnation: int | None = None, known: bool = False) -> None:
        self.enter(
            NodeRegister(
                node=NodeId(node) if known else None,
                incarnation=Incarnation(incarnation or 100 + node),
                addresses=(("wire", f"n{node}:1"),),
                level_max=6,
                renewed=(),
            )
        )

    def recover(self, source: int, *gone: int, times: int = 0) -> CatalogOutcome:
        partition = self.machine.topics.partitions[GROUP]
        holders = {*partition.replicas, *partition.target}
        ids = [self.machine.nodes.by_id[one].replica_in(GROUP) for one in sorted(holders)]
        return self.enter(
            PartitionRecover(
                time=Micros(5),
                group=GROUP,
                source=NodeId(source),
                void=tuple(ids),
                fresh=tuple((one, Incarnation(900 + one + times)) for one in sorted(holders)),
                gone=tuple(NodeId(one) for one in gone),
                times=times,
            )
        )


def test_it_lives_on_one_node_and_goes_to_others_that_are_there() -> None:
    catalog = Catalog(5)
    first, second, third = catalog.machine.topics.partitions[GROUP].replicas
    assert isinstance(catalog.recover(first, second, third), Done)
    partition = catalog.machine.topics.partitions[GROUP]
    assert partition.replicas == (first,)
    assert partition.founders == ()
    assert set(partition.target) == {1, 2, 3, 4, 5} - {second, third}
    member = catalog.machine.nodes.by_id[first]
    assert member.replica_in(GROUP) == replica_id(first, Incarnation(900 + first))


def test_where_nobody_else_is_there_it_waits_for_the_lost_ones() -> None:
    catalog = Catalog(3)
    first, second, third = catalog.machine.topics.partitions[GROUP].replicas
    catalog.recover(first, second, third)
    assert set(catalog.machine.topics.partitions[GROUP].target) == {1, 2, 3}


def test_who_comes_back_as_it_was_is_somebody_else() -> None:
    catalog = Catalog(3)
    first, second, _ = catalog.machine.topics.partitions[GROUP].replicas
    catalog.recover(first)
    catalog.register(second, known=True)  # it does not know yet, and says that it has no renewals
    member = catalog.machine.nodes.by_id[second]
    assert member.replica_in(GROUP) == replica_id(second, Incarnation(900 + second))
    catalog.register(second, incarnation=555, known=True)  # with an empty disk it is nobody's
    member = catalog.machine.nodes.by_id[second]
    assert member.replica_in(GROUP) == replica_id(second, Incarnation(555))


def test_only_the_first_of_two_does_it_and_it_can_be_done_again() -> None:
    catalog = Catalog(3)
    first = catalog.machine.topics.partitions[GROUP].replicas[0]
    assert isinstance(catalog.recover(first), Done)
    assert isinstance(catalog.recover(first), Refused)
    assert isinstance(catalog.recover(first, times=1), Done)
    recovery = catalog.machine.recoveries.by_group[GROUP]
    assert recovery.times == 2
    assert replica_id(first, Incarnation(100 + first)) in recovery.void
    assert replica_id(first, Incarnation(900 + first)) in recovery.void


def test_it_is_kept_in_snapshots_and_goes_with_its_topic() -> None:
    catalog = Catalog(3)
    catalog.recover(catalog.machine.topics.partitions[GROUP].replicas[0])
    copy = CatalogMachine()
    copy.restore(catalog.machine.snapshot())
    assert copy.recoveries.by_group == catalog.machine.recoveries.by_group
    assert copy.snapshot() == catalog.machine.snapshot()
    catalog.enter(TopicDelete(topic=catalog.machine.topics.by_name["orders"]))
    assert not catalog.machine.recoveries.by_group


def test_the_lost_nodes_can_be_drained_and_are_held_back_by_nothing() -> None:
    catalog = Catalog(5)
    first, second, third = catalog.machine.topics.partitions[GROUP].replicas
    catalog.recover(first, second, third)
    catalog.enter(NodeDrain(node=second))
    assert not catalog.machine.topics.loads.replicas.get(second)
