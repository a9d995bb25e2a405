"""What the catalog knows of evening out: that it goes on, how fast, and what goes back."""

from __future__ import annotations

from angarium.ids import Incarnation, Index, Micros, NodeId, RaftGroupId, Term
from angarium.machine.catalog import (
    BALANCE_LEVEL,
    BalanceBegin,
    BalanceChoose,
    BalanceEnd,
    CatalogCommand,
    CatalogMachine,
    CatalogOutcome,
    Form,
    NodeDrain,
    NodeRegister,
    Reassign,
    Reassigned,
    TopicCreate,
    TopicSettings,
    encode,
)
from angarium.machine.outcomes import Done, Refused


class Catalog:
    """A catalog of some nodes with one topic on the first three."""

    def __init__(self, *, nodes: int = 3, level: int = BALANCE_LEVEL) -> None:
        self.machine = CatalogMachine()
        self.do(Form(cluster="one", level=level))
        for number in range(1, nodes + 1):
            self.join(number)
        settings = TopicSettings(replication=3)
        self.do(TopicCreate(name="orders", partitions=2, settings=settings))

    def do(self, command: CatalogCommand) -> CatalogOutcome:
        index = Index(self.machine.applied_index + 1)
        return self.machine.apply(index, Term(1), encode(command)).outcomes[0]

    def join(self, number: int) -> None:
        self.do(
            NodeRegister(
                incarnation=Incarnation(number),
                addresses=(),
                level_max=BALANCE_LEVEL,
                time=Micros(9),
            )
        )

    def is_running(self) -> bool:
        return self.machine.balance.is_running

    def replicas(self, group: int) -> tuple[tuple[NodeId, ...], tuple[NodeId, ...]]:
        partition = self.machine.topics.partitions[RaftGroupId(group)]
        return partition.replicas, partition.target


def test_a_run_goes_on_until_it_is_ended_and_a_second_beginning_only_changes_its_pace() -> None:
    catalog = Catalog()
    assert not catalog.is_running()
    catalog.do(BalanceBegin(time=Micros(5)))
    catalog.do(BalanceBegin(time=Micros(7), bytes_per_s=1 << 20))
    balance = catalog.machine.balance
    assert (balance.begun_at, balance.bytes_per_s) == (5, 1 << 20)
    assert catalog.do(BalanceEnd(begun_at=Micros(4))) == Done(changed=False), "of another run"
    assert catalog.is_running()
    assert catalog.do(BalanceEnd(begun_at=Micros(5))) == Done()
    assert not catalog.is_running()
    assert catalog.do(BalanceEnd()) == Done(changed=False)


def test_a_pace_too_slow_to_arrive_is_refused() -> None:
    catalog = Catalog()
    outcome = catalog.do(BalanceBegin(bytes_per_s=1))
    assert isinstance(outcome, Refused)
    assert outcome.code == "INVALID_ARGUMENT"
    assert not catalog.is_running()


def test_what_is_called_off_goes_back_and_what_is_drained_does_not() -> None:
    catalog = Catalog(nodes=4)
    before, _ = catalog.replicas(1)
    spare = NodeId(next(iter({1, 2, 3, 4} - set(before))))
    catalog.do(BalanceBegin())
    catalog.do(Reassign(group=RaftGroupId(1), replicas=(*before[:2], spare)))
    second, _ = catalog.replicas(2)
    catalog.do(NodeDrain(node=second[2]))
    catalog.do(Reassign(group=RaftGroupId(2), leaving=(second[2],)))
    drained = catalog.replicas(2)
    assert drained[1], "it is on its way"
    loads = dict(catalog.machine.topics.loads.replicas)
    catalog.do(BalanceEnd(is_called_off=True))
    assert catalog.replicas(1) == (before, ()) or before[2] == second[2]
    assert catalog.replicas(2) == drained
    assert sum(loads.values()) >= sum(catalog.machine.topics.loads.replicas.values())
    # Who has just seen it arrive is too late, and that does no harm.
    arrived = Reassigned(group=RaftGroupId(1), replicas=(*before[:2], spare))
    assert not isinstance(catalog.do(arrived), Refused)


def test_a_run_that_ends_by_itself_leaves_everything_where_it_is_going() -> None:
    catalog = Catalog(nodes=4)
    before, _ = catalog.replicas(1)
    spare = NodeId(next(iter({1, 2, 3, 4} - set(before))))
    catalog.do(BalanceBegin())
    catalog.do(Reassign(group=RaftGroupId(1), replicas=(*before[:2], spare)))
    catalog.do(BalanceEnd())
    assert catalog.replicas(1) == (before, (*before[:2], spare))


def test_a_run_begins_by_itself_when_nodes_change_if_that_is_chosen() -> None:
    catalog = Catalog()
    catalog.join(4)
    assert not catalog.is_running(), "not unless somebody has said so"
    catalog.do(BalanceChoose(is_automatic=True))
    assert not catalog.is_running()
    catalog.join(5)
    assert catalog.is_running()
    catalog.do(BalanceEnd())
    catalog.do(NodeDrain(node=NodeId(5)))
    assert catalog.is_running()
    catalog.do(BalanceEnd())
    catalog.do(BalanceChoose(is_automatic=False))
    catalog.join(6)
    assert not catalog.is_running()


def test_it_survives_a_snapshot() -> None:
    catalog = Catalog()
    catalog.do(BalanceChoose(is_automatic=True))
    catalog.do(BalanceBegin(time=Micros(5), bytes_per_s=1 << 20))
    other = CatalogMachine()
    other.restore(catalog.machine.snapshot())
    assert other.balance == catalog.machine.balance
