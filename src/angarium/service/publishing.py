"""Publishing behind the contract: check the batches, find the leader, answer as the mode says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.api import Ack
from angarium.batch import Batch
from angarium.errors import AngariumError, InvalidArgument, LimitExceeded, NotLeader
from angarium.machine.outcomes import Appended, Duplicate, Refused
from angarium.modes import DeliveryMode
from angarium.replica.acks import Publishing
from angarium.wire.operations import Operation, PublishAnswer, PublishHeader

if TYPE_CHECKING:
    from angarium.api import PublishRequest
    from angarium.ids import Buffer
    from angarium.machine.catalog import Partition
    from angarium.machine.outcomes import Outcome
    from angarium.node.node import Node
    from angarium.replica.acks import Published
    from angarium.service.dispatching import Dispatcher
    from angarium.service.topics import TopicDesk


class PublishDesk:
    """Takes publishes for any partition of the cluster."""

    def __init__(self, node: Node, topics: TopicDesk, dispatcher: Dispatcher) -> None:
        self._node = node
        self._topics = topics
        self._dispatcher = dispatcher

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        """Store batches here if this node leads their partition, else through its leader."""
        topic = await self._topics.find_or_make(request.topic)
        place = self._node.catalog.partition(request.topic, request.partition)
        mode = topic.settings.mode if request.mode is None else request.mode
        if not request.batches:
            raise InvalidArgument("a publish carries at least one batch")
        replica = self._node.host.replicas.get(place.group)
        if replica is None or not replica.may_serve:
            return await self._forward(request, place)
        batches = [_checked(one, topic.settings.batch_bytes_max) for one in request.batches]
        if mode is DeliveryMode.PERFORMANCE:
            return tuple(self._dispatcher.publish(request, batches, replica.raft.term))
        published = await self._store(place, batches, mode)
        return tuple(_ack(request, published, outcome) for outcome in published.outcomes)

    async def _store(
        self, place: Partition, batches: list[bytearray], mode: DeliveryMode
    ) -> Published:
        future: asyncio.Future[Published] = asyncio.get_running_loop().create_future()

        def settle(answer: Published | AngariumError) -> None:
            if future.done():
                return  # the caller has gone; what was stored stays stored
            if isinstance(answer, AngariumError):
                future.set_exception(answer)
            else:
                future.set_result(answer)

        self._node.publish(place.group, Publishing(batches, mode, settle))
        return await future

    async def _forward(self, request: PublishRequest, place: Partition) -> tuple[Ack, ...]:
        leader = await self._topics.leader(place)
        if leader == self._node.id:
            raise NotLeader(f"group {place.group} is between two leaders")
        frame = await self._node.peers.request(
            leader,
            Operation.PUBLISH,
            PublishHeader(request.topic, request.partition, request.mode),
            request.batches,
            timeout_s=self._node.config.request_timeout_s,
        )
        return frame.read(PublishAnswer).acks


def _checked(data: Buffer, bytes_max: int) -> bytearray:
    """Return a batch that is safe to store, in a buffer of its own; raises `InvalidBatch`."""
    if len(data) > bytes_max:
        raise LimitExceeded(
            "batch_bytes_max", f"a batch of {len(data)} bytes; the topic takes {bytes_max}"
        )
    batch = Batch.parse(data)
    if batch.is_stamped:
        raise InvalidArgument("a batch to publish carries no stamp; the leader stamps it")
    return bytearray(data)


def _ack(request: PublishRequest, published: Published, outcome: Outcome) -> Ack:
    match outcome:
        case Appended() | Duplicate():
            return Ack(
                mode=published.mode,
                topic=request.topic,
                partition=request.partition,
                base_offset=outcome.base_offset,
                next_offset=outcome.next_offset,
                append_time=outcome.append_time,
                term=published.term,
                provisional=published.provisional,
                duplicate=isinstance(outcome, Duplicate),
            )
        case Refused():
            return Ack(
                mode=published.mode,
                topic=request.topic,
                partition=request.partition,
                code=outcome.code,
                message=outcome.message,
            )
        case _:
            raise AssertionError(f"an append has no outcome {outcome}")
