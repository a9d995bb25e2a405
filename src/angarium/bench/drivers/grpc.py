"""gRPC: a call per publish, or one stream whose answers come as they are known."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from angarium.batch import Batch, encode, split
from angarium.bench.drivers.grpc_member import GrpcMember
from angarium.bench.drivers.port import Received
from angarium.errors import OutcomeUnknown
from angarium.ids import TopicPartition
from angarium.modes import DeliveryMode
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub
from angarium.security.tls.client import SYSTEM, TlsOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from angarium.bench.ways import Ways

_MODES = {
    DeliveryMode.CONSISTENT: pb.DELIVERY_MODE_CONSISTENT,
    DeliveryMode.EVENTUAL: pb.DELIVERY_MODE_EVENTUAL,
    DeliveryMode.PERFORMANCE: pb.DELIVERY_MODE_PERFORMANCE,
}

CALL_TIMEOUT_S = 30.0
"""A call that takes longer counts as one whose outcome nobody knows."""

_CHANNEL_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),  # or all channels of a process would be one connection
    ("grpc.max_receive_message_length", -1),
)


class GrpcDriver:
    """Channels to the nodes of one cluster."""

    def __init__(self, ways: Ways, mode: DeliveryMode, *, is_streaming: bool) -> None:
        self._ways = ways
        self._mode = mode
        self._is_streaming = is_streaming

    async def publisher(self) -> GrpcPublisher | GrpcStreamPublisher:
        """Return one with channels of its own."""
        channels = {one: _channel(one) for one in self._ways.addresses}
        for channel in channels.values():
            await channel.channel_ready()
        made = GrpcStreamPublisher if self._is_streaming else GrpcPublisher
        return made(channels, self._ways, self._mode)

    async def subscriber(
        self, partitions: Sequence[TopicPartition], *, from_start: bool
    ) -> GrpcSubscriber:
        """Return one stream that all partitions come over, from one of the nodes."""
        channel = _channel(self._ways.read)
        await channel.channel_ready()
        call = BrokerStub(channel).Subscribe()
        start = (
            pb.Start(earliest=pb.Start.Earliest())
            if from_start
            else pb.Start(latest=pb.Start.Latest())
        )
        interests = [
            pb.Interest(topic=partition.topic, partition=partition.partition, start=start)
            for partition in partitions
        ]
        opening = pb.SubscribeRequest.Open(interests=interests, format=pb.FORMAT_BATCHES)
        await call.write(pb.SubscribeRequest(open=opening))
        return GrpcSubscriber(channel, call)

    async def member(self, group: str, topics: Sequence[str], *, credit: int) -> GrpcMember:
        """Return one that consumes through the door that is read from."""
        channel = _channel(self._ways.read)
        return await GrpcMember.joined(channel, group=group, topics=topics, credit=credit)

    async def close(self) -> None:
        """Nothing is shared."""


class GrpcPublisher:
    """Publishes by unary calls."""

    def __init__(
        self, channels: Mapping[str, grpc.aio.Channel], ways: Ways, mode: DeliveryMode
    ) -> None:
        self._channels = channels
        self._ways = ways
        self._stubs: dict[str, Any] = {
            address: BrokerStub(channel) for address, channel in channels.items()
        }
        self._mode = _MODES[mode]

    async def publish(self, partition: TopicPartition, values: Sequence[bytes]) -> None:
        """Publish records and wait for their acknowledgement."""
        stub = self._stubs[self._ways.to(partition)]
        request = _request(partition, values, self._mode)
        call = stub.Publish if isinstance(request, pb.PublishRequest) else stub.PublishBatch
        try:
            await call(request, timeout=CALL_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            raise OutcomeUnknown(f"{error.code().name}: {error.details()}") from None

    async def close(self) -> None:
        """Hang up."""
        for channel in self._channels.values():
            await channel.close()


class GrpcStreamPublisher:
    """Publishes over one stream per node; answers find their callers by number."""

    def __init__(
        self, channels: Mapping[str, grpc.aio.Channel], ways: Ways, mode: DeliveryMode
    ) -> None:
        self._channels = channels
        self._ways = ways
        self._streams = {address: _PublishStream(channel) for address, channel in channels.items()}
        self._mode = _MODES[mode]

    async def publish(self, partition: TopicPartition, values: Sequence[bytes]) -> None:
        """Publish records and wait for their acknowledgement."""
        await self._streams[self._ways.to(partition)].publish(
            _request(partition, values, self._mode)
        )

    async def close(self) -> None:
        """End the streams and hang up."""
        for stream in self._streams.values():
            await stream.close()
        for channel in self._channels.values():
            await channel.close()


class _PublishStream:
    """One PublishStream call."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._call = BrokerStub(channel).PublishStream()
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._writing = asyncio.Lock()  # gRPC takes one message at a time
        self._reading = asyncio.create_task(self._read())

    async def publish(self, request: pb.PublishRequest | pb.PublishBatchRequest) -> None:
        """Send a request and wait for its result."""
        number = next(self._numbers)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        if isinstance(request, pb.PublishRequest):
            message = pb.PublishStreamRequest(number=number, publish=request)
        else:
            message = pb.PublishStreamRequest(number=number, batch=request)
        try:
            async with self._writing:
                await self._call.write(message)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            self._waiting.pop(number, None)
            raise OutcomeUnknown(f"the stream ended: {error}") from None
        await answer

    async def close(self) -> None:
        """End the stream; what waits is told so."""
        with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await self._call.done_writing()
        self._reading.cancel()
        await asyncio.wait([self._reading])

    async def _read(self) -> None:
        reason = "the stream ended"
        try:
            async for response in self._call:
                for result in response.results:
                    self._settle(result)
        except grpc.aio.AioRpcError as error:
            reason = f"{error.code().name}: {error.details()}"
        finally:
            waiting, self._waiting = self._waiting, {}
            for answer in waiting.values():
                if not answer.done():
                    answer.set_exception(OutcomeUnknown(reason))

    def _settle(self, result: pb.PublishStreamResult) -> None:
        answer = self._waiting.pop(result.number, None)
        if answer is None or answer.done():
            return
        if result.HasField("error"):
            answer.set_exception(OutcomeUnknown(f"{result.error.code}: {result.error.message}"))
        else:
            answer.set_result(None)


class GrpcSubscriber:
    """Receives whole batches over one stream."""

    def __init__(self, channel: grpc.aio.Channel, call: Any) -> None:
        self._channel = channel
        self._call = call
        self._arrived: list[Received] = []

    async def receive(self) -> Received | None:
        """Return the next batch's records."""
        while not self._arrived:
            response = await self._call.read()
            if response is grpc.aio.EOF:
                return None
            partition = TopicPartition(response.topic, response.partition)
            self._arrived = [
                Received(partition, values)
                for values in map(_values_from(response.from_offset), split(response.batches))
                if values
            ]
        return self._arrived.pop(0)

    async def close(self) -> None:
        """Stop receiving."""
        self._call.cancel()
        await self._channel.close()


def _values_from(offset: int) -> Callable[[Any], Sequence[bytes | None]]:
    def values(buffer: Any) -> Sequence[bytes | None]:
        batch = Batch.parse(buffer, compacted=True, contents=False)
        return batch.values(batch.position_of(offset) if batch.is_stamped else 0)  # type: ignore[arg-type]

    return values


def _channel(address: str) -> grpc.aio.Channel:
    tls = TlsOptions.from_environment()
    if not tls.is_on:
        return grpc.aio.insecure_channel(address, options=_CHANNEL_OPTIONS)
    files = (tls.ca, tls.key or tls.cert, tls.cert)
    read = [Path(one).read_bytes() if one and one != SYSTEM else None for one in files]
    named = [("grpc.ssl_target_name_override", tls.server_name)] if tls.server_name else []
    credentials = grpc.ssl_channel_credentials(*read)
    return grpc.aio.secure_channel(address, credentials, options=[*_CHANNEL_OPTIONS, *named])


def _request(
    partition: TopicPartition, values: Sequence[bytes], mode: Any
) -> pb.PublishRequest | pb.PublishBatchRequest:
    if len(values) == 1:
        return pb.PublishRequest(
            topic=partition.topic,
            partition=partition.partition,
            record=pb.NewRecord(value=values[0]),
            mode=mode,
        )
    # Packed as a fast client of any language would: the batch is the unit.
    packed = bytes(encode(values))
    return pb.PublishBatchRequest(
        topic=partition.topic, partition=partition.partition, packed=packed, mode=mode
    )
