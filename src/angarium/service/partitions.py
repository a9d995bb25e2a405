"""What is known of a partition: from this node's own replica, or from a node that has one.

Any node answers any client, so one without a replica asks: all partitions that one other node may
know of are asked for at once. Where nobody answers in time, what is not known stays None.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from angarium.api import PartitionInfo
from angarium.errors import AngariumError, NotLeader
from angarium.ids import NodeId, ReplicaId, node_of
from angarium.machine.catalog.regions import home_of
from angarium.wire.operations import Operation, PartitionsAnswer, PartitionSeen, PartitionsHeader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from angarium.ids import RaftGroupId
    from angarium.machine.catalog import Partition
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.service.dispatching import Dispatcher
    from angarium.service.own_node import OwnNode

ASKED_AT_ONCE_MAX = 1_000
"""Partitions in one question to another node; more are asked for one after the other."""

ANSWER_S_MAX = 1.0
"""How long another node may take. Then its partitions are shown without what only it knows."""


class Partitions:
    """Says who leads partitions, and what they hold."""

    def __init__(self, node: OwnNode, dispatcher: Dispatcher) -> None:
        self._node = node
        self._dispatcher = dispatcher

    def seen_here(
        self, groups: Iterable[RaftGroupId], *, with_sizes: bool = False
    ) -> tuple[PartitionSeen, ...]:
        """Return what this node's own replicas know; groups without one here are left out."""
        here = self._node.replicas.here
        return tuple(self._seen(group, with_size=with_sizes) for group in groups if group in here)

    async def stored_bytes(self, partitions: Sequence[Partition]) -> dict[RaftGroupId, int]:
        """Return what partitions hold, one copy of each; those are missing that nobody told of."""
        replicas = self._node.replicas
        held = {
            one.group: _held_bytes(replica)
            for one in partitions
            if (replica := replicas.full(one.group)) is not None
        }
        elsewhere = [one for one in partitions if one.group not in held]
        if elsewhere:
            for seen in (await self._ask(elsewhere, with_sizes=True)).values():
                if seen.stored_bytes is not None:
                    held[seen.group] = seen.stored_bytes
        return held

    async def copied_bytes(self, partitions: Sequence[Partition]) -> dict[RaftGroupId, int]:
        """Return what the newcomers of partitions that move have of them so far."""
        by_node: defaultdict[NodeId, list[RaftGroupId]] = defaultdict(list)
        for partition in partitions:
            for one in set(partition.target) - set(partition.replicas):
                by_node[one].append(partition.group)
        mine = self.seen_here(by_node.pop(self._node.id, []), with_sizes=True)
        up = [asked for asked in by_node.items() if self._node.peers.is_up(asked[0])]
        answers = await asyncio.gather(*(self._ask_one(*one, with_sizes=True) for one in up))
        seen = [*mine, *(one for answer in answers for one in answer)]
        return {one.group: one.stored_bytes or 0 for one in seen}

    async def describe(self, partitions: Sequence[Partition]) -> list[PartitionInfo]:
        """Return partitions as this node sees them, and where it has no share in one, others."""
        replicas = self._node.replicas
        here = {
            one.group: one
            for one in self.seen_here(partition.group for partition in partitions)
            if replicas.full(one.group) is not None
        }
        elsewhere = [
            # Where this node ought to have a replica and has not, it says so; where it has one
            # that lacks records, others know better.
            partition
            for partition in partitions
            if partition.group not in here
            and (partition.group in replicas.here or self._node.id not in partition.replicas)
        ]
        seen = here | await self._ask(elsewhere) if elsewhere else here
        return [self._info(partition, seen.get(partition.group)) for partition in partitions]

    async def in_sync(
        self, partitions: Sequence[Partition]
    ) -> dict[RaftGroupId, tuple[NodeId, ...]]:
        """Return the full replicas of partitions, as their leaders say; without one, nothing."""
        here = self.seen_here(partition.group for partition in partitions)
        seen = [*here, *await self._ask_all(partitions)]
        return {one.group: one.in_sync for one in seen if one.in_sync is not None}

    async def leader_elsewhere(self, partition: Partition) -> NodeId | None:
        """Return who leads a partition, as the other nodes that hold it say."""
        for one in await self._ask_all([partition]):
            if one.leader is not None:
                return one.leader
        return None

    async def _ask_all(self, partitions: Iterable[Partition]) -> list[PartitionSeen]:
        """Ask every other node that has a replica of one of these."""
        by_node: defaultdict[NodeId, list[RaftGroupId]] = defaultdict(list)
        for partition in partitions:
            for one in partition.replicas:
                if one != self._node.id and self._node.peers.is_up(one):
                    by_node[one].append(partition.group)
        answers = await asyncio.gather(*(self._ask_one(*asked) for asked in by_node.items()))
        return [one for answer in answers for one in answer]

    def _seen(self, group: RaftGroupId, *, with_size: bool = False) -> PartitionSeen:
        replica = self._node.replicas.here[group]
        return PartitionSeen(
            group=group,
            # One that only listens would name the last leader for ever, dead or alive.
            leader=self._node.leader_of(group) if self._node.quorum.is_led(group) else None,
            start_offset=replica.partition.log.start_offset,
            end_offset=replica.end_offset,
            in_sync=self._node.in_sync(group),
            handed_on=self._dispatcher.handed_on[group],
            stored_bytes=_held_bytes(replica) if with_size else None,
            fences=replica.partition.machine.fence_offsets,
        )

    def _info(self, partition: Partition, known: PartitionSeen | None) -> PartitionInfo:
        leader = None if known is None else known.leader
        trouble = "" if leader is not None else self._node.quorum.lasting(partition.group)
        topic = self._node.catalog.topic_of(partition)
        info = PartitionInfo(
            number=partition.number,
            replicas=partition.replicas,
            home=home_of(topic.settings, partition.number),
            readers=partition.readers,
            witness=partition.witness or None,
            trouble=trouble,
        )
        if known is None:
            return info
        return msgspec.structs.replace(
            info,
            leader=leader,
            start_offset=known.start_offset,
            end_offset=known.end_offset,
            in_sync=known.in_sync,
            handed_on=known.handed_on,
            fences=known.fences,
        )

    async def _ask(
        self, partitions: Iterable[Partition], *, with_sizes: bool = False
    ) -> dict[RaftGroupId, PartitionSeen]:
        by_node: defaultdict[NodeId, list[RaftGroupId]] = defaultdict(list)
        for partition in partitions:
            # The first replica is the preferred leader: it knows most. Readers know what they have.
            holders = (*partition.replicas, *partition.readers)
            up = next((one for one in holders if self._node.peers.is_up(one)), None)
            if up is not None:
                by_node[up].append(partition.group)
        answers = await asyncio.gather(
            *(self._ask_one(*asked, with_sizes=with_sizes) for asked in by_node.items())
        )
        return {one.group: one for answer in answers for one in answer}

    async def _ask_one(
        self, node: NodeId, groups: Sequence[RaftGroupId], *, with_sizes: bool = False
    ) -> list[PartitionSeen]:
        seen: list[PartitionSeen] = []
        try:
            for at in range(0, len(groups), ASKED_AT_ONCE_MAX):
                some = tuple(groups[at : at + ASKED_AT_ONCE_MAX])
                header = PartitionsHeader(some, with_sizes)
                frame = await self._node.peers.request(
                    node, Operation.PARTITIONS, header, timeout_s=ANSWER_S_MAX
                )
                seen += frame.read_large(PartitionsAnswer).seen
        except AngariumError:
            pass  # it went away, is too busy, or of a release that does not know the question
        return seen


def _held_bytes(replica: PartitionReplica) -> int:
    """Return what a replica holds, what is on its way to its segments included."""
    held = sum(one.bytes for one in replica.partition.log.segments)
    return max(held, replica.copied_bytes)


def named_leader(error: AngariumError) -> NodeId | None:
    """Return who leads, as a node says that does not; it may name the node or its replica."""
    leader = error.leader if isinstance(error, NotLeader) else None
    if not leader:
        return None
    return NodeId(leader) if leader < 1 << 15 else node_of(ReplicaId(leader))
