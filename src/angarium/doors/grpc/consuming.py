"""Subscribe as a member of a group: records on loan outwards, settlements and credit inwards.

Answers to settlements and deliveries share the stream, so each is written whole before the next.
Half-closing the stream is leaving the group in good order: what was said before is answered, what
is still on loan goes back untried.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.api.stored_records import lent_rows
from angarium.batch.deadlines import ranges_of
from angarium.doors.feeds.credit import Credit
from angarium.doors.grpc.from_messages import (
    consume_request_of,
    settlements_of,
    wants_batches,
)
from angarium.doors.grpc.record_messages import filled, with_batches
from angarium.doors.grpc.to_messages import message_of, settled_message
from angarium.errors import InvalidArgument
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from angarium.api import Consumption, Handed
    from angarium.doors.grpc.door_limits import GrpcLimits
    from angarium.doors.grpc.faces import GrpcFace
    from angarium.ids import Buffer
    from angarium.wire.grpc import Call, Requests


async def consume(
    face: GrpcFace,
    opening: pb.SubscribeRequest.Open,
    requests: Requests,
    call: Call,
) -> None:
    """Serve one consumer until it leaves, is lost, or its part in the group breaks."""
    is_in_batches = wants_batches(opening.format)
    request = consume_request_of(opening)
    consumption = await face.broker.consume(request)
    try:
        member = _Member(consumption, face.limits, call, credit=request.credit)
        hand = member.hand_batches if is_in_batches else member.hand_records
        await member.join()
        async with asyncio.TaskGroup() as tasks:
            hearing = tasks.create_task(member.hear(requests, tasks))
            async for handed in consumption:
                await hand(handed)
            hearing.cancel()
    finally:
        # A member that left in good order has done so by now; any other may come back for a moment.
        await face.closings.see_to(consumption.close(lost=True))


class _Member:
    """One consumer and its stream."""

    def __init__(
        self, consumption: Consumption, limits: GrpcLimits, call: Call, *, credit: int
    ) -> None:
        self._consumption = consumption
        self._call = call
        self._bytes_target = limits.delivery_bytes
        self._writing = asyncio.Lock()
        self._settling = asyncio.Semaphore(limits.settles_max)
        self._answers: set[asyncio.Task[None]] = set()
        self._credit = credit

    async def join(self) -> None:
        """Say that it takes part, and in what."""
        joined = pb.SubscribeResponse.Joined(
            member=self._consumption.member,
            kind=self._consumption.kind + 1,  # type: ignore[arg-type]
            config=message_of(pb.GroupConfig, self._consumption.config),
        )
        await self._write(pb.SubscribeResponse(joined=joined))

    # --- what it says -----------------------------------------------------------------------------

    async def hear(self, requests: Requests, tasks: asyncio.TaskGroup) -> None:
        """Take what comes until it leaves."""
        async for data in requests:
            request = pb.SubscribeRequest.FromString(data)
            match request.WhichOneof("request"):
                case "settle":
                    await self._settling.acquire()
                    answer = tasks.create_task(self._settle(request.settle))
                    self._answers.add(answer)
                    answer.add_done_callback(self._answers.discard)
                case "credit":
                    if request.credit.records < 0:
                        raise InvalidArgument("credit is not negative")
                    self._credit += request.credit.records
                    await self._consumption.set_credit(self._credit)
                case _:
                    raise InvalidArgument("in a group `settle` and `credit` come after `open`")
        if self._answers:
            await asyncio.wait(self._answers)
        await self._consumption.close()

    async def _settle(self, message: pb.SubscribeRequest.Settle) -> None:
        try:
            settled = await self._consumption.settle(settlements_of(message.settlements))
        finally:
            self._settling.release()
        answered = pb.SubscribeResponse.Answered(
            number=message.number, settled=map(settled_message, settled)
        )
        await self._write(pb.SubscribeResponse(answered=answered))

    # --- what it is handed ------------------------------------------------------------------------

    async def hand_batches(self, handed: Handed) -> None:
        """Send whole batches, and which of their records are meant."""
        message = pb.SubscribeResponse(topic=handed.topic, partition=handed.partition)
        await self._lend(handed, message, handed.ranges, handed.batches)

    async def hand_records(self, handed: Handed) -> None:
        """Send the records that are meant, in messages of about the same size."""
        async for message in filled(
            handed,
            lambda batch: lent_rows(batch, handed),
            live=False,
            credit=Credit(None),  # how much is lent is for the group to say
            bytes_max=self._bytes_target,
        ):
            await self._lend(handed, message, ranges_of(one.offset for one in message.records))

    async def _lend(
        self,
        handed: Handed,
        message: pb.SubscribeResponse,
        ranges: Iterable[int],
        batches: Sequence[Buffer] = (),
    ) -> None:
        message.attempt = handed.attempt
        message.lease_ms = handed.lease_ms
        message.generation = handed.generation
        message.ranges.extend(ranges)
        await self._write(message, batches)

    async def _write(self, message: pb.SubscribeResponse, batches: Sequence[Buffer] = ()) -> None:
        data = with_batches(message, batches)
        async with self._writing:
            await self._call.write(data)
