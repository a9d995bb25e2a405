"""PublishStream: many requests under way, in order per partition, results as they come.

Each partition of a stream is a lane (`intake.lanes`) with one call to the broker under way; what
arrives meanwhile waits and goes out together in the next call. So order is kept without trusting
anybody to keep it, and a busy stream costs little per record. No record of one stream is ever
packed together with another stream's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, TypeAlias

from angarium.doors.callers import UNCOUNTED
from angarium.doors.grpc.ack_bytes import AckWriter, stream_response
from angarium.doors.grpc.from_messages import identity_of, mode_of, partition_of
from angarium.doors.grpc.publishing import batches_of
from angarium.doors.grpc.record_messages import outgoing
from angarium.doors.grpc.refusals import error_message
from angarium.doors.grpc.to_messages import ack_message
from angarium.doors.intake import NOBODY, LaneKey
from angarium.doors.intake.acks import first_refusal
from angarium.doors.intake.lanes import Lanes, Waiting
from angarium.doors.intake.outgoing import single_batch
from angarium.errors import InvalidArgument
from angarium.proto.v1 import broker_pb2 as pb
from angarium.wire.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from angarium.doors.callers import Counted
    from angarium.doors.grpc.door_limits import GrpcLimits
    from angarium.doors.grpc.faces import GrpcFace
    from angarium.doors.intake import Intake, Placed
    from angarium.doors.intake.partitions import TopicShape
    from angarium.wire.grpc import Call, Requests

    Outcome: TypeAlias = Placed | Exception

RESULTS_PER_MESSAGE: Final = 1_024
"""Results sent in one message at the most."""


async def publish_stream(face: GrpcFace, requests: Requests, call: Call) -> None:
    """Serve one stream until the client has said everything and knows all results."""
    # Some clients wait for the headers before they say anything.
    await call.send_initial_metadata(())
    stream = PublisherStream(face.intake, face.limits, face.counted)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(stream.write_results(call))
            reading = tasks.create_task(stream.read_requests(requests))
            stopping = tasks.create_task(face.stopping.wait())
            await asyncio.wait((reading, stopping), return_when=asyncio.FIRST_COMPLETED)
            # What was taken is finished in either case; the group waits for it.
            reading.cancel()
            stopping.cancel()
            stream.finish()
    finally:
        stream.cancel()
    if face.stopping.is_set():
        raise Unreachable("this node is stopping; what it took has been answered")


class PublisherStream:
    """One stream: its lanes, and the results on their way back."""

    def __init__(self, intake: Intake, limits: GrpcLimits, counted: Counted = UNCOUNTED) -> None:
        self._intake = intake
        self._limits = limits
        self._counted = counted
        self._lanes = Lanes(intake.publish, intake.shapes, begin=intake.begin, gathers=False)
        self._acks = AckWriter()
        self._results: deque[tuple[bytes, int]] = deque()
        """Results with the sizes of their requests."""
        self._requests = self._bytes = 0
        """Taken, and their results not yet sent."""
        self._has_news = asyncio.Event()
        """Results have come, or no more requests will."""
        self._has_room = asyncio.Event()
        self._is_finished = False

    # --- inwards ---------------------------------------------------------------------------

    async def read_requests(self, requests: Requests) -> None:
        """Take requests, each when there is room, until the client has no more."""
        limits = self._limits
        while some := await requests.together():
            for data in some:
                request = pb.PublishStreamRequest.FromString(data)
                size = len(data)
                self._requests += 1
                self._bytes += size
                done = self._done(request, size)
                try:
                    if self._counted.toll is not None:
                        await self._counted.toll.admit_request()
                    asking = self._take(request, size, done)
                    if asking is not None:
                        await asking
                except Exception as error:  # each becomes the answer to this request alone
                    done(error)
                while (
                    self._requests >= limits.stream_requests_max
                    or self._bytes >= limits.stream_bytes_max
                ):
                    self._has_room.clear()
                    await self._has_room.wait()

    def finish(self) -> None:
        """No more requests come: end when all have been answered."""
        self._is_finished = True
        self._has_news.set()

    def cancel(self) -> None:
        """Give up what is under way."""
        self._lanes.cancel()

    def _take(
        self, request: pb.PublishStreamRequest, size: int, done: Callable[[Outcome], None]
    ) -> Coroutine[None, None, None] | None:
        """Take a request; what is returned has to be awaited, for somebody is asked first."""
        match request.WhichOneof("request"):
            case "publish":
                asked = request.publish
                shape = self._intake.shapes.known(asked.topic)
                if shape is None:
                    return self._take_after_asking(asked, size, done)
                self._take_record(asked, shape, size, done)
                return None
            case "batch":
                return self._take_batches(request.batch, size, done)
            case _:
                raise InvalidArgument("a request of a stream is `publish` or `batch`")

    def _take_record(
        self,
        asked: pb.PublishRequest,
        shape: TopicShape,
        size: int,
        done: Callable[[Outcome], None],
    ) -> None:
        record, producer = outgoing(asked.record), identity_of(asked)
        layout: int | None = None
        if asked.HasField("partition"):
            partition = partition_of(asked.partition)
        else:
            partition = shape.partition_for(record.key, may_repeat=producer is not NOBODY)
            # Also of one without a key: the order is the stream's.
            layout = shape.layout.number
        mode = mode_of(asked.mode)
        if producer is NOBODY:
            waiting = Waiting(record, (), size, mode, done)
        else:
            # A producer's record has a number of its own.
            waiting = Waiting(None, (single_batch(record, producer),), size, mode, done)
        self._queue(asked.topic, partition, waiting, layout=layout)

    async def _take_after_asking(
        self, asked: pb.PublishRequest, size: int, done: Callable[[Outcome], None]
    ) -> None:
        # Known from here on also to the lane, which packs by the topic's limit.
        shape = await self._intake.shapes.of(asked.topic)
        self._take_record(asked, shape, size, done)

    async def _take_batches(
        self, asked: pb.PublishBatchRequest, size: int, done: Callable[[Outcome], None]
    ) -> None:
        if not asked.HasField("partition"):
            raise InvalidArgument("batches are packed for one partition: name it")
        per_partition, *_ = await batches_of(asked, self._intake)
        ((partition, batches),) = per_partition.items()
        self._queue(asked.topic, partition, Waiting(None, batches, size, mode_of(asked.mode), done))

    def _queue(
        self, topic: str, partition: int, waiting: Waiting, *, layout: int | None = None
    ) -> None:
        # One lane for all modes: the order is the stream's.
        self._lanes.queue(LaneKey(topic, partition, None, layout), waiting)

    # --- and back --------------------------------------------------------------------------

    def _done(self, request: pb.PublishStreamRequest, size: int) -> Callable[[Outcome], None]:
        number, is_record = request.number, request.HasField("publish")

        def done(outcome: Outcome) -> None:
            if is_record and not isinstance(outcome, Exception) and not outcome.ack.code:
                result = self._acks.result(number, outcome)
            else:
                result = _result(number, outcome, is_record=is_record).SerializeToString()
            self._results.append((result, size))
            self._has_news.set()

        return done

    async def write_results(self, call: Call) -> None:
        """Send results as they come, until all requests are answered and no more come."""
        while True:
            if self._results:
                some = [
                    self._results.popleft()
                    for _ in range(min(RESULTS_PER_MESSAGE, len(self._results)))
                ]
                await call.write(stream_response([result for result, _ in some]))
                # Only now: a client that does not read its results must not fill our memory.
                self._requests -= len(some)
                self._bytes -= sum([size for _, size in some])
                self._has_room.set()
            elif self._is_finished and not self._requests:
                return
            else:
                self._has_news.clear()
                await self._has_news.wait()


def _result(number: int, outcome: Outcome, *, is_record: bool) -> pb.PublishStreamResult:
    """Return what became of one request, whatever that is."""
    result = pb.PublishStreamResult(number=number)
    refusal = outcome if isinstance(outcome, Exception) else first_refusal(outcome.acks)
    if refusal is not None:
        result.error.CopyFrom(error_message(refusal))
    if not isinstance(outcome, Exception):
        result.acks.extend(
            [ack_message(outcome.ack, row=outcome.row)]
            if is_record
            else map(ack_message, outcome.acks)
        )
    return result
