"""Subscribe: deliveries outwards as far as credit goes, wishes inwards, on one stream.

A subscription is read only when what it yielded last has gone out, so a slow subscriber holds back
nothing but itself: without credit the door waits for some, with credit it waits until the
connection takes more.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from angarium.api.reading import check_start
from angarium.api.stored_records import delivered_rows
from angarium.batch import Batch
from angarium.doors.feeds.credit import Credit
from angarium.doors.feeds.following import Whole
from angarium.doors.feeds.positions import interests, partitions_of
from angarium.doors.feeds.whole import WholeTopics
from angarium.doors.grpc.consuming import consume
from angarium.doors.grpc.from_messages import partition_of, start_of, wants_batches
from angarium.doors.grpc.record_messages import filled, say_who_served, with_batches
from angarium.errors import InvalidArgument, LimitExceeded
from angarium.ids import Offset
from angarium.proto.v1 import broker_pb2 as pb
from angarium.wire.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.api import Broker, Delivery, Interest
    from angarium.doors.grpc.door_limits import GrpcLimits
    from angarium.doors.grpc.faces import GrpcFace
    from angarium.ids import Buffer
    from angarium.wire.grpc import Call, Requests


async def subscribe(face: GrpcFace, requests: Requests, call: Call) -> None:
    """Serve one subscriber until it goes, has no credit for good, or the door closes."""
    first = await anext(requests, None)
    request = pb.SubscribeRequest() if first is None else pb.SubscribeRequest.FromString(first)
    if request.WhichOneof("request") != "open":
        raise InvalidArgument("a subscription begins with `open`")
    opening = request.open
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(_watch(face.stopping))
        if opening.HasField("group"):
            await consume(face, opening, requests, call)
        else:
            await _deliver(face, opening, requests, call)
        watching.cancel()


async def _watch(stopping: asyncio.Event) -> None:
    await stopping.wait()
    raise Unreachable("this node is stopping; another one will go on from where you are")


async def _deliver(
    face: GrpcFace,
    opening: pb.SubscribeRequest.Open,
    requests: Requests,
    call: Call,
) -> None:
    credit = Credit(opening.credit if opening.HasField("credit") else None)
    wishes = Wishes(face.broker, face.limits)
    wholes, named = await wishes.taken(opening.interests)
    is_in_batches = wants_batches(opening.format)
    subscription = WholeTopics(face.broker)
    await subscription.want(wholes, named)
    sender = Sender(call, credit, bytes_target=face.limits.delivery_bytes)
    send = sender.send_batches if is_in_batches else sender.send_records
    try:
        # A client that waits for the headers knows that nothing from here on is missed.
        await call.send_initial_metadata(())
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(_listen(requests, subscription, wishes, credit))
            async for delivery in subscription:
                if delivery.fenced:
                    stop = pb.SubscribeResponse(
                        topic=delivery.topic, partition=delivery.partition, fenced=True
                    )
                    await call.write(stop.SerializeToString())
                    continue
                if not await send(delivery):
                    break
            listening.cancel()
    finally:
        await face.closings.see_to(subscription.close())


class Wishes:
    """The partitions that a subscriber wants, within the limit."""

    def __init__(self, broker: Broker, limits: GrpcLimits) -> None:
        self._broker = broker
        self._interests_max = limits.interests_max
        self._wanted: dict[str, set[int]] = {}

    async def taken(self, messages: Iterable[pb.Interest]) -> tuple[list[Whole], list[Interest]]:
        """Return the topics and the partitions that `messages` ask for, and keep them in mind.

        Who names a layout sees to fences itself, and gets the partitions that there are now.
        """
        wholes: list[Whole] = []
        named: list[Interest] = []
        for message in messages:
            topic = message.topic
            if not topic:
                raise InvalidArgument("an interest names a topic")
            if message.HasField("partition"):
                partitions = [partition_of(message.partition)]
            else:
                partitions = await partitions_of(self._broker, topic)
            layout = message.layout if message.HasField("layout") else None
            bound = message.max_staleness_ms if message.HasField("max_staleness_ms") else None
            known = {number: Offset(known) for number, known in message.at_least.items()}
            start = start_of(message.start)
            if layout is None and not message.HasField("partition"):
                check_start(start)
                wholes.append(Whole(topic, start, max_staleness_ms=bound, at_least=known))
            else:
                wanted = interests(topic, partitions, start)
                named += [
                    replace(
                        one,
                        layout=layout,
                        max_staleness_ms=bound,
                        at_least=known.get(one.partition),
                    )
                    for one in wanted
                ]
            self._wanted.setdefault(topic, set()).update(partitions)
            if sum(map(len, self._wanted.values())) > self._interests_max:
                raise LimitExceeded(
                    "interests_max",
                    f"one subscription delivers at most {self._interests_max} partitions",
                )
        return wholes, named

    def dropped(self, message: pb.SubscribeRequest.Drop) -> list[int]:
        """Return the partitions that `message` gives up, and forget them."""
        if not message.HasField("partition"):
            return sorted(self._wanted.pop(message.topic, ()))
        self._wanted.get(message.topic, set()).discard(message.partition)
        return [partition_of(message.partition)]


class Sender:
    """Turns deliveries into messages and sends them, as far as credit goes.

    Both ways of sending return False if there will never be credit for the rest of a delivery.
    """

    def __init__(self, call: Call, credit: Credit, *, bytes_target: int) -> None:
        self._call = call
        self._credit = credit
        self._bytes_target = bytes_target

    async def send_records(self, delivery: Delivery) -> bool:
        """Send the records that are meant, in messages of about the same size."""
        async for message in filled(
            delivery,
            lambda batch: delivered_rows(batch, delivery),
            live=delivery.live,
            credit=self._credit,
            bytes_max=self._bytes_target,
        ):
            message.live = delivery.live
            await self._call.write(message.SerializeToString())
        return not self._credit.is_over

    async def send_batches(self, delivery: Delivery) -> bool:
        """Send whole batches, and from which offset on they are meant."""
        waiting = list(delivery.batches)
        while waiting:
            if not await self._credit.some():
                return False
            some, records = self._portion(waiting, delivery)
            self._credit.left -= records
            message = pb.SubscribeResponse(
                topic=delivery.topic,
                partition=delivery.partition,
                live=delivery.live,
                from_offset=delivery.from_offset,
                expired=delivery.expired,
            )
            say_who_served(message, delivery)
            await self._call.write(with_batches(message, some))
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


async def _listen(
    requests: Requests, subscription: WholeTopics, wishes: Wishes, credit: Credit
) -> None:
    """Do what the subscriber says, until it has nothing more to say."""
    async for data in requests:
        request = pb.SubscribeRequest.FromString(data)
        match request.WhichOneof("request"):
            case "credit":
                credit.add(request.credit.records)
            case "add":
                await subscription.want(*await wishes.taken(request.add.interests))
            case "drop":
                if not request.drop.HasField("partition"):
                    await subscription.drop_topic(request.drop.topic)
                for partition in wishes.dropped(request.drop):
                    await subscription.drop(request.drop.topic, partition)
            case _:
                raise InvalidArgument("after `open` come `add`, `drop` and `credit`")
    credit.close()
