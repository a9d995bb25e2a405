"""Transactions that are under way in a topic while it is given partitions.

A transaction stages in one partition after the other, all of it dealt by one layout. A fence that
came between two of its stages would leave it no way to its end: the second is refused, and the
first keeps the layout of the second from coming into force. So the leaders of a topic set no fence
while anything is staged in any of its older partitions; meanwhile a transaction that has begun
there may go on staging, and no other may begin. This keeps nobody's order, which is the business of
the fence itself (docs/decisions/0025): where an answer is late or wrong, a transaction is aborted
that could have ended.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError
from angarium.wire.operations import Operation
from angarium.wire.operations.transactions import StagedHeader, StagedHere

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.ids import NodeId, RaftGroupId
    from angarium.machine.catalog import Topic
    from angarium.node.node import Node

ANSWER_S_MAX: Final = 1.0
"""How long another node may take; it is asked again by itself."""


class Spanning:
    """Asks the leaders of a topic's older partitions, on this node and on others."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def seen_here(self, header: StagedHeader) -> StagedHere:
        """Return what is staged in partitions that this node leads."""
        replicas = self._node.replicas
        led: list[RaftGroupId] = []
        held: list[RaftGroupId] = []
        begun = False
        for group in header.groups:
            replica = replicas.leading(group)
            if replica is None:
                continue
            led.append(group)
            transactions = replica.partition.machine.numbering.transactions
            if transactions.staged_bytes:
                held.append(group)
            series = transactions.series.get(header.name) if header.name else None
            # Whichever run of its owner: what an earlier one has left is dropped by its commit.
            attempts = () if series is None else series.attempts
            begun |= any(one.sequence == header.sequence for one in attempts)
        return StagedHere(tuple(led), tuple(held), begun)

    async def may_fence(self, topic: Topic) -> bool:
        """Tell whether the leaders of all older partitions say that nothing is staged there."""
        groups = older(topic)
        led: set[RaftGroupId] = set()
        for answer in await self._answers(StagedHeader(groups)):
            if answer.held:
                return False
            led.update(answer.led)
        # Without the last of them the layout would not come into force; until then, publishers go
        # on by the one that is.
        return led.issuperset(groups)

    async def has_begun(self, topic: Topic, *, name: str, sequence: int) -> bool:
        """Tell whether a transaction has staged anything in one of the older partitions."""
        answers = await self._answers(StagedHeader(older(topic), name, sequence))
        return any(answer.begun for answer in answers)

    async def _answers(self, header: StagedHeader) -> list[StagedHere]:
        here = self.seen_here(header)
        if here.begun or len(here.led) == len(header.groups):
            return [here]
        others = self._others(set(header.groups).difference(here.led))
        asked = await asyncio.gather(*(self._ask(node, header) for node in others))
        return [here, *asked]

    def _others(self, groups: Iterable[RaftGroupId]) -> set[NodeId]:
        """Return who may lead them: as this node has heard, or else everybody who has a replica."""
        found: set[NodeId] = set()
        for group in groups:
            leader = self._node.leader_of(group)
            partition = self._node.catalog.partition_in(group)
            if leader is not None and leader != self._node.id:
                found.add(leader)
            elif partition is not None:
                found.update(partition.replicas)
        return {one for one in found if one != self._node.id and self._node.peers.is_up(one)}

    async def _ask(self, node: NodeId, header: StagedHeader) -> StagedHere:
        try:
            frame = await self._node.peers.request(
                node, Operation.STAGED, header, timeout_s=ANSWER_S_MAX
            )
            return frame.read(StagedHere)
        except AngariumError as error:
            # A release that does not know the question sets its fences without asking, too.
            return StagedHere() if error.retriable else StagedHere(led=header.groups)


def older(topic: Topic) -> tuple[RaftGroupId, ...]:
    """Return the partitions that were there before the newest layout."""
    return topic.groups if len(topic.layouts) < 2 else topic.groups[: topic.layouts[-2]]
