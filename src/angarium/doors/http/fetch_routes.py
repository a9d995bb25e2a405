"""Reading over REST: records of a partition from an offset on, one record, an offset.

The annotations of a call are its declaration (`routing.call`), so they are not put off here.
"""

from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from angarium.api import FETCH_WAIT_MS_MAX, Broker, FetchRequest, FetchResult, Start, StartAt
from angarium.api.stored_records import fetched_records
from angarium.batch import Batch
from angarium.doors.http.publish_routes import PACKED
from angarium.doors.http.record_json import (
    INT64_MAX,
    Count,
    Encoding,
    Partition,
    RecordOut,
    record_out,
)
from angarium.doors.http.routing import call, route
from angarium.errors import InvalidArgument, NotFound
from angarium.ids import Offset
from angarium.wire.http.messages import JSON, Request, Response

RECORDS_MAX: Final = 10_000
"""Records that one answer holds at the most; `next_offset` says where to go on."""

BYTES_MAX: Final = 4 << 20
"""About how many bytes of batches one answer is made from at the most. The same."""

BARE: Final = b"application/octet-stream"
"""What to accept to get a record's value and nothing else."""

_records: Final = partial(route, tag="records")
_encode: Final = msgspec.json.Encoder().encode

OffsetWord = Annotated[
    str,
    Meta(
        pattern="^(earliest|latest|[0-9]{1,19})$",
        description="`earliest`, `latest`, or a time in microseconds since 1970.",
    ),
]


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
    at_least: Count | None = None
    """An offset that has to be there: of a record that the reader has written, or has seen."""
    max_staleness_ms: Annotated[int, Meta(ge=0, le=INT64_MAX)] | None = None
    """All that was committed so long ago is there, or the answer is 503."""
    encoding: Encoding = "text"
    """`base64`: show every key and value in base64, also those that are text."""


class RecordParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which record."""

    topic: str
    partition: Partition
    offset: Count
    encoding: Encoding = "text"


class Fetched(msgspec.Struct, frozen=True):
    """Committed records, in the order of their offsets."""

    records: list[RecordOut]
    next_offset: int
    """Where to go on."""
    start_offset: int
    """The first offset that can still be read."""
    end_offset: int
    """The end of what is committed, as far as the answering node knows."""
    node: int = 0
    """Whose replica was read."""
    region: str = ""
    """Where that node is."""
    staleness_ms: int = 0
    """How old this may be; 0 from the leader."""


class FoundOffset(msgspec.Struct, frozen=True):
    """An offset."""

    offset: int


class FetchRoutes:
    """The requests that read once."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @_records(
        "GET /v1/topics/{topic}/partitions/{partition}/records",
        "Fetch committed records from an offset on.",
        parameters=FetchParameters,
        answer=Fetched,
        other_answers=(PACKED.decode(),),
        errors=(416,),
    )
    async def fetch(self, request: Request, given: FetchParameters) -> Response:
        wanted = FetchRequest(
            topic=given.topic,
            partition=given.partition,
            offset=Offset(given.offset),
            bytes_max=given.bytes_max,
            wait_ms=given.wait_ms,
            fresh=given.fresh,
            at_least=None if given.at_least is None else Offset(given.at_least),
            max_staleness_ms=given.max_staleness_ms,
        )
        result = await self._broker.fetch(wanted)
        if request.header(b"accept") == PACKED:
            return _packed(result, asked=given.offset)
        records, after = fetched_records(result, wanted, limit=given.limit)
        number, in_base64 = given.partition, given.encoding == "base64"
        fetched = Fetched(
            records=[record_out(one, partition=number, in_base64=in_base64) for one in records],
            next_offset=after,
            start_offset=result.start_offset,
            end_offset=result.end_offset,
            node=result.node,
            region=result.region,
            staleness_ms=result.staleness_ms,
        )
        return Response(200, _encode(fetched), JSON)

    @_records(
        "GET /v1/topics/{topic}/partitions/{partition}/records/{offset}",
        "Fetch one record; its bare value with Accept: application/octet-stream.",
        parameters=RecordParameters,
        answer=RecordOut,
        other_answers=(BARE.decode(),),
        errors=(416,),
    )
    async def record(self, request: Request, given: RecordParameters) -> Response:
        wanted = FetchRequest(
            topic=given.topic,
            partition=given.partition,
            offset=Offset(given.offset),
            bytes_max=1,
        )
        found, _ = fetched_records(await self._broker.fetch(wanted), wanted, limit=1)
        if not found or found[0].offset != given.offset:
            raise NotFound(f"there is no record at offset {given.offset}, or not any more")
        if request.header(b"accept") == BARE:
            return Response(200, found[0].value or b"", BARE)
        in_base64 = given.encoding == "base64"
        shown = record_out(found[0], partition=given.partition, in_base64=in_base64)
        return Response(200, _encode(shown), JSON)

    @partial(call, tag="records")(
        "GET /v1/topics/{topic}/partitions/{partition}/offset",
        "Find the first or the next offset, or that of a time.",
    )
    async def find_offset(
        self, topic: str, partition: Partition, at: OffsetWord = "latest"
    ) -> FoundOffset:
        if at.isdecimal():
            if int(at) > INT64_MAX:
                raise InvalidArgument("that time is too far away")
            start = Start(StartAt.TIMESTAMP, int(at))
        else:
            start = Start(StartAt[at.upper()])
        return FoundOffset(await self._broker.find_offset(topic, partition, start))


def _packed(result: FetchResult, *, asked: int) -> Response:
    after = Batch.trusted(result.batches[-1]).next_offset if result.batches else asked
    headers = (
        (b"Angarium-Next-Offset", str(after).encode()),
        (b"Angarium-Start-Offset", str(result.start_offset).encode()),
        (b"Angarium-End-Offset", str(result.end_offset).encode()),
        (b"Angarium-Expired", ",".join(map(str, result.expired)).encode()),
        (b"Angarium-Staleness-Ms", str(result.staleness_ms).encode()),
    )
    return Response(200, b"".join(result.batches), PACKED, headers)
