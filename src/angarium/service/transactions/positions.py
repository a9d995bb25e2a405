"""Where groups stand, for transactions that acknowledge: asked of the partition's leader."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.api.transactions import Position
from angarium.errors import InvalidArgument, NotFound
from angarium.ids import Offset
from angarium.kinds import GroupKind
from angarium.machine.changes import Open
from angarium.machine.commands import Cursors
from angarium.settling import settling
from angarium.wire.operations.numbers import Operation
from angarium.wire.operations.transactions import SettledByHeader

if TYPE_CHECKING:
    from angarium.api.transactions import GroupAck
    from angarium.machine.changes import StagedAck
    from angarium.replica.acks import Published
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.service.own_node import OwnNode
    from angarium.service.topics import Topics

OWN_PREFIX: Final = "angarium."
"""Groups that the cluster keeps for itself. They have no members, and are made on first use."""


class Positions:
    """Reads the positions of groups anywhere in the cluster."""

    def __init__(self, node: OwnNode, topics: Topics) -> None:
        self._node = node
        self._topics = topics

    async def settled_by(self, group: str, *, topic: str, partition: int) -> Position:
        """Return what a group has settled in a partition; nothing if it has never been here."""
        found = await self._topics.partition(topic, partition)
        replica = self._node.replicas.leading(found.group)
        if replica is not None:
            return await self._here(replica, group)
        leader = await self._topics.leader(found)
        if leader == self._node.id:
            raise self._node.quorum.no_leader(found.group)
        frame = await self._node.peers.request(
            leader,
            Operation.SETTLED_BY,
            SettledByHeader(group, topic, partition),
            timeout_s=self._node.config.request_timeout_s,
        )
        return frame.read(Position)

    async def staged_acks(
        self, acks: tuple[GroupAck, ...], *, topic: str, partition: int
    ) -> tuple[StagedAck, ...]:
        """Return acknowledgements as the machine stages them."""
        staged: list[StagedAck] = []
        for ack in acks:
            generation = ack.generation
            if generation is None:
                position = await self.settled_by(ack.group, topic=topic, partition=partition)
                generation = position.generation
            if generation is None:
                raise NotFound(f"there is no group {ack.group!r} in {topic!r}[{partition}]")
            if len(ack.ranges) & 1:
                raise InvalidArgument("a range has two ends")
            pairs = zip(ack.ranges[::2], ack.ranges[1::2], strict=True)
            staged += [(ack.group, generation, start, end) for start, end in pairs]
        return tuple(staged)

    async def _here(self, replica: PartitionReplica, name: str) -> Position:
        machine = replica.partition.machine
        if name not in machine.groups.by_name and name.startswith(OWN_PREFIX):
            await self._open(replica, name)
        group = machine.groups.by_name.get(name)
        if group is None:
            return Position(floor=Offset(machine.start_offset))
        ranges = tuple(end for pair in group.acked.ranges() for end in pair)
        return Position(floor=Offset(group.floor), ranges=ranges, generation=int(group.generation))

    async def _open(self, replica: PartitionReplica, name: str) -> None:
        future: asyncio.Future[Published] = asyncio.get_running_loop().create_future()
        floor = replica.partition.machine.start_offset
        command = Cursors(changes=(Open(name, GroupKind.QUEUE, floor),))
        replica.partition.submit(command, now=self._node.now(), reply=settling(future))
        replica.poke()
        self._node.wake()
        async with asyncio.timeout(self._node.config.request_timeout_s):
            await future
