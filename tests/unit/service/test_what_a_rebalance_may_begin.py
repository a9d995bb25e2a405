"""Of a plan, only moves of partitions begin that have all of their replicas; and a pace stays."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import msgspec

from angarium.ids import Micros, NodeId, RaftGroupId, TopicId
from angarium.machine.catalog import Balance, BalanceBegin, Partition
from angarium.node.balance import Move
from angarium.service.balancing import Balancing

if TYPE_CHECKING:
    from collections.abc import Sequence

ONE, TWO, THREE, FOUR = map(NodeId, (1, 2, 3, 4))
WHOLE, BEHIND, UNLED, GONE = map(RaftGroupId, (1, 2, 3, 4))
HERE = (ONE, TWO, THREE)


class Known:
    """A catalog of three partitions, and what its leader asked of it."""

    def __init__(self, balance: Balance) -> None:
        self.balance = balance
        self.level = 9
        self.submitted: list[Any] = []

    def partition_in(self, group: RaftGroupId) -> Partition | None:
        return None if group == GONE else Partition(group, TopicId(1), int(group), HERE, ())

    async def catch_up(self) -> None:
        pass

    async def submit(self, command: Any) -> None:
        self.submitted.append(command)


class FullReplicas:
    """Who has everything, as leaders say."""

    async def in_sync(self, _: Sequence[Partition]) -> dict[RaftGroupId, tuple[NodeId, ...]]:
        return {WHOLE: HERE, BEHIND: (ONE, TWO)}


def _balancing(known: Known) -> Balancing:
    node = SimpleNamespace(catalog=known, config=SimpleNamespace(rebalance_after_s=60.0))
    return Balancing(cast("Any", node), cast("Any", FullReplicas()))


def _copying(group: RaftGroupId) -> Move:
    return Move(group, HERE, (ONE, TWO, FOUR))


def _leading(group: RaftGroupId) -> Move:
    return Move(group, HERE, (TWO, ONE, THREE))


def test_a_partition_that_lacks_a_replica_waits_and_holds_up_no_other() -> None:
    balancing = _balancing(Known(Balance()))
    plan = [*map(_copying, (BEHIND, GONE, UNLED, WHOLE)), _leading(BEHIND)]
    possible = asyncio.run(balancing._possible(plan))
    assert possible == [_copying(WHOLE), _leading(BEHIND)]


def _asked(known: Known, bytes_per_s: int | None) -> int:
    balancing = _balancing(known)

    async def nothing() -> Any:
        return None

    balancing.describe_balance = nothing  # type: ignore[method-assign]
    asyncio.run(balancing.rebalance(bytes_per_s=bytes_per_s))
    (command,) = known.submitted
    assert isinstance(command, BalanceBegin)
    return command.bytes_per_s


def test_a_rebalance_that_is_said_again_keeps_its_pace() -> None:
    running = Balance(begun_at=cast("Any", 5), bytes_per_s=1 << 20)
    assert _asked(Known(running), None) == 1 << 20
    assert _asked(Known(running), 2 << 20) == 2 << 20
    assert _asked(Known(running), 0) == 0
    ended = Balance(bytes_per_s=1 << 20)
    assert _asked(Known(ended), None) == 0


class Cluster:
    """Three nodes as the leader of the catalog sees them, with one partition, and its clock."""

    def __init__(self, balance: Balance) -> None:
        self.balance = balance
        self.is_here, self.id = True, ONE
        self.level = 9
        self.leader = ONE
        self.away: set[NodeId] = set()
        self.full: tuple[NodeId, ...] = HERE
        self.partition = Partition(WHOLE, TopicId(1), 0, HERE, ())
        self.now = 1_000.0
        self.submitted: list[Any] = []
        self.catalog = self.peers = self
        self.config = SimpleNamespace(rebalance_after_s=60.0, rebalance_bytes_per_s=7 << 20)
        self.balancing = Balancing(cast("Any", self), cast("Any", self), clock=lambda: self.now)

    def leader_of(self, _: RaftGroupId) -> NodeId:
        return self.leader

    def is_up(self, node: NodeId) -> bool:
        return node not in self.away

    def placeable(self) -> list[Any]:
        return [SimpleNamespace(id=one) for one in HERE]

    def partitions(self) -> list[Partition]:
        return [self.partition]

    def name_of(self, _: RaftGroupId) -> str:
        return "orders partition 0"

    async def in_sync(self, _: Sequence[Partition]) -> dict[RaftGroupId, tuple[NodeId, ...]]:
        return {WHOLE: self.full}

    async def catch_up(self) -> None:
        pass

    async def submit(self, command: Any) -> None:
        self.submitted.append(command)

    def looked_after(self, seconds: float) -> list[Any]:
        """Let the leader look once more, so much later; return what it has asked for by now."""
        self.now += seconds
        asyncio.run(self.balancing._look())
        return self.submitted


CHANGED = Balance(is_automatic=True, changed_at=Micros(5))
BEGIN = BalanceBegin(changed_at=Micros(5), bytes_per_s=7 << 20)


def test_it_begins_by_itself_a_while_after_nodes_have_changed_at_its_own_pace() -> None:
    cluster = Cluster(CHANGED)
    assert cluster.looked_after(0) == []
    assert cluster.looked_after(59) == []
    assert cluster.looked_after(1) == [BEGIN]


def test_nothing_begins_by_itself_if_nodes_have_not_changed() -> None:
    cluster = Cluster(Balance(is_automatic=True))
    cluster.looked_after(0)
    assert cluster.looked_after(900) == []


def test_it_waits_while_a_node_is_away_and_for_a_while_after() -> None:
    cluster = Cluster(CHANGED)
    cluster.looked_after(0)
    cluster.away = {THREE}
    assert cluster.looked_after(900) == []
    cluster.away = set()
    assert cluster.looked_after(59) == []
    assert cluster.looked_after(1) == [BEGIN]


def test_it_waits_while_a_partition_lacks_a_replica_or_moves() -> None:
    cluster = Cluster(CHANGED)
    cluster.looked_after(0)
    cluster.full = (ONE, TWO)
    assert cluster.looked_after(900) == []
    cluster.full = HERE
    cluster.partition = Partition(WHOLE, TopicId(1), 0, HERE, (), target=(ONE, TWO, FOUR))
    assert cluster.looked_after(1) == []
    cluster.partition = Partition(WHOLE, TopicId(1), 0, HERE, ())
    assert cluster.looked_after(1) == [BEGIN]


def test_who_has_just_become_the_leader_waits_from_then_on() -> None:
    cluster = Cluster(CHANGED)
    cluster.looked_after(0)
    cluster.leader = TWO
    assert cluster.looked_after(59) == []
    cluster.leader = ONE
    assert cluster.looked_after(1) == []
    assert cluster.looked_after(60) == [BEGIN]


def test_what_began_by_itself_stops_for_any_partition_that_lacks_a_replica() -> None:
    unasked = Cluster(Balance(begun_at=Micros(5), is_automatic=True, is_by_itself=True))
    asked = Cluster(Balance(begun_at=Micros(5), is_automatic=True))
    for cluster in (unasked, asked):
        cluster.full = (ONE, TWO)
        asyncio.run(cluster.balancing._hindered())
        cluster.now += 60
    assert asyncio.run(unasked.balancing._hindered()) == "orders partition 0 lacks a replica"
    assert asyncio.run(asked.balancing._hindered()) == "", "others are not held up by it"


BEGUN = Balance(begun_at=Micros(9), is_automatic=True, is_by_itself=True)


def test_what_has_begun_by_itself_does_not_wait_a_second_time() -> None:
    cluster = Cluster(CHANGED)
    cluster.looked_after(0)
    assert cluster.looked_after(60) == [BEGIN]
    cluster.balance = BEGUN  # the change is done with
    assert asyncio.run(cluster.balancing._hindered()) == ""
    cluster.balance = msgspec.structs.replace(BEGUN, changed_at=Micros(5))
    waits = asyncio.run(cluster.balancing._hindered())
    assert waits.startswith("not every node"), "another change, of whatever time"


def test_nothing_begins_if_somebody_chose_otherwise_while_the_leader_looked() -> None:
    cluster = Cluster(CHANGED)
    cluster.looked_after(0)

    async def hear() -> None:
        cluster.balance = Balance()

    cluster.catch_up = hear  # type: ignore[method-assign]
    assert cluster.looked_after(60) == []
