"""PublishStream: many requests under way, in order per partition, results as they come.

Each partition of a stream is a lane. A lane has one call to the broker under way; what arrives
meanwhile waits and goes out together in the next call. So order is kept without trusting anybody to
keep it, and a busy stream costs little per record. No record of one stream is ever packed together
with another stream's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from angarium.api import PublishRequest
from angarium.doors.grpc.lanes import MERGED_BYTES, Lane, Load, Waiting
from angarium.doors.grpc.publishing import (
    BATCH_BYTES,
    named_partition,
    packed_batches,
    record_batches,
)
from angarium.doors.grpc.records import key_of, single_batch
from angarium.doors.grpc.refusals import error_message
from angarium.doors.grpc.values import identity_of, mode_of, partition_of
from angarium.errors import InvalidArgument, NotFound
from angarium.proto.v1 import broker_pb2 as pb
from angarium.wire.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from angarium.api import Ack, Broker
    from angarium.doors.grpc.calls import Context
    from angarium.doors.grpc.limits import GrpcLimits
    from angarium.doors.partitions import TopicShapes

RESULTS_PER_MESSAGE: Final = 1_024
"""Results sent in one message at the most."""


class PublishStreaming:
    """The call that publishes a stream."""

    def __init__(
        self, broker: Broker, shapes: TopicShapes, limits: GrpcLimits, stopping: asyncio.Event
    ) -> None:
        self._broker = broker
        self._shapes = shapes
        self._limits = limits
        self._stopping = stopping

    async def publish_stream(self, requests: AsyncIterator[bytes], context: Context) -> None:
        """Serve one stream until the client has said everything and knows all results."""
        async with asyncio.TaskGroup() as tasks:
            stream = PublisherStream(self._broker, self._shapes, self._limits, tasks)
            tasks.create_task(stream.write_results(context))
            reading = tasks.create_task(stream.read_requests(requests))
            stopping = tasks.create_task(self._stopping.wait())
            await asyncio.wait((reading, stopping), return_when=asyncio.FIRST_COMPLETED)
            # What was taken is finished in either case; the group waits for it.
            reading.cancel()
            stopping.cancel()
            stream.finish()
        if self._stopping.is_set():
            raise Unreachable("this node is stopping; what it took has been answered")


class PublisherStream:
    """One stream: its lanes, and the results on their way back."""

    def __init__(
        self,
        broker: Broker,
        shapes: TopicShapes,
        limits: GrpcLimits,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._broker = broker
        self._shapes = shapes
        self._limits = limits
        self._tasks = tasks
        self._lanes: dict[tuple[str, int], Lane] = {}
        """Those with something to do."""
        self._results: deque[tuple[pb.PublishStreamResult, int]] = deque()
        """Results with the sizes of their requests."""
        self._requests = self._bytes = 0
        """Taken, and their results not yet sent."""
        self._has_news = asyncio.Event()
        """Results have come, or the last lane has ended."""
        self._has_room = asyncio.Event()
        self._is_finished = False

    # --- inwards ---------------------------------------------------------------------------

    async def read_requests(self, requests: AsyncIterator[bytes]) -> None:
        """Take requests, each when there is room, until the client has no more."""
        async for data in requests:
            request = pb.PublishStreamRequest.FromString(data)
            self._requests += 1
            self._bytes += len(data)
            try:
                await self._take(request, size=len(data))
            except Exception as error:  # each becomes the answer to this request alone
                result = pb.PublishStreamResult(number=request.number, error=error_message(error))
                self._results.append((result, len(data)))
                self._has_news.set()
            while (
                self._requests >= self._limits.stream_requests_max
                or self._bytes >= self._limits.stream_bytes_max
            ):
                self._has_room.clear()
                await self._has_room.wait()

    def finish(self) -> None:
        """No more requests come: end when all have been answered."""
        self._is_finished = True
        self._has_news.set()

    async def _take(self, request: pb.PublishStreamRequest, *, size: int) -> None:
        match request.WhichOneof("request"):
            case "publish":
                await self._take_record(request.number, request.publish, size)
            case "batch":
                await self._take_batch(request.number, request.batch, size)
            case _:
                raise InvalidArgument("a request of a stream is `publish` or `batch`")

    async def _take_record(self, number: int, request: pb.PublishRequest, size: int) -> None:
        topic, record = request.topic, request.record
        shape = self._shapes.known(topic) or await self._shapes.of(topic)
        if request.HasField("partition"):
            partition = partition_of(request.partition)
        else:
            partition = shape.partition_for(key_of(record))
        identity = identity_of(request)
        merged_bytes = min(MERGED_BYTES, shape.batch_bytes_max)
        waiting = Waiting(number=number, size=size, mode=mode_of(request.mode))
        # A producer's record has a number of its own, and a large one gains nothing by company. (A
        # request of a sixteenth fits a batch for certain, also if it consists of empty headers.)
        if identity.producer_id or size > merged_bytes // 16:
            waiting.batches = (single_batch(record, identity),)
        else:
            waiting.record = record
        self._queue(topic, partition, waiting, merged_bytes=merged_bytes)

    async def _take_batch(self, number: int, request: pb.PublishBatchRequest, size: int) -> None:
        topic = request.topic
        partition = named_partition(request)
        shape = self._shapes.known(topic) or await self._shapes.of(topic)
        if request.packed:
            batches = packed_batches(request)
        else:
            batches = record_batches(
                request.records,
                identity=identity_of(request),
                bytes_max=min(BATCH_BYTES, shape.batch_bytes_max),
            )
        if not batches:
            raise InvalidArgument("there is nothing to publish: neither records nor batches")
        waiting = Waiting(number=number, size=size, mode=mode_of(request.mode), batches=batches)
        merged_bytes = min(MERGED_BYTES, shape.batch_bytes_max)
        self._queue(topic, partition, waiting, merged_bytes=merged_bytes)

    def _queue(self, topic: str, partition: int, waiting: Waiting, *, merged_bytes: int) -> None:
        lane = self._lanes.get((topic, partition))
        if lane is None:
            lane = self._lanes[topic, partition] = Lane(topic, partition, merged_bytes)
            self._tasks.create_task(self._run(lane))
        lane.waiting.append(waiting)

    # --- to the broker, and back -----------------------------------------------------------

    async def _run(self, lane: Lane) -> None:
        """Publish what waits in `lane`, call after call, until nothing does."""
        while lane.waiting:
            load = Load(lane)
            try:
                acks = await self._publish(lane, load)
            except Exception as error:  # each becomes the answer to every request in the load
                self._results.extend(load.failures(error))
            else:
                self._results.extend(load.results(acks))
            self._has_news.set()
        del self._lanes[lane.topic, lane.partition]

    async def _publish(self, lane: Lane, load: Load) -> tuple[Ack, ...]:
        if not load.batches:
            return ()
        try:
            return await self._broker.publish(
                PublishRequest(
                    topic=lane.topic,
                    partition=lane.partition,
                    batches=tuple(load.batches),
                    mode=load.mode,
                )
            )
        except NotFound:
            self._shapes.forget(lane.topic)
            raise

    async def write_results(self, context: Context) -> None:
        """Send results as they come, until all requests are answered and no more come."""
        while True:
            if self._results:
                some = [
                    self._results.popleft()
                    for _ in range(min(RESULTS_PER_MESSAGE, len(self._results)))
                ]
                message = pb.PublishStreamResponse(results=[result for result, _ in some])
                await context.write(message.SerializeToString())
                # Only now: a client that does not read its results must not fill our memory.
                self._requests -= len(some)
                self._bytes -= sum(size for _, size in some)
                self._has_room.set()
            elif self._is_finished and not self._lanes:
                return
            else:
                self._has_news.clear()
                await self._has_news.wait()
