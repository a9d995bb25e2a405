"""Publish and PublishBatch: records become batches, batches go to their partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.batch import split
from angarium.doors.grpc.from_messages import identity_of, mode_of, partition_of
from angarium.doors.grpc.record_messages import outgoing
from angarium.doors.grpc.refusals import error_message
from angarium.doors.grpc.to_messages import ack_message
from angarium.doors.intake.acks import first_refusal
from angarium.doors.intake.packing import packed
from angarium.errors import InvalidArgument
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from angarium.doors.grpc.faces import GrpcFace
    from angarium.doors.intake import Intake, Placed
    from angarium.ids import Buffer
    from angarium.wire.grpc import Call


def publish(
    face: GrpcFace, request: pb.PublishRequest, call: Call
) -> Coroutine[None, None, None] | None:
    """Publish one record: by a lane, with all that came in the same turn."""
    topic = request.topic
    partition = partition_of(request.partition) if request.HasField("partition") else None

    def done(outcome: Placed | Exception) -> None:
        if isinstance(outcome, Exception):
            call.fail(outcome)
        else:
            call.set_trailing_metadata(face.hints.about(outcome.ack))
            call.finish(face.acks.response(outcome))

    return face.intake.send(
        topic,
        outgoing(request.record),
        done,
        partition=partition,
        mode=mode_of(request.mode),
        producer=identity_of(request),
    )


async def publish_batch(
    face: GrpcFace, request: pb.PublishBatchRequest, _: Call
) -> pb.PublishBatchResponse:
    """Publish many records or batches: all of them, or say which not."""
    topic = request.topic
    mode = mode_of(request.mode)
    per_partition, partitions, layout = await batches_of(request, face.intake)
    answers = await face.intake.publish_each(topic, per_partition, mode, layout)
    response = pb.PublishBatchResponse(partitions=partitions)
    refusal: Exception | None = None
    for (partition, batches), answer in zip(per_partition.items(), answers, strict=True):
        if isinstance(answer, Exception):
            refusal = refusal or answer
            failed = pb.Ack(topic=topic, partition=partition, error=error_message(answer))
            response.acks.extend([failed] * len(batches))
        else:
            refusal = refusal or first_refusal(answer)
            response.acks.extend(map(ack_message, answer))
    if refusal is not None:
        raise await face.refusals.of(refusal, extra=(response,))
    return response


async def batches_of(
    request: pb.PublishBatchRequest, intake: Intake
) -> tuple[dict[int, tuple[Buffer, ...]], Iterable[int], int | None]:
    """Return the batches for each partition, each record's partition, and by which layout."""
    partition = partition_of(request.partition) if request.HasField("partition") else None
    if request.packed:
        if partition is None:
            raise InvalidArgument("batches are packed for one partition: name it")
        return {partition: _packed(request)}, (), None
    if not request.records:
        raise InvalidArgument("there is nothing to publish: neither records nor batches")
    producer = identity_of(request)
    records = [outgoing(one) for one in request.records]
    shape = await intake.shapes.of(request.topic)
    layout = shape.layout.number if partition is None else None
    return *packed(records, shape, partition=partition, producers=producer), layout


def _packed(request: pb.PublishBatchRequest) -> tuple[Buffer, ...]:
    """Return the batches that the client packed itself, cut apart; the broker checks each."""
    if request.records:
        raise InvalidArgument("either records or packed batches, not both")
    if request.HasField("producer"):
        raise InvalidArgument("packed batches carry their producer themselves")
    # The leader writes its stamp into the batch, so it needs bytes of its own.
    return tuple(split(bytearray(request.packed)))
