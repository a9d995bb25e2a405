"""Publish and PublishBatch: records become batches, batches go to their partitions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.api import Ack, PublishRequest
from angarium.batch import BatchBuilder, split
from angarium.doors.grpc.records import NOBODY, added, key_of, single_batch
from angarium.doors.grpc.refusals import HINT_KEY, error_message, error_of_ack
from angarium.doors.grpc.values import ack_message, identity_of, mode_of, partition_of
from angarium.errors import InvalidArgument, InvalidBatch, NotFound
from angarium.ids import Sequence
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from angarium.api import Broker
    from angarium.doors.grpc.calls import Context
    from angarium.doors.grpc.records import Identity
    from angarium.doors.grpc.refusals import Refusals
    from angarium.doors.partitions import TopicShapes
    from angarium.ids import Buffer
    from angarium.modes import DeliveryMode

BATCH_BYTES: Final = 1 << 20
"""Records of one request become batches of this size at the most, or smaller where the topic says
so. A record that is larger is a batch of its own, which the broker may refuse."""


class Publishing:
    """The two unary calls that publish."""

    def __init__(
        self,
        broker: Broker,
        shapes: TopicShapes,
        refusals: Refusals,
        leader_hint: Callable[[str, int], str | None] | None,
    ) -> None:
        self._broker = broker
        self._shapes = shapes
        self._refusals = refusals
        self._leader_hint = leader_hint

    async def publish(self, request: pb.PublishRequest, context: Context) -> pb.PublishResponse:
        """Publish one record."""
        record = request.record
        topic = request.topic
        identity = identity_of(request)
        if request.HasField("partition"):
            partition = partition_of(request.partition)
        else:
            shape = self._shapes.known(topic) or await self._shapes.of(topic)
            partition = shape.partition_for(key_of(record))
        batch = single_batch(record, identity)
        ack = (await self._send(topic, partition, (batch,), mode_of(request.mode)))[0]
        if ack.code:
            raise error_of_ack(ack)
        if self._leader_hint is not None and (hint := self._leader_hint(topic, partition)):
            context.set_trailing_metadata(((HINT_KEY, hint),))
        return pb.PublishResponse(ack=ack_message(ack))

    async def publish_batch(
        self, request: pb.PublishBatchRequest, context: Context
    ) -> pb.PublishBatchResponse:
        """Publish many records or batches: all of them, or say which not."""
        topic, mode = request.topic, mode_of(request.mode)
        if request.packed:
            per_partition = {named_partition(request): packed_batches(request)}
            partitions: Iterable[int] = ()
        else:
            per_partition, partitions = await self._placed(request)
        answers = await asyncio.gather(
            *(
                self._send(topic, partition, batches, mode)
                for partition, batches in per_partition.items()
            ),
            return_exceptions=True,
        )
        response = pb.PublishBatchResponse(partitions=partitions)
        refusal: Exception | None = None
        for (partition, batches), answer in zip(per_partition.items(), answers, strict=True):
            if isinstance(answer, Exception):
                refusal = refusal or answer
                failed = pb.Ack(topic=topic, partition=partition, error=error_message(answer))
                response.acks.extend([failed] * len(batches))
            elif isinstance(answer, BaseException):
                raise answer
            else:
                refusal = refusal or first_refusal(answer)
                response.acks.extend(map(ack_message, answer))
        if refusal is not None:
            await self._refusals.refuse(context, refusal, extra=(response,))
        return response

    async def _send(
        self,
        topic: str,
        partition: int,
        batches: tuple[Buffer, ...],
        mode: DeliveryMode | None,
    ) -> tuple[Ack, ...]:
        try:
            return await self._broker.publish(
                PublishRequest(topic=topic, partition=partition, batches=batches, mode=mode)
            )
        except NotFound:
            self._shapes.forget(topic)
            raise

    async def _placed(
        self, request: pb.PublishBatchRequest
    ) -> tuple[dict[int, tuple[Buffer, ...]], list[int]]:
        """Return the batches for each partition, and each record's partition."""
        shape = await self._shapes.of(request.topic)
        records = request.records
        if request.HasField("partition"):
            partitions = [partition_of(request.partition)] * len(records)
        else:
            keys = [key_of(record) for record in records]
            together = shape.partition_for(None)
            partitions = [together if key is None else shape.partition_for(key) for key in keys]
        of_each: dict[int, list[pb.NewRecord]] = {}
        for partition, record in zip(partitions, records, strict=True):
            of_each.setdefault(partition, []).append(record)
        if not of_each:
            raise InvalidArgument("there is nothing to publish: neither records nor batches")
        identity = identity_of(request)
        bytes_max = min(BATCH_BYTES, shape.batch_bytes_max)
        return {
            partition: record_batches(some, identity=identity, bytes_max=bytes_max)
            for partition, some in of_each.items()
        }, partitions


def named_partition(request: pb.PublishBatchRequest) -> int:
    """Return the partition that batches have to name."""
    if not request.HasField("partition"):
        raise InvalidArgument("batches are packed for one partition: name it")
    return partition_of(request.partition)


def packed_batches(request: pb.PublishBatchRequest) -> tuple[Buffer, ...]:
    """Return the batches that the client packed itself, cut apart; the broker checks each."""
    if request.records:
        raise InvalidArgument("either records or packed batches, not both")
    if request.HasField("producer"):
        raise InvalidArgument("packed batches carry their producer themselves")
    # The leader writes its stamp into the batch, so it needs bytes of its own.
    return tuple(split(bytearray(request.packed)))


def record_batches(
    records: Iterable[pb.NewRecord], *, identity: Identity = NOBODY, bytes_max: int
) -> tuple[Buffer, ...]:
    """Pack records into as few batches as the limit allows, in order."""
    builder = BatchBuilder(bytes_max=bytes_max)
    batches: list[Buffer] = []
    producer_id, epoch, sequence = identity

    def close() -> None:
        nonlocal sequence
        count = len(builder)
        if count:
            batches.append(builder.build(producer_id=producer_id, epoch=epoch, sequence=sequence))
            if producer_id:
                sequence = Sequence(sequence + count)

    for record in records:
        if record.ByteSize() > bytes_max // 2:
            close()
            batches.append(single_batch(record, identity._replace(sequence=sequence)))
            if producer_id:
                sequence = Sequence(sequence + 1)
        elif not added(builder, record):
            close()
            if not added(builder, record):
                raise InvalidBatch("a record fits no batch")
    close()
    return tuple(batches)


def first_refusal(acks: Iterable[Ack]) -> Exception | None:
    """Return the error of the first batch that was refused, if one was."""
    return next((error_of_ack(ack) for ack in acks if ack.code), None)
