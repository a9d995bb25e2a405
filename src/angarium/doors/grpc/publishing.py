"""Publish and PublishBatch: records become batches, batches go to their partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.batch import split
from angarium.doors.grpc.from_messages import identity_of, mode_of, partition_of
from angarium.doors.grpc.record_messages import outgoing
from angarium.doors.grpc.refusals import HINT_KEY, error_message
from angarium.doors.grpc.to_messages import ack_message
from angarium.doors.intake.acks import error_of_ack, first_refusal
from angarium.doors.intake.outgoing import single_batch
from angarium.doors.intake.packing import packed
from angarium.errors import InvalidArgument
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.doors.grpc.calls import Context
    from angarium.doors.grpc.door import GrpcDoor
    from angarium.doors.intake import Intake
    from angarium.ids import Buffer


async def publish(
    door: GrpcDoor, request: pb.PublishRequest, context: Context
) -> pb.PublishResponse:
    """Publish one record."""
    record, topic = outgoing(request.record), request.topic
    batches = (single_batch(record, identity_of(request)),)
    if request.HasField("partition"):
        partition = partition_of(request.partition)
    else:
        shapes = door.intake.shapes
        shape = shapes.known(topic) or await shapes.of(topic)
        partition = shape.partition_for(record.key)
    acks = await door.intake.publish(topic, partition, batches, mode_of(request.mode))
    if acks[0].code:
        raise error_of_ack(acks[0])
    if door.leader_hint is not None and (hint := door.leader_hint(topic, partition)):
        context.set_trailing_metadata(((HINT_KEY, hint),))
    return pb.PublishResponse(ack=ack_message(acks[0]))


async def publish_batch(
    door: GrpcDoor, request: pb.PublishBatchRequest, context: Context
) -> pb.PublishBatchResponse:
    """Publish many records or batches: all of them, or say which not."""
    topic = request.topic
    mode = mode_of(request.mode)
    per_partition, partitions = await batches_of(request, door.intake)
    answers = await door.intake.publish_each(topic, per_partition, mode)
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
        await door.refusals.refuse(context, refusal, extra=(response,))
    return response


async def batches_of(
    request: pb.PublishBatchRequest, intake: Intake
) -> tuple[dict[int, tuple[Buffer, ...]], Iterable[int]]:
    """Return the batches for each partition, and each record's partition."""
    partition = partition_of(request.partition) if request.HasField("partition") else None
    if request.packed:
        if partition is None:
            raise InvalidArgument("batches are packed for one partition: name it")
        return {partition: _packed(request)}, ()
    if not request.records:
        raise InvalidArgument("there is nothing to publish: neither records nor batches")
    producer = identity_of(request)
    records = [outgoing(one) for one in request.records]
    shape = await intake.shapes.of(request.topic)
    return packed(records, shape, partition=partition, producers=producer)


def _packed(request: pb.PublishBatchRequest) -> tuple[Buffer, ...]:
    """Return the batches that the client packed itself, cut apart; the broker checks each."""
    if request.records:
        raise InvalidArgument("either records or packed batches, not both")
    if request.HasField("producer"):
        raise InvalidArgument("packed batches carry their producer themselves")
    # The leader writes its stamp into the batch, so it needs bytes of its own.
    return tuple(split(bytearray(request.packed)))
