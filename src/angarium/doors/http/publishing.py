"""Publishing over REST: one record or many, as JSON, as they are, or as batches packed elsewhere.

A body that is not JSON is the record's value, and its media type becomes the record's header
`content-type`. CloudEvents in binary mode (`ce-…` headers) keep those headers, with the partition
key as the record's key.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Annotated, Final, Protocol
from urllib.parse import unquote

import msgspec
from msgspec import Meta

from angarium.api import PublishRequest
from angarium.api.transactions import SequencedPublish
from angarium.batch import BatchBuilder, encode, split
from angarium.doors.http.contract_values import ack_out, error_of_ack, mode_of
from angarium.doors.http.lanes import LaneKey, Lanes, Placed
from angarium.doors.http.problems import HINT_HEADER, Refused, http_status, problem, told
from angarium.doors.http.records import NOBODY, Outgoing, outgoing, single_batch
from angarium.doors.http.server.messages import JSON, Response
from angarium.doors.http.strict_json import check_names, decoded
from angarium.doors.http.values import Ack, ModeName, NewRecord, NewRecords, Partition, Published
from angarium.errors import InvalidArgument, NotFound
from angarium.ids import Epoch
from angarium.modes import DeliveryMode
from angarium.wire.errors import UnsupportedOperation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium import api
    from angarium.api import Broker
    from angarium.doors.http.server.messages import Answer, Request
    from angarium.doors.partitions import TopicShape, TopicShapes
    from angarium.ids import Buffer

BATCH_BYTES: Final = 1 << 20
"""Records of one request become batches of this size at the most, or smaller where the topic says
so. A record that is larger is a batch of its own, which the broker may refuse."""

PACKED: Final = b"application/vnd.angarium.batch"
"""Batches as docs/reference/batch.md describes them, one directly after the other."""

HEADER_PREFIX: Final = b"angarium-header-"
"""Request headers that become headers of a record whose body is taken as it is."""

_record: Final = msgspec.json.Decoder(NewRecord)
_records: Final = msgspec.json.Decoder(NewRecords)
_encode: Final = msgspec.json.Encoder().encode


IDEMPOTENT_PREFIX: Final = "http."
"""Producers of this door have names of their own, so that nobody fences them by accident."""

_IDEMPOTENCY_KEY: Final = re.compile(r"([A-Za-z0-9._-]{1,100}):([0-9]{1,18})")


class SequencedBroker(Protocol):
    """The part of `api.TransactionBroker` that idempotency keys need."""

    async def publish_sequenced(self, request: SequencedPublish) -> api.Ack:
        """Store batches unless that sequence, or a higher one, has been stored before."""


class PublishParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a record goes, and when it is answered."""

    topic: str
    partition: Partition | None = None
    """Without it the key decides, and without a key they take turns."""
    mode: ModeName | None = None
    """Without it, the topic's own."""
    key: Annotated[str, Meta(max_length=4_096)] | None = None
    """The record's key, for bodies that are taken as they are."""


class BatchParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where records go, and when they are answered."""

    topic: str
    partition: Partition | None = None
    """For all of them. Needed for packed batches."""
    mode: ModeName | None = None


class Publishing:
    """The two requests that publish."""

    def __init__(
        self,
        broker: Broker,
        shapes: TopicShapes,
        lanes: Lanes,
        leader_hint: Callable[[str, int], str | None] | None,
        *,
        sequenced: SequencedBroker | None = None,
    ) -> None:
        self._broker = broker
        self._shapes = shapes
        self._lanes = lanes
        self._leader_hint = leader_hint
        self._sequenced = sequenced

    # --- one ------------------------------------------------------------------------------------

    def publish(self, request: Request, given: PublishParameters) -> Answer:
        """Publish one record."""
        if request.media_type == JSON and request.header(b"ce-specversion") is None:
            if given.key is not None:
                raise InvalidArgument("a record in JSON has its key inside")
            record = outgoing(decoded(request.body, _record))
        else:
            record = plain_record(request, given.key)
        key = request.text_header(b"idempotency-key")
        if key is not None:
            return self._publish_once(given, record, key)
        partition = given.partition
        if partition is None:
            shape = self._shapes.known(given.topic)
            if shape is None:
                return self._publish_after_asking(given, record)
            partition = shape.partition_for(record.key)
        self._send(request, LaneKey(given.topic, partition, mode_of(given.mode)), record)
        return None

    async def _publish_once(
        self, given: PublishParameters, record: Outgoing, key: str
    ) -> Response | None:
        """Publish under a number that the client chose, so that a repeated request is recognised.

        The number also decides where a record without a key goes: a repeated one must find the
        same partition.
        """
        if self._sequenced is None:
            raise UnsupportedOperation("idempotency keys are not served here")
        fits = _IDEMPOTENCY_KEY.fullmatch(key)
        if fits is None:
            raise InvalidArgument("an Idempotency-Key is NAME:NUMBER, and the number grows")
        if mode_of(given.mode) not in (None, DeliveryMode.CONSISTENT):
            raise InvalidArgument("a record with an Idempotency-Key is stored in mode consistent")
        number = int(fits[2])
        partition = given.partition
        if partition is None:
            shape = await self._shapes.of(given.topic)
            partition = (
                number % shape.partitions if record.key is None else shape.partition_for(record.key)
            )
        ack = await self._sequenced.publish_sequenced(
            SequencedPublish(
                producer=f"{IDEMPOTENT_PREFIX}{fits[1]}",
                epoch=Epoch(1),
                sequence=number,
                topic=given.topic,
                partition=partition,
                batches=(single_batch(record),),
            )
        )
        return self._answer(LaneKey(given.topic, partition, None), Placed(ack, 0))

    async def _publish_after_asking(
        self, given: PublishParameters, record: Outgoing
    ) -> Response | None:
        shape = await self._shapes.of(given.topic)
        key = LaneKey(given.topic, shape.partition_for(record.key), mode_of(given.mode))
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._lanes.publish(key, record, lambda outcome: self._settle(answer, key, outcome))
        return await answer

    def _settle(
        self, answer: asyncio.Future[Response], key: LaneKey, outcome: Placed | Exception
    ) -> None:
        if not answer.done():
            answer.set_result(self._answer(key, outcome))

    def _send(self, request: Request, key: LaneKey, record: Outgoing) -> None:
        self._lanes.publish(key, record, lambda outcome: request.answer(self._answer(key, outcome)))

    def _answer(self, key: LaneKey, outcome: Placed | Exception) -> Response:
        if isinstance(outcome, Exception):
            return problem(outcome)
        body = _encode(ack_out(outcome.ack, place=outcome.place))
        return Response(200, body, JSON, self._hint(key.topic, key.partition))

    def _hint(self, topic: str, partition: int) -> tuple[tuple[bytes, bytes], ...]:
        if self._leader_hint is None:
            return ()
        hint = self._leader_hint(topic, partition)
        return () if hint is None else ((HINT_HEADER, hint.encode()),)

    # --- many -----------------------------------------------------------------------------------

    async def publish_batch(self, request: Request, given: BatchParameters) -> Response:
        """Publish many records or batches: all of them, or say which not."""
        topic, mode = given.topic, mode_of(given.mode)
        partitions: list[int] = []
        per_partition: dict[int, tuple[Buffer, ...]]
        if request.media_type == PACKED:
            if given.partition is None:
                raise InvalidArgument("batches are packed for one partition: name it")
            # The leader writes its stamp into a batch, so each needs bytes of its own.
            per_partition = {given.partition: tuple(split(bytearray(request.body)))}
        else:
            records = read_records(request)
            shape = await self._shapes.of(topic)
            partitions = placed(records, shape, given.partition)
            bytes_max = min(BATCH_BYTES, shape.batch_bytes_max)
            per_partition = {
                partition: record_batches(some, bytes_max=bytes_max)
                for partition, some in grouped(records, partitions).items()
            }
        answers = await asyncio.gather(
            *(self._publish(topic, one, some, mode) for one, some in per_partition.items()),
            return_exceptions=True,
        )
        return self._published(topic, list(per_partition), answers, partitions)

    async def _publish(
        self, topic: str, partition: int, batches: tuple[Buffer, ...], mode: DeliveryMode | None
    ) -> tuple[api.Ack, ...]:
        try:
            return await self._broker.publish(
                PublishRequest(topic=topic, partition=partition, batches=batches, mode=mode)
            )
        except NotFound:
            self._shapes.forget(topic)
            raise

    def _published(
        self,
        topic: str,
        targets: list[int],
        answers: Sequence[tuple[api.Ack, ...] | BaseException],
        partitions: list[int],
    ) -> Response:
        acks: list[Ack] = []
        refusal: Exception | None = None
        for partition, answer in zip(targets, answers, strict=True):
            if isinstance(answer, Exception):
                refusal = refusal or answer
                acks.append(
                    Ack(topic=topic, partition=partition, mode="consistent", error=told(answer))
                )
            elif isinstance(answer, BaseException):
                raise answer
            else:
                refusal = refusal or next((error_of_ack(one) for one in answer if one.code), None)
                acks += [ack_out(one) for one in answer]
        if refusal is not None:
            extra = {"acks": acks, "partitions": partitions}
            return problem(refusal, status=http_status(refusal), extra=extra)
        body = _encode(Published(acks=acks, partitions=partitions))
        hint = self._hint(topic, targets[0]) if len(targets) == 1 else ()
        return Response(200, body, JSON, hint)


def read_records(request: Request) -> list[Outgoing]:
    """Return the records of a JSON body; raises what is wrong with it.

    That no name comes twice is seen at a glance in most bodies: each name is there as often as
    there are records that have it. Only where that is not so, for it may stand in a text, too, the
    body is read a second time (`strict_json`).
    """
    body = request.body
    if request.media_type != JSON:
        raise Refused("the body has to be JSON: Content-Type: application/json", status=415)
    records = decoded(body, _records, is_checked=True).records
    values = body.count(b'"value":')
    keys = body.count(b'"key":')
    if (
        # A name and a text have two quotes each, and there is nothing else that has any.
        body.count(b'"') == 2 + 4 * (values + keys)
        and body.count(b'"records":') == 1
        and values == sum([one.value is not None for one in records])
        and keys == sum([one.key is not None for one in records])
    ):
        if not keys:
            return [Outgoing(None if one.value is None else one.value.encode()) for one in records]
        return [
            Outgoing(
                None if one.value is None else one.value.encode(),
                None if one.key is None else one.key.encode(),
            )
            for one in records
        ]
    check_names(body)
    return [outgoing(one) for one in records]


def plain_record(request: Request, key: str | None) -> Outgoing:
    """Return the record whose value is the body as it is, with the headers that belong to it."""
    headers: list[tuple[str, bytes | None]] = []
    kind = request.header(b"content-type")
    if kind is not None:
        headers.append(("content-type", kind))
    for name, value in request.headers_with(b"ce-"):
        # CloudEvents quote what is not ASCII (their HTTP binding, section 3.1.3.2).
        text = unquote(value.decode("latin-1")) if b"%" in value else value.decode("latin-1")
        headers.append((name, text.encode()))
        if name == "ce-partitionkey" and key is None:
            key = text
    for name, value in request.headers_with(HEADER_PREFIX):
        headers.append((name[len(HEADER_PREFIX) :], value))
    return Outgoing(request.body, None if key is None else key.encode(), tuple(headers))


def placed(records: Sequence[Outgoing], shape: TopicShape, partition: int | None) -> list[int]:
    """Return each record's partition; those without a key go to one of them together."""
    if partition is not None:
        return [partition] * len(records)
    together = shape.partition_for(None)
    if shape.partitions == 1:
        return [0] * len(records)
    return [together if one.key is None else shape.partition_for(one.key) for one in records]


def grouped(records: Sequence[Outgoing], partitions: list[int]) -> dict[int, list[Outgoing]]:
    """Return the records of each partition, in their order."""
    found: dict[int, list[Outgoing]] = {}
    for partition, record in zip(partitions, records, strict=True):
        found.setdefault(partition, []).append(record)
    return found


def record_batches(records: Sequence[Outgoing], *, bytes_max: int) -> tuple[Buffer, ...]:
    """Pack records into as few batches as the limit allows, in order."""
    size = sum([len(one.value or b"") + len(one.key or b"") + 16 for one in records])
    if size < bytes_max // 2 and all(one[2:] == _BARE for one in records):
        # Nothing but keys and values, and all fit into one: no need to count each.
        values, keys, *_ = zip(*records, strict=True)
        return (encode(values, keys=None if keys.count(None) == len(keys) else keys),)
    builder = BatchBuilder(bytes_max=bytes_max)
    batches: list[Buffer] = []
    for record in records:
        if len(record.value or b"") + len(record.key or b"") > bytes_max // 2:
            if len(builder):
                batches.append(builder.build())
            batches.append(single_batch(record, NOBODY))
        elif not _added(builder, record):
            batches.append(builder.build())
            _added(builder, record)
    if len(builder):
        batches.append(builder.build())
    return tuple(batches)


_BARE: Final = Outgoing(None)[2:]
"""What a record has besides key and value if it has nothing."""


def _added(builder: BatchBuilder, record: Outgoing) -> bool:
    value, key, headers, timestamp, expires_at, deliver_at = record
    return builder.add(
        value,
        key=key,
        headers=headers,
        timestamp=timestamp,
        expires_at=expires_at,
        deliver_at=deliver_at,
    )
