"""Offsets without records: a gap that the partition's log declares, so that every replica has it.

An offset is reserved by an entry of the partition's own log. It is given away once, on whichever
node it was asked for and whatever fails meanwhile; an answer that got lost leaves a gap, never a
number that two callers have.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.errors import AngariumError, InvalidArgument
from angarium.machine import Reserve
from angarium.machine.outcomes import Refused, Reserved
from angarium.node.deadlines import in_time
from angarium.service.admission import check_writable
from angarium.wire.error_codec import Failure, error_of
from angarium.wire.operations import Operation, ReserveAnswer, ReserveHeader

if TYPE_CHECKING:
    from angarium.ids import Offset
    from angarium.replica.acks import Published
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.service.own_node import OwnNode
    from angarium.service.topics import Topics


class Reserving:
    """Reserves offsets of any partition of the cluster."""

    def __init__(self, node: OwnNode, topics: Topics) -> None:
        self._node = node
        self._topics = topics

    async def reserve(self, topic: str, number: int, count: int) -> Offset:
        """Reserve here if this node leads the partition, else through its leader."""
        check_writable(topic)
        if count < 1:
            raise InvalidArgument(f"at least one offset is reserved, not {count}")
        node = self._node
        await self._topics.find_or_make(topic)
        partition = await self._topics.partition(topic, number)
        replica = node.replicas.leading(partition.group)
        if replica is not None:
            return await self._submit(replica, count)
        leader = await self._topics.leader(partition)
        if leader == node.id:
            raise node.quorum.no_leader(partition.group)
        frame = await node.peers.request(
            leader,
            Operation.RESERVE,
            ReserveHeader(topic, number, count),
            timeout_s=node.config.request_timeout_s,
        )
        return frame.read(ReserveAnswer).offset

    async def _submit(self, replica: PartitionReplica, count: int) -> Offset:
        node = self._node
        future: asyncio.Future[Published] = asyncio.get_running_loop().create_future()

        def settle(answer: Published | AngariumError) -> None:
            if future.done():
                return  # the caller has gone; the gap stays
            if isinstance(answer, AngariumError):
                future.set_exception(answer)
            else:
                future.set_result(answer)

        replica.partition.submit(Reserve(count=count), now=node.now(), reply=settle)
        replica.poke()
        node.wake()
        async with in_time(node.config.request_timeout_s, "reserving offsets"):
            outcome = (await future).outcomes[0]
        if isinstance(outcome, Refused):
            raise error_of(Failure(outcome.code, outcome.message))
        assert isinstance(outcome, Reserved)
        return outcome.base_offset
