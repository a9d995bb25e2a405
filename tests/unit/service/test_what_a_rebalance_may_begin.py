"""Of a plan, only moves of partitions begin that have all of their replicas; and a pace stays."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from angarium.ids import NodeId, RaftGroupId, TopicId
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
    return Balancing(cast("Any", SimpleNamespace(catalog=known)), cast("Any", FullReplicas()))


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
