"""Where a door's publishes go: to the broker, by lanes or in batches of their own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, cast

from angarium.api import PublishRequest
from angarium.doors.intake.lanes import LaneKey, Lanes, Placed
from angarium.doors.intake.once import Once
from angarium.doors.intake.outgoing import NOBODY
from angarium.doors.intake.partitions import TopicShapes
from angarium.doors.intake.recalling import recalled_one
from angarium.errors import AngariumError, LayoutChanged, NotFound
from angarium.settling import settling

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from angarium.api import Ack, Broker
    from angarium.doors.intake.once import ProducerIdentities
    from angarium.doors.intake.outgoing import Outgoing, ProducerIdentity
    from angarium.doors.intake.partitions import TopicShape
    from angarium.ids import Buffer
    from angarium.modes import DeliveryMode


class TasklessBroker(Protocol):
    """A broker that may take a publish without a task for it."""

    def begin_publish(
        self, request: PublishRequest, answer: Callable[[tuple[Ack, ...] | AngariumError], None]
    ) -> bool:
        """Publish, and call `answer` once; False, with nothing done, if that takes a task."""


class Intake:
    """One door's, shared by everybody who publishes through it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.shapes = TopicShapes(broker)
        can_begin = getattr(broker, "begin_publish", None) is not None
        self.begin = self._begin if can_begin else None
        """Publishes without a task where nobody else has to be asked; None of a broker that
        cannot."""
        self.lanes = Lanes(self.publish, self.shapes, begin=self.begin)

    def send(
        self,
        topic: str,
        record: Outgoing,
        done: Callable[[Placed | Exception], None],
        *,
        partition: int | None = None,
        mode: DeliveryMode | None = None,
        producer: ProducerIdentities = NOBODY,
    ) -> Coroutine[None, None, None] | None:
        """Publish one record, with no task for it, and tell `done` what became of it.

        Without a `partition` the topic decides. If nothing is known of the topic yet, what is
        returned has to be awaited: it asks first.
        """
        layout = None
        if partition is None:
            shape = self.shapes.known(topic)
            # A request under a key is looked up first, if an earlier layout sent it elsewhere.
            if shape is None or (shape.former and isinstance(producer, Once)):
                return self._send_after_asking(topic, record, done, mode, producer)
            if shape.sole is not None and record.key is None and producer is NOBODY:
                partition = shape.sole  # as for most
            else:
                partition = _partition_in(shape, record, producer)
                layout = _layout_in(shape, record, producer)
        identity = NOBODY if producer is NOBODY else producer.at(0, 0, 1)
        self.lanes.publish(LaneKey(topic, partition, mode, layout), record, done, identity)
        return None

    async def _send_after_asking(
        self,
        topic: str,
        record: Outgoing,
        done: Callable[[Placed | Exception], None],
        mode: DeliveryMode | None,
        producer: ProducerIdentities,
    ) -> None:
        try:
            shape = await self.shapes.of(topic)
            if shape.former and isinstance(producer, Once):
                stored = await recalled_one(self, topic, record, shape, producer)
                if stored is not None:
                    done(Placed(stored, 0, (stored,)))
                    return
            partition = _partition_in(shape, record, producer)
            layout = _layout_in(shape, record, producer)
            identity = NOBODY if producer is NOBODY else producer.at(0, 0, 1)
            self.lanes.publish(LaneKey(topic, partition, mode, layout), record, done, identity)
        except AngariumError as error:
            done(error)

    async def sent(
        self,
        topic: str,
        record: Outgoing,
        *,
        partition: int | None = None,
        mode: DeliveryMode | None = None,
        identity: ProducerIdentity = NOBODY,
    ) -> Placed:
        """Publish one record; return where it went, or raise why it did not."""
        done: asyncio.Future[Placed] = asyncio.get_running_loop().create_future()
        asking = self.send(
            topic, record, settling(done), partition=partition, mode=mode, producer=identity
        )
        if asking is not None:
            await asking
        return await done

    async def publish(
        self,
        topic: str,
        partition: int,
        batches: tuple[Buffer, ...],
        mode: DeliveryMode | None,
        layout: int | None = None,
    ) -> tuple[Ack, ...]:
        """Publish batches to one partition; `layout` is that by which keys have sent them there."""
        try:
            acks = await self.broker.publish(
                PublishRequest(
                    topic=topic, partition=partition, batches=batches, mode=mode, layout=layout
                )
            )
        except (NotFound, LayoutChanged):
            self.shapes.forget(topic)
            raise
        self._look_at(topic, acks)
        return acks

    def _look_at(self, topic: str, acks: tuple[Ack, ...]) -> None:
        """Ask about a topic again whose layout turned out to be another one."""
        if any(ack.code == LayoutChanged.code for ack in acks):
            self.shapes.forget(topic)

    def _begin(
        self,
        topic: str,
        partition: int,
        batches: tuple[Buffer, ...],
        mode: DeliveryMode | None,
        layout: int | None,
        answer: Callable[[tuple[Ack, ...] | Exception], None],
    ) -> bool:
        def answered(outcome: tuple[Ack, ...] | AngariumError) -> None:
            if isinstance(outcome, NotFound | LayoutChanged):
                self.shapes.forget(topic)
            elif not isinstance(outcome, AngariumError):
                self._look_at(topic, outcome)
            answer(outcome)

        request = PublishRequest(
            topic=topic, partition=partition, batches=batches, mode=mode, layout=layout
        )
        try:
            return cast("TasklessBroker", self.broker).begin_publish(request, answered)
        except NotFound:
            self.shapes.forget(topic)
            raise

    async def publish_each(
        self,
        topic: str,
        per_partition: Mapping[int, tuple[Buffer, ...]],
        mode: DeliveryMode | None,
        layout: int | None = None,
    ) -> list[tuple[Ack, ...] | Exception]:
        """Publish the batches of each partition; what becomes of one is told whatever becomes of
        the others."""

        async def told(partition: int, batches: tuple[Buffer, ...]) -> tuple[Ack, ...] | Exception:
            try:
                return await self.publish(topic, partition, batches, mode, layout)
            except Exception as error:  # each becomes a part of the answer
                return error

        calls = [told(one, some) for one, some in per_partition.items()]
        return [await calls[0]] if len(calls) == 1 else await asyncio.gather(*calls)


def _layout_in(shape: TopicShape, record: Outgoing, producer: ProducerIdentities) -> int | None:
    """Return the layout that has decided where a record goes; None: no key has."""
    # An idempotency key counts, too: stored behind a fence, the request would not be found again.
    is_keyed = record.key is not None or isinstance(producer, Once)
    return shape.layout.number if is_keyed else None


def _partition_in(shape: TopicShape, record: Outgoing, producer: ProducerIdentities) -> int:
    """Return a record's partition; a request that comes again finds the same."""
    if producer is NOBODY:
        return shape.partition_for(record.key)
    key = producer.key if record.key is None and isinstance(producer, Once) else record.key
    return shape.partition_for(key, may_repeat=True)
