"""Reading over REST: records of a partition from an offset on, one record, an offset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from angarium.api import FETCH_WAIT_MS_MAX, FetchRequest, Place, Start
from angarium.batch import Batch
from angarium.doors.feeds.batch_records import readable, records_of
from angarium.doors.http.publishing import PACKED
from angarium.doors.http.records import record_out
from angarium.doors.http.routing import Routes
from angarium.doors.http.values import INT64_MAX, Count, Fetched, FoundOffset, Partition, RecordOut
from angarium.errors import InvalidArgument, NotFound
from angarium.ids import Offset
from angarium.wire.http.messages import JSON, Response

if TYPE_CHECKING:
    from angarium.api import Broker, FetchResult
    from angarium.wire.http.messages import Request

RECORDS_MAX: Final = 10_000
"""Records that one answer holds at the most; `next_offset` says where to go on."""

BYTES_MAX: Final = 4 << 20
"""About how many bytes of batches one answer is made from at the most. The same."""

_records: Final = Routes("records")
_encode: Final = msgspec.json.Encoder().encode

Encoding = Annotated[str, Meta(pattern="^(text|base64)$")]


class FetchParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which records, and how many."""

    topic: str
    partition: Partition
    offset: Count = 0
    limit: Annotated[int, Meta(ge=1, le=RECORDS_MAX)] = 1_000
    """Records at the most."""
    bytes_max: Annotated[int, Meta(ge=1, le=BYTES_MAX)] = 1 << 20
    """About how many bytes at the most; a larger batch comes alone."""
    wait_ms: Annotated[int, Meta(ge=0, le=FETCH_WAIT_MS_MAX)] = 0
    """At the end, wait so long for more to come."""
    fresh: bool = False
    """Ask the leader, and let it make sure that it leads: never stale."""
    encoding: Encoding = "text"
    """`base64`: show every key and value in base64, also those that are text."""


class RecordParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which record."""

    topic: str
    partition: Partition
    offset: Count
    encoding: Encoding = "text"


class OffsetParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which place."""

    topic: str
    partition: Partition
    at: Annotated[str, Meta(pattern="^(earliest|latest|[0-9]{1,19})$")] = "latest"
    """`earliest`, `latest`, or a time in microseconds since 1970."""


class Reading:
    """The requests that read once."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @_records.get(
        "/v1/topics/{topic}/partitions/{partition}/records",
        "Fetch committed records from an offset on.",
        parameters=FetchParameters,
        answer=Fetched,
        other_answers=(PACKED.decode(),),
        errors=(416,),
    )
    async def fetch(self, request: Request, given: FetchParameters) -> Response:
        result = await self._broker.fetch(
            FetchRequest(
                topic=given.topic,
                partition=given.partition,
                offset=Offset(given.offset),
                bytes_max=given.bytes_max,
                wait_ms=given.wait_ms,
                fresh=given.fresh,
            )
        )
        if request.header(b"accept") == PACKED:
            return _packed(result, asked=given.offset)
        return Response(200, _encode(_fetched(result, given)), JSON)

    @_records.get(
        "/v1/topics/{topic}/partitions/{partition}/records/{offset}",
        "Fetch one record; its bare value with Accept: application/octet-stream.",
        parameters=RecordParameters,
        answer=RecordOut,
        other_answers=("application/octet-stream",),
        errors=(416,),
    )
    async def record(self, request: Request, given: RecordParameters) -> Response:
        result = await self._broker.fetch(
            FetchRequest(
                topic=given.topic,
                partition=given.partition,
                offset=Offset(given.offset),
                bytes_max=1,
            )
        )
        for buffer in result.batches:
            batch = readable(buffer, topic=given.topic, partition=given.partition)
            for record in records_of(
                batch, from_offset=Offset(given.offset), expired=result.expired
            ):
                if record.offset != given.offset:
                    break
                if request.header(b"accept") == b"application/octet-stream":
                    return Response(200, record.value or b"", b"application/octet-stream")
                shown: RecordOut = record_out(
                    record, partition=given.partition, in_base64=given.encoding == "base64"
                )
                return Response(200, _encode(shown), JSON)
        raise NotFound(f"there is no record at offset {given.offset}, or not any more")

    @_records.get(
        "/v1/topics/{topic}/partitions/{partition}/offset",
        "Find the offset of a place or a time.",
        parameters=OffsetParameters,
        answer=FoundOffset,
    )
    async def find_offset(self, _: Request, given: OffsetParameters) -> Response:
        match given.at:
            case "earliest":
                start = Start(Place.EARLIEST)
            case "latest":
                start = Start(Place.LATEST)
            case time:
                if int(time) > INT64_MAX:
                    raise InvalidArgument("that time is too far away")
                start = Start(Place.TIMESTAMP, int(time))
        offset = await self._broker.find_offset(given.topic, given.partition, start)
        return Response(200, _encode(FoundOffset(offset)), JSON)


def _packed(result: FetchResult, *, asked: int) -> Response:
    after = Batch.trusted(result.batches[-1]).next_offset if result.batches else asked
    headers = (
        (b"Angarium-Next-Offset", str(after).encode()),
        (b"Angarium-Start-Offset", str(result.start_offset).encode()),
        (b"Angarium-End-Offset", str(result.end_offset).encode()),
        (b"Angarium-Expired", ",".join(map(str, result.expired)).encode()),
    )
    return Response(200, b"".join(result.batches), PACKED, headers)


def _fetched(result: FetchResult, given: FetchParameters) -> Fetched:
    records: list[RecordOut] = []
    after = given.offset
    in_base64 = given.encoding == "base64"
    for buffer in result.batches:
        batch = readable(buffer, topic=given.topic, partition=given.partition)
        some = records_of(batch, from_offset=Offset(given.offset), expired=result.expired)
        for record in some:
            if len(records) == given.limit:
                return _answer(result, records, record.offset)
            records.append(record_out(record, partition=given.partition, in_base64=in_base64))
        # A compacted batch covers offsets beyond its last record, too.
        after = max(after, batch.next_offset)
    return _answer(result, records, after)


def _answer(result: FetchResult, records: list[RecordOut], after: int) -> Fetched:
    return Fetched(
        records=records,
        next_offset=after,
        start_offset=result.start_offset,
        end_offset=result.end_offset,
    )
