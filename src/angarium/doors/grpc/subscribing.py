"""Subscribe: deliveries outwards as far as credit goes, wishes inwards, on one stream.

A subscription is read only when what it yielded last has gone out, so a slow subscriber holds back
nothing but itself: without credit the door waits for some, with credit it waits until the
connection takes more.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.batch import Batch
from angarium.doors.feeds.credit import Credit
from angarium.doors.feeds.records import parts_of, readable
from angarium.doors.feeds.subscriptions import interests, partitions_of
from angarium.doors.grpc.consuming import consume
from angarium.doors.grpc.records import add_records, with_batches
from angarium.doors.grpc.values import partition_of, start_of, wants_batches
from angarium.errors import InvalidArgument, LimitExceeded
from angarium.proto.v1 import broker_pb2 as pb
from angarium.wire.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from angarium.api import Broker, Delivery, Interest, Subscription
    from angarium.closing import Closings
    from angarium.doors.grpc.calls import Context
    from angarium.doors.grpc.limits import GrpcLimits
    from angarium.ids import Buffer


class Subscribing:
    """The call that subscribes."""

    def __init__(
        self, broker: Broker, limits: GrpcLimits, stopping: asyncio.Event, closings: Closings
    ) -> None:
        self._closings = closings
        self._broker = broker
        self._limits = limits
        self._stopping = stopping

    async def subscribe(self, requests: AsyncIterator[bytes], context: Context) -> None:
        """Serve one subscriber until it goes, has no credit for good, or the door closes."""
        first = await anext(requests, None)
        opening = pb.SubscribeRequest() if first is None else pb.SubscribeRequest.FromString(first)
        if opening.WhichOneof("request") != "open":
            raise InvalidArgument("a subscription begins with `open`")
        if opening.open.HasField("group"):
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(self._watch())
                await consume(
                    self._broker, self._limits, opening.open, requests, context, self._closings
                )
                watching.cancel()
            return
        credit = Credit(opening.open.credit if opening.open.HasField("credit") else None)
        wishes = Wishes(self._broker, self._limits)
        interests = await wishes.interests(opening.open.interests)
        batches = wants_batches(opening.open.format)
        subscription = await self._broker.subscribe(interests)
        sender = Sender(context, credit, batches=batches, bytes_target=self._limits.delivery_bytes)
        try:
            # Whoever waits for the headers knows that nothing from here on is missed.
            await context.send_initial_metadata(())
            async with asyncio.TaskGroup() as tasks:
                others = (
                    tasks.create_task(_listen(requests, subscription, wishes, credit)),
                    tasks.create_task(self._watch()),
                )
                async for delivery in subscription:
                    if not await sender.send(delivery):
                        break
                for task in others:
                    task.cancel()
        finally:
            await self._closings.see_to(subscription.close())

    async def _watch(self) -> None:
        await self._stopping.wait()
        raise Unreachable("this node is stopping; another one will go on from where you are")


class Wishes:
    """The partitions that a subscriber wants, within the limit."""

    def __init__(self, broker: Broker, limits: GrpcLimits) -> None:
        self._broker = broker
        self._interests_max = limits.interests_max
        self._wanted: dict[str, set[int]] = {}

    async def interests(self, messages: Iterable[pb.Interest]) -> list[Interest]:
        """Return the partitions that `messages` ask for, and keep them in mind."""
        found: list[Interest] = []
        for message in messages:
            if not message.topic:
                raise InvalidArgument("an interest names a topic")
            partitions = await self._partitions(message)
            found += interests(message.topic, partitions, start_of(message.start))
            self._wanted.setdefault(message.topic, set()).update(partitions)
            if sum(map(len, self._wanted.values())) > self._interests_max:
                raise LimitExceeded(
                    "interests_max",
                    f"one subscription delivers at most {self._interests_max} partitions",
                )
        return found

    def dropped(self, message: pb.SubscribeRequest.Drop) -> list[int]:
        """Return the partitions that `message` gives up, and forget them."""
        wanted = self._wanted.get(message.topic, set())
        if not message.HasField("partition"):
            return sorted(self._wanted.pop(message.topic, ()))
        wanted.discard(message.partition)
        return [partition_of(message.partition)]

    async def _partitions(self, message: pb.Interest) -> Sequence[int]:
        if message.HasField("partition"):
            return (partition_of(message.partition),)
        return await partitions_of(self._broker, message.topic)


class Sender:
    """Turns deliveries into messages and sends them, as far as credit goes."""

    def __init__(
        self, context: Context, credit: Credit, *, batches: bool, bytes_target: int
    ) -> None:
        self._context = context
        self._credit = credit
        self._bytes_target = bytes_target
        self._send = self._send_batches if batches else self._send_records

    async def send(self, delivery: Delivery) -> bool:
        """Send all of `delivery`; False if there will never be credit for the rest of it."""
        return await self._send(delivery)

    async def _send_records(self, delivery: Delivery) -> bool:
        credit = self._credit
        for buffer in delivery.batches:
            batch = readable(buffer, topic=delivery.topic, partition=delivery.partition)
            parts = [(0, len(batch))]
            if not delivery.live:
                parts = parts_of(batch, delivery.expired, from_offset=delivery.from_offset)
            for start, end in parts:
                position = start
                while position < end:
                    if not await credit.some():
                        return False
                    stop = min(end, position + credit.left) if credit.is_bounded else end
                    message = pb.SubscribeResponse()
                    count = add_records(
                        message,
                        batch,
                        position,
                        stop,
                        live=delivery.live,
                        bytes_max=self._bytes_target,
                    )
                    position += count
                    credit.left -= count
                    await self._write(delivery, message)
        return True

    async def _send_batches(self, delivery: Delivery) -> bool:
        credit = self._credit
        waiting = list(delivery.batches)
        while waiting:
            if not await credit.some():
                return False
            some, records = self._portion(waiting, delivery)
            credit.left -= records
            message = pb.SubscribeResponse(
                from_offset=delivery.from_offset, expired=delivery.expired
            )
            await self._write(delivery, message, some)
        return True

    def _portion(self, waiting: list[Buffer], delivery: Delivery) -> tuple[list[Buffer], int]:
        """Take the batches of one message from `waiting`; return them and their records' number."""
        size = count = taken = 0
        for buffer in waiting:
            if taken and (
                size + len(buffer) > self._bytes_target
                or (self._credit.is_bounded and count >= self._credit.left)
            ):
                break
            size += len(buffer)
            taken += 1
            if self._credit.is_bounded:
                batch = Batch.trusted(buffer)
                below = 0 if delivery.live else batch.position_of(delivery.from_offset)
                count += len(batch) - below
        some = waiting[:taken]
        del waiting[:taken]
        return some, count

    async def _write(
        self, delivery: Delivery, message: pb.SubscribeResponse, batches: Sequence[Buffer] = ()
    ) -> None:
        message.topic = delivery.topic
        message.partition = delivery.partition
        message.live = delivery.live
        await self._context.write(with_batches(message, batches))


async def _listen(
    requests: AsyncIterator[bytes], subscription: Subscription, wishes: Wishes, credit: Credit
) -> None:
    """Do what the subscriber says, until it has nothing more to say."""
    async for data in requests:
        request = pb.SubscribeRequest.FromString(data)
        match request.WhichOneof("request"):
            case "credit":
                credit.add(request.credit.records)
            case "add":
                await subscription.add(await wishes.interests(request.add.interests))
            case "drop":
                for partition in wishes.dropped(request.drop):
                    await subscription.drop(request.drop.topic, partition)
            case _:
                raise InvalidArgument("after `open` come `add`, `drop` and `credit`")
    credit.close()
