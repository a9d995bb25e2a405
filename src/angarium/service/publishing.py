"""Publishing behind the contract: check the batches, find the leader, answer as the mode says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

from angarium.api import Ack
from angarium.batch import Batch
from angarium.batch.peeking import producer_in
from angarium.batch.plain import is_plain_and_sound
from angarium.errors import (
    AngariumError,
    InvalidArgument,
    LayoutChanged,
    TooLarge,
    no_partition,
)
from angarium.machine.keys import KEYED_FROM
from angarium.machine.outcomes import Appended, Duplicate, Refused
from angarium.modes import DeliveryMode
from angarium.replica.acks import Dealt, Publishing
from angarium.service.admission import check_fit, check_passing, check_writable
from angarium.settling import settling
from angarium.wire.operations import Operation, PublishAnswer, PublishHeader

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api import PublishRequest
    from angarium.ids import Buffer
    from angarium.machine.catalog import Partition, Topic
    from angarium.machine.outcomes import Outcome
    from angarium.replica.acks import Published
    from angarium.service.dispatching import Dispatcher
    from angarium.service.own_node import OwnNode
    from angarium.service.topics import Topics

Answer: TypeAlias = "Callable[[tuple[Ack, ...] | AngariumError], None]"
"""Told once what became of a publish: an acknowledgement for each batch, or why there is none."""


class Publisher:
    """Takes publishes for any partition of the cluster."""

    def __init__(self, node: OwnNode, topics: Topics, dispatcher: Dispatcher) -> None:
        self._node = node
        self._topics = topics
        self._dispatcher = dispatcher

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        """Store batches here if this node leads their partition, else through its leader."""
        future: asyncio.Future[tuple[Ack, ...]] = asyncio.get_running_loop().create_future()
        settle = settling(future)
        if not self.begin(request, settle):
            await self._topics.find_or_make(request.topic)
            partition = await self._topics.partition(request.topic, request.partition)
            if not self.begin(request, settle):
                return await self._forward(request, partition)
        return await future

    def begin(self, request: PublishRequest, answer: Answer) -> bool:
        """Take batches if this node leads their partition; `answer` is called when the mode says.

        False, with nothing done, where somebody else has to be asked first. Raises what is wrong
        with the request. No task is made on this way, for most publishes take it.
        """
        check_writable(request.topic)
        topic = self._node.catalog.find(request.topic)
        if topic is None:
            return False
        if request.partition < 0:
            raise no_partition(topic.name, len(topic.groups), request.partition)
        if request.partition >= len(topic.groups):
            return False  # it may have been added a moment ago, elsewhere
        if not request.batches:
            raise InvalidArgument("a publish carries at least one batch")
        if request.layout is not None and topic.begun and self._is_long_ago(topic, request):
            answer(_of_an_earlier_layout(request, topic.layout))
            return True
        group = topic.groups[request.partition]
        replica = self._node.replicas.leading(group)
        if replica is None:
            return False
        self._node.quorum.check(group)
        settings = topic.settings
        if settings.leaders_follow:
            self._node.origins.count(group, self._region_of(request))
        mode = settings.mode if request.mode is None else request.mode
        batches = [checked(one, settings.batch_bytes_max) for one in request.batches]
        check_fit(batches, settings, now=self._node.now)
        if mode is DeliveryMode.PERFORMANCE:
            check_passing(batches)
            answer(tuple(self._dispatcher.publish(group, request, batches, replica.raft.term)))
            return True

        def reply(published: Published | AngariumError) -> None:
            if isinstance(published, AngariumError):
                answer(published)
            else:
                answer(tuple([_ack(request, published, one) for one in published.outcomes]))

        dealt = None
        if request.layout is not None:
            dealt = Dealt(request.layout, topic.born(request.partition))
        self._node.driver.publish(group, Publishing(batches, mode, reply, dealt))
        return True

    async def _forward(self, request: PublishRequest, partition: Partition) -> tuple[Ack, ...]:
        leader = await self._topics.leader(partition)
        if leader == self._node.id:
            raise self._node.quorum.no_leader(partition.group)
        frame = await self._node.peers.request(
            leader,
            Operation.PUBLISH,
            PublishHeader(
                request.topic,
                request.partition,
                request.mode,
                request.layout,
                self._region_of(request),
            ),
            request.batches,
            timeout_s=self._node.config.request_timeout_s,
        )
        return frame.read(PublishAnswer).acks

    def _is_long_ago(self, topic: Topic, request: PublishRequest) -> bool:
        """Return whether a request's layout ended too long ago for its keys to be remembered.

        Twice as long as they are: the partition decides by its own time, and what is answered here
        stays right while this node's clock is ahead by less than keys are remembered.
        """
        assert request.layout is not None
        ended = topic.ended(request.layout)
        if ended is None or self._node.now() - ended <= 2 * topic.settings.limits.key_micros_max:
            return False
        return all(producer_in(one) >= KEYED_FROM for one in request.batches)

    def _region_of(self, request: PublishRequest) -> str:
        """Return where a publish comes from: the publisher's region, or this node's.

        One that came here though its publisher does not say where it is counts for no region.
        """
        return self._node.config.region if request.region is None else request.region


def checked(data: Buffer, bytes_max: int) -> bytearray:
    """Return a batch that is safe to store, in a buffer of its own; raises `InvalidBatch`."""
    if len(data) > bytes_max:
        raise TooLarge(
            "batch_bytes_max", f"a batch of {len(data)} bytes; the topic takes {bytes_max}"
        )
    if not is_plain_and_sound(data) and Batch.parse(data).is_stamped:
        raise InvalidArgument("a batch to publish carries no stamp; the leader stamps it")
    return bytearray(data)


def _of_an_earlier_layout(request: PublishRequest, layout: int) -> tuple[Ack, ...]:
    """Return the answer of a partition that is fenced against a request's layout, and has nothing
    of it."""
    refusal = Ack(
        mode=DeliveryMode.CONSISTENT,
        topic=request.topic,
        partition=request.partition,
        code=LayoutChanged.code,
        message=f"dealt by layout {request.layout}; the topic's is {layout} by now",
    )
    return (refusal,) * len(request.batches)


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
