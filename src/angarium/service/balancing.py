"""Evening out behind the contract: begun by anybody, carried out by the catalog's leader.

The catalog says that a run goes on, and which partitions are on their way. What is left is planned
anew (`node.balance`) whenever something more may begin, so it does not matter who leads the catalog
then. A move is a `Reassign`, as in a drain: a newcomer listens until it has caught up, then votes
from the joint change on in which another leaves. Nothing begins while a node is silent, nor with a
partition that has not all of its replicas.

A run that nobody asked for is more careful: it begins, and goes on, only when every node has been
there and the same for a while (`Calm`), nothing else is on its way, and no partition at all lacks a
replica. Its pace is a setting.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.api.balance import BalanceInfo, MoveInfo
from angarium.errors import AngariumError, InvalidArgument, PreconditionFailed
from angarium.ids import CATALOG_GROUP
from angarium.machine.catalog import (
    BYTES_PER_S_MIN,
    BalanceBegin,
    BalanceChoose,
    BalanceEnd,
    Reassign,
)
from angarium.node.balance import COPIES_MAX, Calm, next_moves, planned
from angarium.node.release import REBALANCE_LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.ids import NodeId, RaftGroupId
    from angarium.machine.catalog import Partition
    from angarium.node.balance import Move
    from angarium.service.own_node import MemberNode
    from angarium.service.partitions import Partitions

LOOK_S: Final = 0.5
"""How often the catalog's leader looks whether something more may begin."""

LOOKED_AT_MAX: Final = 256
"""Moves of a plan that are looked at in one round, whether their partitions are whole."""

MOVES_SHOWN_MAX: Final = 1_000
"""Moves in one answer; how many there are is said besides."""

PACE_S: Final = 30.0
"""Over how long the pace of copies is measured."""

_log = logging.getLogger(__name__)


class Balancing:
    """One node's share of it; implements `api.balance.BalanceBroker`."""

    def __init__(
        self,
        node: MemberNode,
        partitions: Partitions,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node = node
        self._partitions = partitions
        self._clock = clock
        self._seen: list[tuple[float, int]] = []
        """When how many bytes were left, of late."""
        self._told = ""
        self._calm = Calm(wait=node.config.rebalance_after_s)

    # --- the contract -------------------------------------------------------------------------

    async def describe_balance(self) -> BalanceInfo:
        """Return how it stands, and what a rebalance would move now."""
        catalog = self._node.catalog
        moving = self._moving()
        sizes = await self._partitions.stored_bytes(list(catalog.partitions()))
        copied = await self._partitions.copied_bytes(moving)
        plan = await self._plan(sizes)
        moves = [
            *(
                self._told_of(one, one.target, sizes, copied=copied.get(one.group, 0), begun=True)
                for one in moving
                if catalog.partition_in(one.group) is not None  # not deleted meanwhile
            ),
            *(
                self._told_of(one, move.target, sizes)
                for move in plan
                if (one := catalog.partition_in(move.group)) is not None
            ),
        ]
        left = _left_bytes(moves)
        balance = catalog.balance
        # Drains, and what a change of a topic brings along, go on without a run.
        begun = moves if balance.is_running else [one for one in moves if one.is_under_way]
        return BalanceInfo(
            is_running=balance.is_running,
            begun_at=balance.begun_at,
            bytes_per_s=balance.bytes_per_s,
            is_automatic=balance.is_automatic,
            is_due=balance.changed_at > 0,
            is_by_itself=balance.is_by_itself,
            moves=tuple(moves[:MOVES_SHOWN_MAX]),
            moves_left=len(moves),
            bytes_left=left,
            time_left_ms=self._time_left_ms(_left_bytes(begun)) if begun else None,
            waits_for=self._hindrance() if plan else "",
        )

    async def rebalance(self, *, bytes_per_s: int | None = None) -> BalanceInfo:
        """Begin, or go on at another pace."""
        self._check_level()
        if bytes_per_s and bytes_per_s < BYTES_PER_S_MIN:
            raise InvalidArgument(
                f"copies need at least {BYTES_PER_S_MIN} bytes a second, {bytes_per_s} are too few"
            )
        if bytes_per_s is None:
            # Said again it must not lift the pace that somebody has set.
            await self._node.catalog.catch_up()
            balance = self._node.catalog.balance
            bytes_per_s = balance.bytes_per_s if balance.is_running else 0
        await self._node.catalog.submit(BalanceBegin(bytes_per_s=bytes_per_s))
        return await self.describe_balance()

    async def cancel_rebalance(self) -> BalanceInfo:
        """Begin nothing more, and let what is on its way go back."""
        self._check_level()
        await self._node.catalog.catch_up()
        balance = self._node.catalog.balance
        if not balance.is_running:
            raise PreconditionFailed("nothing is being rebalanced")
        end = BalanceEnd(begun_at=balance.begun_at, is_called_off=True)
        await self._node.catalog.submit(end)
        return await self.describe_balance()

    async def set_auto_balance(self, *, automatic: bool) -> BalanceInfo:
        """Say whether it begins by itself when a node has come, come back or been drained."""
        self._check_level()
        await self._node.catalog.submit(BalanceChoose(is_automatic=automatic))
        return await self.describe_balance()

    def _check_level(self) -> None:
        level = self._node.catalog.level
        if level < REBALANCE_LEVEL:
            raise PreconditionFailed(
                f"to rebalance needs feature level {REBALANCE_LEVEL}, the cluster works at {level}:"
                " upgrade every node, then `angarium cluster raise-level`"
            )

    # --- carrying it out ----------------------------------------------------------------------

    async def run(self) -> None:
        """As long as this node leads the catalog, begin what is planned, a few at a time."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._look()
            except AngariumError as error:
                _log.debug("rebalancing waits: %s", error)

    async def _look(self) -> None:
        if not self._is_mine():
            self._calm.forget()
        elif self._node.catalog.balance.is_running:
            await self._round()
        elif self._node.catalog.balance.changed_at:
            await self._consider()

    def _is_mine(self) -> bool:
        node = self._node
        return node.catalog.is_here and node.leader_of(CATALOG_GROUP) == node.id

    async def _consider(self) -> None:
        """Begin though nobody asked for it, if it is time."""
        catalog, config = self._node.catalog, self._node.config
        await catalog.catch_up()
        balance = catalog.balance
        if balance.is_running or not balance.changed_at:
            return  # somebody began, or chose otherwise, while this node asked
        if not self._is_calm() or self._moving():
            return
        if await self._lacking():
            return
        _log.info("nodes have changed: rebalancing begins by itself")
        begin = BalanceBegin(
            bytes_per_s=config.rebalance_bytes_per_s, changed_at=balance.changed_at
        )
        await catalog.submit(begin)

    def _is_calm(self) -> bool:
        left = self._calm.look(
            changed_at=self._node.catalog.balance.changed_at,
            is_anybody_away=bool(self._silent()),
            now=self._clock(),
        )
        return left <= 0

    async def _round(self) -> None:
        catalog = self._node.catalog
        await catalog.catch_up()  # it still leads, and knows of all that was decided
        balance, moving = catalog.balance, self._moving()
        hindrance = await self._hindered()
        if hindrance != self._told:
            self._told = hindrance
            _log.info("rebalancing %s", f"waits: {hindrance}" if hindrance else "goes on")
        if hindrance or not balance.is_running:
            return
        if sum(bool(set(one.target) - set(one.replicas)) for one in moving) >= COPIES_MAX:
            return  # nothing could begin
        partitions = list(catalog.partitions())
        sizes = await self._partitions.stored_bytes(partitions)
        if any(one.group not in sizes for one in partitions):
            return  # one that counts as empty would look lighter than it is
        plan = await self._plan(sizes)
        if not plan and not moving:
            await catalog.submit(BalanceEnd(begun_at=balance.begun_at))
            _log.info("rebalanced: nothing is left to move")
            return
        await self._begin(next_moves(await self._possible(plan), moving))

    async def _possible(self, plan: Sequence[Move]) -> list[Move]:
        """Return the moves of partitions that are whole: others wait, and hold up none of them."""
        catalog = self._node.catalog
        looked_at = plan[:LOOKED_AT_MAX]
        found = [catalog.partition_in(move.group) for move in looked_at]
        full = await self._partitions.in_sync([one for one in found if one is not None])
        return [
            move
            for move, partition in zip(looked_at, found, strict=True)
            # Who is preferred as the leader may change at any time: it has to catch up to be it.
            if partition is not None
            and (move.arriving is None or set(partition.replicas) <= set(full.get(move.group, ())))
        ]

    async def _begin(self, moves: Sequence[Move]) -> None:
        """Have the catalog say where partitions shall live."""
        catalog = self._node.catalog
        for move in moves:
            _log.info(
                "moving %s from %s to %s",
                catalog.name_of(move.group),
                list(move.replicas),
                list(move.target),
            )
            wish = Reassign(group=move.group, replicas=move.target, replaces=move.replicas)
            with suppress(PreconditionFailed):  # drained or moved meanwhile: the next plan knows
                await catalog.submit(wish)

    def _moving(self) -> list[Partition]:
        return [one for one in self._node.catalog.partitions() if one.target]

    def _hindrance(self) -> str:
        """Say why nothing more may begin now; empty if it may."""
        silent = self._silent()
        if not silent:
            return ""
        named = ", ".join(f"node {one}" for one in silent[:5])
        return f"{named} cannot be reached; bring it back, or drain and remove it"

    def _silent(self) -> list[NodeId]:
        node = self._node
        return [
            one.id
            for one in node.catalog.placeable()
            if one.id != node.id and not node.peers.is_up(one.id)
        ]

    async def _hindered(self) -> str:
        """Say why the run that goes on begins nothing more now; empty if it does."""
        is_calm = self._is_calm()  # always asked: it notes who is away
        hindrance = self._hindrance()
        if hindrance or not self._node.catalog.balance.is_by_itself:
            return hindrance
        if not is_calm:
            return f"not every node has been there for {self._node.config.rebalance_after_s:g} s"
        lacking = await self._lacking()
        return f"{self._node.catalog.name_of(lacking)} lacks a replica" if lacking else ""

    async def _lacking(self) -> RaftGroupId | None:
        """Return a partition that stays where it is and has not all of its replicas, if any."""
        partitions = [one for one in self._node.catalog.partitions() if not one.target]
        full = await self._partitions.in_sync(partitions)
        return next(
            (one.group for one in partitions if not {*one.replicas} <= {*full.get(one.group, ())}),
            None,
        )

    async def _plan(self, sizes: dict[RaftGroupId, int]) -> list[Move]:
        catalog = self._node.catalog
        # With very many partitions it takes as long as an election timeout: not on the loop.
        return await asyncio.to_thread(planned, catalog.placeable(), catalog.located(sizes))

    # --- telling ------------------------------------------------------------------------------

    def _told_of(
        self,
        partition: Partition,
        target: tuple[NodeId, ...],
        sizes: dict[RaftGroupId, int],
        *,
        copied: int = 0,
        begun: bool = False,
    ) -> MoveInfo:
        size = sizes.get(partition.group, 0)
        return MoveInfo(
            topic=self._node.catalog.topic_of(partition).name,
            partition=partition.number,
            replicas=partition.replicas,
            target=target,
            is_under_way=begun,
            stored_bytes=size,
            copied_bytes=min(copied, size),
        )

    def _time_left_ms(self, left: int) -> int | None:
        """Return how long it takes at the pace since the first look of late; None at the first."""
        now = self._clock()
        recent = [one for one in self._seen if one[0] > now - PACE_S and one[1] >= left]
        self._seen = [*recent, (now, left)]
        begun, before = self._seen[0]
        if not left:
            return 0
        if left == before or now <= begun:
            return None
        return round(1_000 * left * (now - begun) / (before - left))


def _left_bytes(moves: Sequence[MoveInfo]) -> int:
    """Return how much these moves have yet to copy."""
    return sum(
        max(one.stored_bytes - one.copied_bytes, 0)
        for one in moves
        if set(one.target) != set(one.replicas)
    )
