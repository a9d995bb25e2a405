"""Publishing over REST: one record or many, as JSON, as they are, or as batches packed elsewhere.

What the bodies say is read in `bodies`, how records become batches is decided in `packing`, and
what a request is recognised by when it is sent again in `once`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Final, Protocol

import msgspec
from msgspec import Meta

from angarium.api import PublishRequest
from angarium.api.transactions import SequencedPublish
from angarium.batch import split
from angarium.doors.http.bodies import read_record, read_records
from angarium.doors.http.contract_values import ack_out, error_of_ack, mode_of
from angarium.doors.http.lanes import LaneKey, Lanes, Placed
from angarium.doors.http.once import KEY_HEADER, identity_at, numbered_of, once_of
from angarium.doors.http.packing import packed, placed
from angarium.doors.http.problems import HINT_HEADER, http_status, problem, told
from angarium.doors.http.records import single_batch
from angarium.doors.http.server.messages import JSON, Response
from angarium.doors.http.values import INT64_MAX, Ack, ModeName, Partition, Published
from angarium.errors import InvalidArgument, NotFound
from angarium.ids import Epoch
from angarium.wire.errors import UnsupportedOperation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium import api
    from angarium.api import Broker
    from angarium.doors.http.once import Numbered, Once
    from angarium.doors.http.records import Identity, Outgoing
    from angarium.doors.http.server.messages import Answer, Request
    from angarium.doors.partitions import TopicShapes
    from angarium.ids import Buffer
    from angarium.modes import DeliveryMode

PACKED: Final = b"application/vnd.angarium.batch"
"""Batches as docs/reference/batch.md describes them, one directly after the other."""

OFFSETS: Final = b'"offset":%d,"next_offset":%d'
"""How an answer tells where a record is."""

_encode: Final = msgspec.json.Encoder().encode


class SequencedBroker(Protocol):
    """The part of `api.TransactionBroker` that numbers of a client's own need."""

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
        self._answered: api.Ack | None = None
        self._words: tuple[bytes, bytes] | None = None
        self._hints: tuple[tuple[bytes, bytes], ...] = ()

    # --- one ------------------------------------------------------------------------------------

    def publish(self, request: Request, given: PublishParameters) -> Answer:
        """Publish one record."""
        record = read_record(request, given.key)
        mode = mode_of(given.mode)
        once = once_of(request, mode, record)
        numbered = numbered_of(request, mode)
        if numbered is not None:
            return self._publish_numbered(given, record, numbered, once)
        identity = identity_at(once, 0, 1)
        partition = given.partition
        if partition is None:
            shape = self._shapes.known(given.topic)
            if shape is None:
                return self._publish_after_asking(given, record, once)
            if once is not None and record.key is None:
                partition = once.partition(shape.partitions)
            else:
                partition = shape.partition_for(record.key)
        self._send(request, LaneKey(given.topic, partition, mode), record, identity)
        return None

    async def _publish_numbered(
        self, given: PublishParameters, record: Outgoing, numbered: Numbered, once: Once | None
    ) -> Response | None:
        """Publish under a number that the client chose, so that a repeated request is recognised.

        The number also decides where a record without a key goes: a repeated one must find the
        same partition.
        """
        if once is not None:
            raise InvalidArgument("Idempotency-Key and Angarium-Sequence exclude each other")
        if self._sequenced is None:
            raise UnsupportedOperation("numbers of a client's own are not served here")
        partition = given.partition
        if partition is None:
            shape = await self._shapes.of(given.topic)
            partition = (
                numbered.number % shape.partitions
                if record.key is None
                else shape.partition_for(record.key)
            )
        ack = await self._sequenced.publish_sequenced(
            SequencedPublish(
                producer=numbered.producer,
                epoch=Epoch(1),
                sequence=numbered.number,
                topic=given.topic,
                partition=partition,
                batches=(single_batch(record),),
            )
        )
        return self._answer(LaneKey(given.topic, partition, None), Placed(ack, 0))

    async def _publish_after_asking(
        self, given: PublishParameters, record: Outgoing, once: Once | None
    ) -> Response | None:
        shape = await self._shapes.of(given.topic)
        (partition,) = placed((record,), shape, None, once)
        key = LaneKey(given.topic, partition, mode_of(given.mode))
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._lanes.publish(
            key,
            record,
            lambda outcome: self._settle(answer, key, outcome),
            identity_at(once, 0, 1),
        )
        return await answer

    def _settle(
        self, answer: asyncio.Future[Response], key: LaneKey, outcome: Placed | Exception
    ) -> None:
        if not answer.done():
            answer.set_result(self._answer(key, outcome))

    def _send(self, request: Request, key: LaneKey, record: Outgoing, identity: Identity) -> None:
        self._lanes.publish(
            key, record, lambda outcome: request.answer(self._answer(key, outcome)), identity
        )

    def _answer(self, key: LaneKey, outcome: Placed | Exception) -> Response:
        if isinstance(outcome, Exception):
            return problem(outcome)
        ack, place = outcome
        if ack is not self._answered:
            # Records that travelled together are acknowledged together: what they are told
            # differs by an offset.
            self._answered = ack
            self._words = answer_words(ack)
            self._hints = self._hint(key.topic, key.partition)
        if self._words is None or ack.base_offset is None:
            return Response(200, _encode(ack_out(ack, place=place)), JSON, self._hints)
        offset = ack.base_offset + place
        before, after = self._words
        body = b"".join((before, OFFSETS % (offset, offset + 1), after))
        return Response(200, body, JSON, self._hints)

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
            if request.header(KEY_HEADER) is not None:
                raise InvalidArgument("packed batches carry their producer's identity themselves")
            # The leader writes its stamp into a batch, so each needs bytes of its own.
            per_partition = {given.partition: tuple(split(bytearray(request.body)))}
        else:
            records = read_records(request)
            once = once_of(request, mode)
            shape = self._shapes.known(topic) or await self._shapes.of(topic)
            per_partition, partitions = packed(records, shape, partition=given.partition, once=once)
        calls = [self._publish(topic, one, some, mode) for one, some in per_partition.items()]
        answers = await asyncio.gather(*calls) if len(calls) > 1 else [await calls[0]]
        return self._published(topic, list(per_partition), answers, partitions)

    async def _publish(
        self, topic: str, partition: int, batches: tuple[Buffer, ...], mode: DeliveryMode | None
    ) -> tuple[api.Ack, ...] | Exception:
        """Publish to one partition; what becomes of the others is another matter."""
        try:
            return await self._broker.publish(
                PublishRequest(topic=topic, partition=partition, batches=batches, mode=mode)
            )
        except NotFound as error:
            self._shapes.forget(topic)
            return error
        except Exception as error:  # each becomes a part of the answer
            return error

    def _published(
        self,
        topic: str,
        targets: list[int],
        answers: Sequence[tuple[api.Ack, ...] | Exception],
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
            else:
                refusal = refusal or next((error_of_ack(one) for one in answer if one.code), None)
                acks += [ack_out(one) for one in answer]
        if refusal is not None:
            extra = {"acks": acks, "partitions": partitions}
            return problem(refusal, status=http_status(refusal), extra=extra)
        body = _encode(Published(acks=acks, partitions=partitions))
        hint = self._hint(topic, targets[0]) if len(targets) == 1 else ()
        return Response(200, body, JSON, hint)


def answer_words(ack: api.Ack) -> tuple[bytes, bytes] | None:
    """Return what is told about a record of a batch, before its offset and after the next one.

    The encoder itself writes it, with offsets that no record has; no name of a topic can look like
    them, for it has no quotes. None where there is no offset.
    """
    if ack.base_offset is None or ack.next_offset is None:
        return None
    shown = msgspec.structs.replace(ack_out(ack), offset=INT64_MAX, next_offset=INT64_MAX)
    before, found, after = _encode(shown).partition(OFFSETS % (INT64_MAX, INT64_MAX))
    return (before, after) if found else None
