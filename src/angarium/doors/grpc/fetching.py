"""Fetch: committed records, or whole batches, from an offset on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.api import FETCH_BYTES_MAX, FETCH_WAIT_MS_MAX, FetchRequest, FetchResult
from angarium.api.stored_records import readable, rows_of
from angarium.batch import Batch
from angarium.doors.grpc.from_messages import partition_of, wants_batches
from angarium.doors.grpc.record_messages import add_records
from angarium.errors import InvalidArgument
from angarium.ids import Offset
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from angarium.doors.grpc.faces import GrpcFace
    from angarium.wire.grpc import Call

BYTES_DEFAULT: Final = 1 << 20
"""What a fetch returns if it does not say how much it wants."""

ANSWER_MS: Final = 50
"""Kept of a call's deadline for the way back: a fetch that waits answers before it is too late."""


async def fetch(face: GrpcFace, request: pb.FetchRequest, call: Call) -> pb.FetchResponse:
    """Return committed records, or batches, from an offset on."""
    batches = wants_batches(request.format)
    if request.offset < 0 or request.bytes_max < 0 or request.wait_ms < 0:
        raise InvalidArgument("offset, bytes_max and wait_ms are not negative")
    bytes_max = request.bytes_max or BYTES_DEFAULT
    bytes_max = min(bytes_max, FETCH_BYTES_MAX if batches else face.limits.fetch_bytes_max)
    result = await face.broker.fetch(
        FetchRequest(
            topic=request.topic,
            partition=partition_of(request.partition),
            offset=Offset(request.offset),
            bytes_max=bytes_max,
            wait_ms=_wait_ms(request.wait_ms, call.time_remaining()),
            fresh=request.fresh,
            layout=request.layout if request.HasField("layout") else None,
            at_least=Offset(request.at_least) if request.HasField("at_least") else None,
            max_staleness_ms=(
                request.max_staleness_ms if request.HasField("max_staleness_ms") else None
            ),
        )
    )
    response = pb.FetchResponse(
        start_offset=result.start_offset,
        end_offset=result.end_offset,
        next_offset=request.offset,
        expired=result.expired,
        node=result.node,
        region=result.region,
        staleness_ms=result.staleness_ms,
    )
    if not batches:
        _add_records(response, result, request, bytes_max=bytes_max)
    elif result.batches:
        response.batches = b"".join(result.batches)
        response.next_offset = Batch.trusted(result.batches[-1]).next_offset
    return response


def _wait_ms(wanted: int, seconds_left: float | None) -> int:
    if seconds_left is not None:
        wanted = min(wanted, int(seconds_left * 1_000) - ANSWER_MS)
    return max(0, min(wanted, FETCH_WAIT_MS_MAX))


def _add_records(
    response: pb.FetchResponse, result: FetchResult, request: pb.FetchRequest, *, bytes_max: int
) -> None:
    """Open the batches as far as `bytes_max` goes: compressed ones hold more than it seems."""
    for buffer in result.batches:
        batch = readable(buffer, topic=request.topic, partition=request.partition)
        for start, stop in rows_of(batch, result.expired, from_offset=Offset(request.offset)):
            room = bytes_max - response.ByteSize()
            if response.records and room <= 0:
                response.next_offset = batch.offsets(start, start + 1)[0]
                return
            count = add_records(response, batch, start, stop, live=False, bytes_max=max(1, room))
            if start + count < stop:
                response.next_offset = batch.offsets(start + count, start + count + 1)[0]
                return
        # A compacted batch covers offsets beyond its last record, too.
        response.next_offset = batch.next_offset
