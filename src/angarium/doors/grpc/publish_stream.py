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
    from collections.abc import Callable

    from angarium.doors.grpc.door_limits import GrpcLimits
    from angarium.doors.grpc.faces import GrpcFace
    from angarium.doors.intake import Intake, Outgoing, Placed
    from angarium.ids import Buffer
    from angarium.wire.grpc import Call, Requests

    Outcome: TypeAlias = Placed | Exception

RESULTS_PER_MESSAGE: Final = 1_024
"""Results sent in one message at the most."""


async def publish_stream(face: GrpcFace, requests: Requests, call: Call) -> None:
    """Serve one stream until the client has said everything and knows all results."""
    # Some clients wait for the headers before they say anything.
    await call.send_initial_metadata(())
    stream = PublisherStream(face.intake, face.limits)
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

    def __init__(self, intake: Intake, limits: GrpcLimits) -> None:
        self._intake = intake
        self._limits = limits
        self._lanes = Lanes(intake.publish, intake.shapes, gathers=False)
        self._results: deque[tuple[pb.PublishStreamResult, int]] = deque()
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
        while some := await requests.together():
            for data in some:
                await self._read(data)

    async def _read(self, data: bytes) -> None:
        request = pb.PublishStreamRequest.FromString(data)
        self._requests += 1
        self._bytes += len(data)
        done = self._done(request, len(data))
        try:
            await self._take(request, len(data), done)
        except Exception as error:  # each becomes the answer to this request alone
            done(error)
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

    def cancel(self) -> None:
        """Give up what is under way."""
        self._lanes.cancel()

    async def _take(
        self, request: pb.PublishStreamRequest, size: int, done: Callable[[Outcome], None]
    ) -> None:
        shapes = self._intake.shapes
        batches: tuple[Buffer, ...] = ()
        record: Outgoing | None = None
        asked: pb.PublishRequest | pb.PublishBatchRequest
        match request.WhichOneof("request"):
            case "publish":
                asked = request.publish
                record, producer = outgoing(asked.record), identity_of(asked)
                # Known from here on also to the lane, which packs by the topic's limit.
                shape = shapes.known(asked.topic) or await shapes.of(asked.topic)
                if asked.HasField("partition"):
                    partition = partition_of(asked.partition)
                else:
                    partition = shape.partition_for(record.key)
                if producer is not NOBODY:
                    # A producer's record has a number of its own.
                    batches, record = (single_batch(record, producer),), None
            case "batch":
                asked = request.batch
                if not asked.HasField("partition"):
                    raise InvalidArgument("batches are packed for one partition: name it")
                per_partition, _ = await batches_of(asked, self._intake)
                ((partition, batches),) = per_partition.items()
            case _:
                raise InvalidArgument("a request of a stream is `publish` or `batch`")
        # One lane for all modes: the order is the stream's.
        key = LaneKey(asked.topic, partition, None)
        self._lanes.queue(key, Waiting(record, batches, size, mode_of(asked.mode), done))

    # --- and back --------------------------------------------------------------------------

    def _done(self, request: pb.PublishStreamRequest, size: int) -> Callable[[Outcome], None]:
        number, is_record = request.number, request.HasField("publish")

        def done(outcome: Outcome) -> None:
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
                message = pb.PublishStreamResponse(results=[result for result, _ in some])
                await call.write(message.SerializeToString())
                # Only now: a client that does not read its results must not fill our memory.
                self._requests -= len(some)
                self._bytes -= sum(size for _, size in some)
                self._has_room.set()
            elif self._is_finished and not self._requests:
                return
            else:
                self._has_news.clear()
                await self._has_news.wait()
