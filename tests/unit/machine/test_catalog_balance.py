"""What the catalog knows of evening out: that it goes on, how fast, and what goes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    Labels,
    NodeDrain,
    NodeRegister,
    NodeRemove,
    Reassign,
    Reassigned,
    TopicCreate,
    TopicSettings,
    encode,
)
from angarium.machine.catalog.balance import is_paced
from angarium.machine.outcomes import Done, Refused

if TYPE_CHECKING:
    from collections.abc import Callable


class Catalog:
    """A catalog of some nodes with one topic on the first three."""

    def __init__(
        self, *, nodes: int = 3, level: int = BALANCE_LEVEL, is_automatic: bool = False
    ) -> None:
        self.machine = CatalogMachine()
        self.do(Form(cluster="one", level=level, is_automatic=is_automatic))
        for number in range(1, nodes + 1):
            self.join(number)
        settings = TopicSettings(replication=3)
        self.do(TopicCreate(name="orders", partitions=2, settings=settings))

    def do(self, command: CatalogCommand) -> CatalogOutcome:
        index = Index(self.machine.applied_index + 1)
        return self.machine.apply(index, Term(1), encode(command)).outcomes[0]

    def join(self, number: int, *, address: str = "", zone: str = "", anew: int = 0) -> None:
        self.do(
            NodeRegister(
                node=NodeId(number) if anew else None,
                incarnation=Incarnation(anew or number),
                addresses=(("wire", address),) if address else (),
                labels=Labels(zone=zone),
                level_max=BALANCE_LEVEL,
                time=Micros(9),
            )
        )

    @property
    def changed_at(self) -> Micros:
        return self.machine.balance.changed_at

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


def test_a_change_of_nodes_is_noted_if_runs_begin_by_themselves() -> None:
    catalog = Catalog()
    catalog.join(4)
    assert not catalog.changed_at, "a cluster from before that never chose keeps what it had"
    catalog.do(BalanceChoose(is_automatic=True))
    assert not catalog.changed_at
    seen = [catalog.changed_at]
    changes: list[Callable[[], object]] = [
        lambda: catalog.join(5),
        lambda: catalog.do(NodeDrain(node=NodeId(5))),
        lambda: catalog.do(NodeDrain(node=NodeId(5), draining=False)),
        lambda: catalog.join(5, zone="b"),
        lambda: catalog.do(NodeRemove(node=NodeId(5))),
    ]
    for change in changes:
        change()
        assert catalog.changed_at > seen[-1], "each is another one, though the clock stands still"
        seen.append(catalog.changed_at)
    assert not catalog.is_running(), "the leader of the catalog begins, when all is calm"
    catalog.do(BalanceChoose(is_automatic=False))
    assert not catalog.changed_at
    catalog.join(6)
    assert not catalog.changed_at


def test_a_node_that_comes_back_is_no_change() -> None:
    catalog = Catalog(is_automatic=True)
    catalog.do(BalanceBegin())
    catalog.join(2, address="elsewhere:1")
    catalog.join(2, address="elsewhere:1", anew=77)
    assert catalog.machine.nodes.by_id[NodeId(2)].incarnation == 77
    assert not catalog.changed_at
    catalog.do(NodeDrain(node=NodeId(2)))
    drained_at = catalog.changed_at
    assert drained_at
    catalog.do(NodeRemove(node=NodeId(2)))
    assert catalog.changed_at == drained_at, "that it goes was said when it was drained"


def test_what_begins_by_itself_does_so_for_the_change_that_was_seen_and_beside_nothing() -> None:
    catalog = Catalog(is_automatic=True)
    seen = catalog.changed_at
    assert seen
    catalog.join(4)
    assert catalog.do(BalanceBegin(changed_at=seen)) == Done(changed=False), "one came since"
    assert catalog.do(BalanceBegin(changed_at=catalog.changed_at, bytes_per_s=1 << 20)) == Done()
    balance = catalog.machine.balance
    assert (balance.is_running, balance.is_by_itself, balance.changed_at) == (True, True, 0)
    catalog.join(5)
    later = catalog.changed_at
    assert catalog.do(BalanceBegin(changed_at=later)) == Done(changed=False), "one goes on"
    catalog.do(BalanceEnd(begun_at=balance.begun_at))
    assert catalog.changed_at == later, "its last plan may not have known of the newcomer"
    catalog.do(BalanceBegin())
    assert not catalog.machine.balance.is_by_itself, "somebody has said so"
    assert not catalog.changed_at


def test_what_was_called_off_does_not_begin_again_before_nodes_change() -> None:
    catalog = Catalog(is_automatic=True)
    catalog.do(BalanceBegin(changed_at=catalog.changed_at))
    catalog.join(4)
    catalog.do(BalanceEnd(is_called_off=True))
    assert not catalog.changed_at
    catalog.join(5)
    assert catalog.changed_at


def test_it_survives_a_snapshot() -> None:
    catalog = Catalog()
    catalog.do(BalanceChoose(is_automatic=True))
    catalog.do(BalanceBegin(time=Micros(5), bytes_per_s=1 << 20))
    other = CatalogMachine()
    other.restore(catalog.machine.snapshot())
    assert other.balance == catalog.machine.balance


def test_a_chosen_pace_counts_for_every_move_and_that_of_a_run_by_itself_not_for_drains() -> None:
    catalog = Catalog(nodes=5, is_automatic=True)
    machine = catalog.machine
    drained, evened = (machine.topics.partitions[RaftGroupId(one)] for one in (1, 2))
    leaving = drained.replicas[0]
    stays = next(one for one in evened.replicas if one != leaving)
    catalog.do(NodeDrain(node=leaving))
    for one, out in ((drained, leaving), (evened, stays)):
        spare = min({NodeId(number) for number in range(1, 6)} - {leaving, *one.replicas})
        target = tuple(spare if node == out else node for node in one.replicas)
        catalog.do(Reassign(group=one.group, replicas=target, replaces=one.replicas))

    def paced() -> list[bool]:
        partitions = [machine.topics.partitions[one.group] for one in (drained, evened)]
        return [is_paced(machine.balance, one, machine.nodes) for one in partitions]

    assert paced() == [False, True]
    catalog.do(BalanceBegin(time=Micros(5), bytes_per_s=1 << 20, changed_at=catalog.changed_at))
    assert machine.balance.is_by_itself
    assert paced() == [False, True]
    catalog.do(BalanceBegin(time=Micros(6), bytes_per_s=1 << 20))
    assert paced() == [True, True]
    catalog.do(Reassigned(group=drained.group, replicas=catalog.replicas(1)[1]))
    assert paced() == [False, True], "what stays where it is makes good what was lost"
