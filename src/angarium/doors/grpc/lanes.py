"""The lanes of a PublishStream: what waits for one partition, and what one call takes from it.

Single records that wait together are packed into common batches; a request that brought batches of
its own, or that a producer numbered, keeps them as they are. Results come in the order of requests.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from angarium.batch import BatchBuilder
from angarium.doors.grpc.publishing import first_refusal
from angarium.doors.grpc.records import added, single_batch
from angarium.doors.grpc.refusals import error_message
from angarium.doors.grpc.values import ack_message
from angarium.errors import AngariumError
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.api import Ack
    from angarium.ids import Buffer
    from angarium.modes import DeliveryMode

MERGED_BYTES: Final = 256 << 10
"""Single records that wait are packed into batches of this size at the most."""

CALL_BYTES: Final = 2 << 20
"""About how many bytes one call to the broker carries; the rest waits for the next one."""


@dataclass(slots=True, kw_only=True, eq=False)
class Waiting:
    """A request that has not been answered."""

    number: int
    size: int
    """Bytes of the request as it came."""
    mode: DeliveryMode | None
    record: pb.NewRecord | None = None
    """A record that may be packed together with its neighbours. Otherwise there are batches."""
    batches: tuple[Buffer, ...] = ()


@dataclass(slots=True, eq=False)
class Lane:
    """What waits for one partition."""

    topic: str
    partition: int
    merged_bytes: int
    """Bytes that a batch of merged records may have."""
    waiting: deque[Waiting] = field(default_factory=deque)


@dataclass(slots=True, eq=False)
class Share:
    """A request's part of a load."""

    request: Waiting
    first: int
    """The first batch with something of this request."""
    place: int | None = None
    """The record's place in that batch if it was packed; else the request's batches follow."""
    error: AngariumError | None = None
    """Why it has no part in the load after all."""


class Load:
    """What one call to the broker carries: requests of one mode, from the front of a lane."""

    def __init__(self, lane: Lane) -> None:
        self.batches: list[Buffer] = []
        self.mode = lane.waiting[0].mode
        self._shares: list[Share] = []
        self._fill(lane)

    def results(self, acks: tuple[Ack, ...]) -> Iterator[tuple[pb.PublishStreamResult, int]]:
        """Yield each request's result, and its size, from the acks of the load's batches."""
        for share in self._shares:
            request = share.request
            if share.error is not None:
                yield _failed(request, share.error), request.size
                continue
            if share.place is not None:
                ack = acks[share.first]
                messages = [ack_message(ack, place=share.place)]
                refusal = first_refusal((ack,))
            else:
                own = acks[share.first : share.first + len(request.batches)]
                messages = [ack_message(ack) for ack in own]
                refusal = first_refusal(own)
            result = pb.PublishStreamResult(number=request.number, acks=messages)
            if refusal is not None:
                result.error.CopyFrom(error_message(refusal))
            yield result, request.size

    def failures(self, error: Exception) -> Iterator[tuple[pb.PublishStreamResult, int]]:
        """Yield each request's result, and its size, after the call as a whole has failed."""
        for share in self._shares:
            yield _failed(share.request, share.error or error), share.request.size

    def _fill(self, lane: Lane) -> None:
        waiting = lane.waiting
        size = 0
        single: list[Waiting] = []
        while waiting and waiting[0].mode == self.mode and size < CALL_BYTES:
            request = waiting.popleft()
            size += request.size
            if request.record is not None:
                single.append(request)
                continue
            self._pack(single, bytes_max=lane.merged_bytes)
            single = []
            self._shares.append(Share(request, len(self.batches)))
            self.batches += request.batches
        self._pack(single, bytes_max=lane.merged_bytes)

    def _pack(self, requests: list[Waiting], *, bytes_max: int) -> None:
        """Pack single records into as few batches as the limit allows."""
        builder = BatchBuilder(bytes_max=bytes_max)
        for request in requests:
            assert request.record is not None
            share = Share(request, len(self.batches))
            self._shares.append(share)
            try:
                if len(requests) == 1:
                    # The way of a stream that is not in a hurry; no builder is needed for one.
                    self.batches.append(single_batch(request.record))
                    share.place = 0
                    return
                if not added(builder, request.record):
                    self.batches.append(builder.build())
                    share.first += 1
                    added(builder, request.record)
            except AngariumError as error:
                share.error = error
            else:
                share.place = len(builder) - 1
        if len(builder):
            self.batches.append(builder.build())


def _failed(request: Waiting, error: Exception) -> pb.PublishStreamResult:
    return pb.PublishStreamResult(number=request.number, error=error_message(error))
