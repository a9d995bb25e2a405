"""What the catalog does when its cluster goes on under another id."""

from __future__ import annotations

from angarium.ids import Incarnation, Index, Micros, NodeId, Term
from angarium.machine.catalog import (
    CatalogCommand,
    CatalogMachine,
    CatalogOutcome,
    ClusterRecover,
    Form,
    JoinTokenPut,
    NodeDrain,
    NodeRegister,
    ProducerBlock,
    ProducerOpen,
    ProducerOpened,
    ProducerShare,
    ProducerShared,
    ProducersIssued,
    TopicCreate,
    TopicMade,
    TopicSettings,
    encode,
)
from angarium.machine.outcomes import Done, Refused


class Catalog:
    """One machine of three nodes, fed entry by entry."""

    def __init__(self, level: int = 6) -> None:
        self.machine = CatalogMachine()
        self._index = 0
        self.enter(Form(cluster="first", level=level))
        for number in (1, 2, 3):
            self.register(number, known=False)

    def enter(self, command: CatalogCommand) -> CatalogOutcome:
        self._index += 1
        return self.machine.apply(Index(self._index), Term(1), encode(command)).outcomes[0]

    def register(self, node: int, *, known: bool = True) -> None:
        self.enter(
            NodeRegister(
                node=NodeId(node) if known else None,
                incarnation=Incarnation(100 + node),
                addresses=(("wire", f"n{node}:1"),),
                level_max=6,
            )
        )

    def recover(self, cluster: str = "second", previous: str = "first") -> CatalogOutcome:
        return self.enter(
            ClusterRecover(
                time=Micros(5),
                cluster=cluster,
                previous=previous,
                node=NodeId(1),
                last_term=Term(7),
                last_index=Index(42),
                by="root@one",
            )
        )

    def restored(self) -> CatalogMachine:
        machine = CatalogMachine()
        machine.restore(self.machine.snapshot())
        return machine


def test_the_cluster_has_another_id_and_remembers_what_it_was() -> None:
    catalog = Catalog()
    assert catalog.recover() == Done()
    for machine in (catalog.machine, catalog.restored()):
        assert machine.cluster == "second"
        (row,) = machine.predecessors.rows
        assert (row.cluster, row.node, row.last_term, row.last_index) == ("first", 1, 7, 42)
        assert (row.by, row.recovered_at) == ("root@one", 5)


def test_the_same_is_entered_once_and_another_one_is_refused() -> None:
    catalog = Catalog()
    catalog.recover()
    assert catalog.recover() == Done(changed=False)
    assert isinstance(catalog.recover("third", "first"), Refused)
    assert isinstance(catalog.recover("first", "second"), Refused), "an id is never used again"
    assert catalog.recover("third", "second") == Done()
    assert catalog.machine.predecessors.clusters == ("first", "second")


def test_nothing_that_the_lost_may_have_issued_is_issued_again() -> None:
    catalog = Catalog()
    before = catalog.enter(TopicCreate(name="a", settings=TopicSettings(replication=1)))
    block = catalog.enter(ProducerBlock(count=1_000))
    catalog.recover()
    after = catalog.enter(TopicCreate(name="b", settings=TopicSettings(replication=1)))
    assert isinstance(before, TopicMade)
    assert isinstance(after, TopicMade)
    assert after.topic > before.topic + 1_000
    assert after.groups[0] > before.groups[0] + 1_000
    again = catalog.enter(ProducerBlock(count=1_000))
    assert isinstance(block, ProducersIssued)
    assert isinstance(again, ProducersIssued)
    assert again.first > block.past + 1_000_000


def test_a_new_epoch_lies_above_all_that_the_lost_may_have_begun() -> None:
    catalog = Catalog()
    first = catalog.enter(ProducerOpen(name="p"))
    shared = catalog.enter(ProducerShare(name="s", base=3, replaces=None))
    catalog.recover()
    # Who goes on with what it has is known by it: what it sends again is not taken twice.
    assert catalog.enter(ProducerShare(name="s", base=9, replaces=None)) == shared
    second = catalog.enter(ProducerOpen(name="p"))
    assert isinstance(first, ProducerOpened)
    assert isinstance(second, ProducerOpened)
    assert second.producer == first.producer
    assert second.epoch >= first.epoch + 1_000
    third = catalog.enter(ProducerOpen(name="p"))
    assert isinstance(third, ProducerOpened)
    assert third.epoch == second.epoch + 1
    assert isinstance(shared, ProducerShared)
    replaced = catalog.enter(ProducerShare(name="s", base=9, replaces=shared.epoch))
    assert isinstance(replaced, ProducerShared)
    assert replaced.epoch >= shared.epoch + 1_000


def test_join_tokens_are_void_for_the_lost_may_have_let_somebody_in() -> None:
    catalog = Catalog()
    catalog.enter(JoinTokenPut(time=Micros(1), digest=bytes(32), until=Micros(9_000_000)))
    assert catalog.machine.join_tokens.by_digest
    catalog.recover()
    assert not catalog.machine.join_tokens.by_digest


def test_who_is_not_back_yet_counts_as_draining_until_it_is() -> None:
    catalog = Catalog()
    catalog.enter(NodeDrain(node=NodeId(3)))
    catalog.recover()
    assert [one.id for one in catalog.machine.nodes.placeable()] == [1]
    catalog.register(2)
    catalog.register(3)
    nodes = catalog.restored().nodes.by_id
    assert [one.draining for one in nodes.values()] == [False, False, True], "it was drained before"
    assert not any(one.gone for one in nodes.values())


def test_somebody_may_say_that_it_is_drained_for_good() -> None:
    catalog = Catalog()
    catalog.recover()
    catalog.enter(NodeDrain(node=NodeId(2)))
    catalog.register(2)
    assert catalog.machine.nodes.by_id[NodeId(2)].draining


def test_the_level_is_one_that_knows_of_it() -> None:
    catalog = Catalog(level=3)
    catalog.recover()
    assert catalog.machine.nodes.level == 6
