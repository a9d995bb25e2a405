"""A member of a group over gRPC: one stream, records in, acknowledgements out."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any

import grpc.aio

from angarium.batch.deadlines import ranges_of
from angarium.bench.drivers.members import Hands
from angarium.bench.drivers.port import Lent
from angarium.errors import OutcomeUnknown
from angarium.ids import TopicPartition
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from collections.abc import Sequence


class GrpcMember:
    """Consumes through the gRPC door of one node."""

    def __init__(self, channel: grpc.aio.Channel, call: Any) -> None:
        """Not for callers: use `joined`."""
        self._channel = channel
        self._call = call
        self._hands = Hands()
        self._numbers = count(1)
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def joined(
        cls, channel: grpc.aio.Channel, *, group: str, topics: Sequence[str], credit: int
    ) -> GrpcMember:
        """Join the group; raises `OutcomeUnknown` with what the door says."""
        call = BrokerStub(channel).Subscribe()
        membership = pb.Membership(group=group, topics=topics)
        opening = pb.SubscribeRequest.Open(
            group=membership, credit=credit, format=pb.FORMAT_RECORDS
        )
        try:
            await call.write(pb.SubscribeRequest(open=opening))
            first = await call.read()
        except grpc.aio.AioRpcError as error:
            raise OutcomeUnknown(f"{error.code().name}: {error.details()}") from None
        assert first.HasField("joined"), "a membership begins with `joined`"
        return cls(channel, call)

    async def receive(self) -> Lent | None:
        """Return what was handed over next."""
        return await self._hands.take()

    async def acknowledge(self, lent: Lent) -> None:
        """Say that these are done with."""
        settlement = pb.Settlement(
            topic=lent.partition.topic,
            partition=lent.partition.partition,
            ranges=ranges_of(lent.offsets),
            verb=pb.VERB_ACK,
        )
        number = next(self._numbers)
        self._hands.say(number, lent)
        settle = pb.SubscribeRequest.Settle(number=number, settlements=[settlement])
        await self._call.write(pb.SubscribeRequest(settle=settle))

    async def flush(self) -> None:
        """Wait until everything that was said has been answered."""
        await self._hands.flush()

    async def vanish(self) -> int:
        """Hang up."""
        self._reading.cancel()
        await self._channel.close()
        return self._hands.in_hand

    async def close(self) -> None:
        """Leave in good order."""
        if not self._reading.done():
            await self._call.done_writing()
            await asyncio.wait([self._reading], timeout=2.0)
        await self._channel.close()

    async def _read(self) -> None:
        try:
            while (message := await self._call.read()) is not grpc.aio.EOF:
                if message.HasField("answered"):
                    self._hands.hear(message.answered.number)
                else:
                    partition = TopicPartition(message.topic, message.partition)
                    values = [one.value for one in message.records]
                    offsets = [one.offset for one in message.records]
                    await self._hands.hand(Lent(partition, values, offsets))
        except grpc.aio.AioRpcError:
            pass
        finally:
            self._hands.end()
