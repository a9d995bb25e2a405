"""Publishing over REST: one record or many, as JSON, as they are, or as batches packed elsewhere.

What a request says is read in `publish_requests`; how records become batches is `intake`'s.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Protocol

import msgspec
from msgspec import Meta

from angarium.api.transactions import SequencedPublish
from angarium.batch import split
from angarium.doors.http.ack_json import (
    Ack,
    AckWriter,
    ModeName,
    Published,
    ack_out,
    mode_of,
)
from angarium.doors.http.problems import HINT_HEADER, http_status, problem, told
from angarium.doors.http.publish_requests import (
    KEY_HEADER,
    is_bare,
    json_record,
    numbered_of,
    once_of,
    read_record,
    read_records,
)
from angarium.doors.http.record_json import NewRecord, NewRecords, Partition
from angarium.doors.http.routing import remember_no_way, route
from angarium.doors.intake import NOBODY, Placed
from angarium.doors.intake.acks import first_refusal
from angarium.doors.intake.outgoing import single_batch
from angarium.doors.intake.packing import Columns, packed
from angarium.doors.intake.recalling import named, recalled
from angarium.errors import InvalidArgument, LayoutChanged, NotFound
from angarium.ids import Epoch
from angarium.modes import DeliveryMode
from angarium.wire.errors import UnsupportedOperation
from angarium.wire.http.messages import JSON, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium import api
    from angarium.api.layout import Layout
    from angarium.doors.http.publish_requests import Numbered
    from angarium.doors.http.routing import RememberWay
    from angarium.doors.intake import Intake, Outgoing
    from angarium.doors.intake.once import Once
    from angarium.doors.intake.partitions import TopicShape
    from angarium.ids import Buffer
    from angarium.wire.http.messages import Answer, Request

PACKED: Final = b"application/vnd.angarium.batch"
"""Batches as docs/reference/batch.md describes them, one directly after the other."""

_KEY: Final = ("Idempotency-Key", "Any word; a request repeated with it changes nothing.")
_NUMBER: Final = ("Angarium-Sequence", "NAME:NUMBER, for clients that count what they send.")
_records: Final = partial(route, tag="records")

_encode: Final = msgspec.json.Encoder().encode


class SequencedBroker(Protocol):
    """The part of `api.TransactionBroker` that numbers of a client's own need."""

    async def publish_sequenced(self, request: SequencedPublish) -> api.Ack:
        """Store batches unless that sequence, or a higher one, has been stored before."""


class BatchParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where records go, and when they are answered."""

    topic: str
    partition: Partition | None = None
    """Without it the key decides, and without a key they take turns. Packed batches need it."""
    mode: ModeName | None = None
    """Without it, the topic's own."""


class PublishParameters(BatchParameters, frozen=True):
    """Where a record goes, and when it is answered."""

    key: Annotated[str, Meta(max_length=4_096)] | None = None
    """The record's key, for bodies that are taken as they are."""


class _Way(msgspec.Struct, frozen=True, gc=False):
    """Where a head says that its record goes, and when it is answered."""

    topic: str
    partition: int | None
    mode: DeliveryMode | None


class PublishRoutes:
    """The two requests that publish."""

    def __init__(
        self,
        intake: Intake,
        leader_hint: Callable[[str, int], str | None] | None,
        *,
        sequenced: SequencedBroker | None = None,
        remember_way: RememberWay = remember_no_way,
    ) -> None:
        self._intake = intake
        self._remember_way = remember_way
        self._leader_hint = leader_hint
        self._sequenced = sequenced
        self._acks = AckWriter()
        self._answered: api.Ack | None = None
        self._hints: tuple[tuple[bytes, bytes], ...] = ()

    # --- one ------------------------------------------------------------------------------------

    @_records(
        "POST /v1/topics/{topic}/records",
        "Publish a record. A body other than JSON is its value.",
        parameters=PublishParameters,
        body=NewRecord,
        takes_any=True,
        other_bodies=("application/octet-stream", "text/plain"),
        answer=Ack,
        errors=(422, 501, 507),
        headers=(_KEY, _NUMBER),
    )
    def publish(self, request: Request, given: PublishParameters) -> Answer:
        if type(request.head.note) is _Way:
            return self._publish_along(request)
        record = read_record(request, given.key)
        mode = mode_of(given.mode)
        if is_bare(request, given.key):
            request.head.note = _Way(given.topic, given.partition, mode)
            self._remember_way(request, self._publish_along)
        once = once_of(request, mode, record)
        numbered = numbered_of(request, mode)
        if numbered is not None:
            return self._publish_numbered(given, record, numbered, once)
        return self._intake.send(
            given.topic,
            record,
            partial(self._tell, request),
            partition=given.partition,
            mode=mode,
            producer=once or NOBODY,
        )

    def _publish_along(self, request: Request) -> Answer:
        """Publish for a head that came before, from which nothing follows but where its record
        goes."""
        way = request.head.note
        assert type(way) is _Way
        return self._intake.send(
            way.topic,
            json_record(request.body),
            partial(self._tell, request),
            partition=way.partition,
            mode=way.mode,
        )

    async def _publish_numbered(
        self, given: PublishParameters, record: Outgoing, numbered: Numbered, once: Once | None
    ) -> Response:
        """Publish under a number that the client chose, so that a repeated request is recognised.

        The number also decides where a record without a key goes: a repeated one must find the
        same partition.
        """
        if once is not None:
            raise InvalidArgument("Idempotency-Key and Angarium-Sequence exclude each other")
        if self._sequenced is None:
            raise UnsupportedOperation("numbers of a client's own are not served here")
        partition, layout = given.partition, None
        former: tuple[tuple[int, int], ...] = ()
        if partition is None:

            def where(dealing: Layout) -> int:
                if record.key is None:
                    return dealing.in_turn(numbered.number)
                return dealing.of_key(record.key)

            shape = await self._intake.shapes.of(given.topic)
            partition, layout = where(shape.steady), shape.steady.number
            former = shape.formerly(where)
        try:
            ack = await self._sequenced.publish_sequenced(
                SequencedPublish(
                    producer=numbered.producer,
                    epoch=Epoch(1),
                    sequence=numbered.number,
                    topic=given.topic,
                    partition=partition,
                    batches=(single_batch(record),),
                    layout=layout,
                    former=former,
                )
            )
        except (NotFound, LayoutChanged):
            self._intake.shapes.forget(given.topic)
            raise
        return self._answer(Placed(ack, 0))

    def _tell(self, request: Request, outcome: Placed | Exception) -> None:
        request.answer(self._answer(outcome))

    def _answer(self, outcome: Placed | Exception) -> Response:
        if isinstance(outcome, Exception):
            return problem(outcome)
        ack = outcome.ack
        if ack is not self._answered:
            self._answered = ack
            self._hints = self._hint(ack.topic, ack.partition)
        return Response(200, self._acks.written(outcome), JSON, self._hints)

    def _hint(self, topic: str, partition: int) -> tuple[tuple[bytes, bytes], ...]:
        if self._leader_hint is None:
            return ()
        hint = self._leader_hint(topic, partition)
        return () if hint is None else ((HINT_HEADER, hint.encode()),)

    # --- many -----------------------------------------------------------------------------------

    @_records(
        "POST /v1/topics/{topic}/records/batch",
        "Publish many records at once, or batches packed by the client.",
        parameters=BatchParameters,
        body=NewRecords,
        other_bodies=(PACKED.decode(),),
        answer=Published,
        errors=(422, 507),
        headers=(_KEY,),
    )
    async def publish_batch(self, request: Request, given: BatchParameters) -> Response:
        topic, mode = given.topic, mode_of(given.mode)
        partitions: list[int] = []
        layout: int | None = None
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
            shape = self._intake.shapes.known(topic) or await self._intake.shapes.of(topic)
            if once is not None and shape.former and given.partition is None:
                return await self._publish_rest(topic, records, shape, once, mode)
            per_partition, partitions = packed(
                records, shape, partition=given.partition, producers=once or NOBODY
            )
            layout = shape.layout.number if given.partition is None else None
        answers = await self._intake.publish_each(topic, per_partition, mode, layout)
        return self._published(topic, list(per_partition), answers, partitions)

    async def _publish_rest(
        self,
        topic: str,
        given: Columns | Sequence[Outgoing],
        shape: TopicShape,
        once: Once,
        mode: DeliveryMode | None,
    ) -> Response:
        """Publish what earlier layouts of the topic do not have of a request under a key."""
        records = given.records() if isinstance(given, Columns) else given
        found = await recalled(self._intake, topic, records, shape, once)
        rest = [at for at in range(len(records)) if at not in found.partitions]
        per_partition: dict[int, tuple[Buffer, ...]] = {}
        if rest:
            some = [records[at] for at in rest]
            own = named(once, shape, shape.layout.number)
            per_partition, new = packed(some, shape, partition=None, producers=own)
            found.partitions.update(zip(rest, new, strict=True))
        layout = shape.layout.number
        answers = await self._intake.publish_each(topic, per_partition, mode, layout)
        partitions = [found.partitions[at] for at in range(len(records))]
        return self._published(topic, list(per_partition), answers, partitions, found.acks)

    def _published(
        self,
        topic: str,
        targets: list[int],
        answers: Sequence[tuple[api.Ack, ...] | Exception],
        partitions: list[int],
        known: Sequence[api.Ack] = (),
    ) -> Response:
        acks = [ack_out(one) for one in known]
        refusal: Exception | None = None
        for partition, answer in zip(targets, answers, strict=True):
            if isinstance(answer, Exception):
                refusal = refusal or answer
                acks.append(
                    Ack(topic=topic, partition=partition, mode="consistent", error=told(answer))
                )
            else:
                refusal = refusal or first_refusal(answer)
                acks += [ack_out(one) for one in answer]
        if refusal is not None:
            extra = {"acks": acks, "partitions": partitions}
            return problem(refusal, status=http_status(refusal), extra=extra)
        body = _encode(Published(acks=acks, partitions=partitions))
        hint = self._hint(topic, targets[0]) if len(targets) == 1 else ()
        return Response(200, body, JSON, hint)
