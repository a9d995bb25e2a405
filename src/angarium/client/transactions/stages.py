"""Filling one stage of a transaction: records gather into batches, batches into numbered parts.

A part is sent again until it is answered, under the same number, so that it is staged once. Each
partition has one part on its way at a time while the next one grows, so memory is bounded by two
parts for each partition in use.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.api.transactions import GroupAck, Staged, StagedIn
from angarium.batch import BatchBuilder
from angarium.client.publishing.columns import cut, dealt_out
from angarium.client.shared import heard
from angarium.errors import (
    AngariumError,
    InvalidArgument,
    NotFound,
    TransactionAborted,
    no_partition,
)
from angarium.ids import NO_PRODUCER, Epoch, Sequence
from angarium.wire.operations import Operation
from angarium.wire.operations.transactions import StageHeader

if TYPE_CHECKING:
    from angarium.api import TopicInfo
    from angarium.api.transactions import TransactionId
    from angarium.client.publishing.columns import Table
    from angarium.client.publishing.outgoing import Outgoing
    from angarium.client.reach import Reach
    from angarium.ids import Buffer

PART_BYTES: Final = 1 << 20
"""A part is sent when it has grown to this; one batch may overdraw it."""

ACK_RANGES: Final = 4_096
"""Acknowledged ranges in one part; more go into further parts."""

PASSING_LIMITS: Final = frozenset(
    (
        "UNFLUSHED_BYTES_MAX",
        "gather_bytes_max",
        "outgoing_bytes_max",
        "requests_in_flight_max",
        "uncommitted_bytes_max",
    )
)
"""Limits that a node gets below again by itself, so that a part is worth sending again."""


class StageWriter:
    """One stage of one transaction, in as many partitions as it needs."""

    def __init__(self, reach: Reach, transaction: TransactionId, stage: str) -> None:
        self._reach = reach
        self._transaction = transaction
        self._stage = stage
        self._lanes: dict[tuple[str, int], _Lane] = {}
        self.is_committed = False
        """A partition said that the whole transaction has been committed before."""
        self.size = 0
        """Bytes staged, as packed."""
        self.outdated: dict[str, int] = {}
        """Topics that were given partitions, each with the layout by which keys had been dealt:
        what was refused there has to be dealt anew."""

    async def publish(self, topic: str, record: Outgoing) -> None:
        """Add a record; waits while what it joins is on its way already."""
        if record.mode is not None:
            raise InvalidArgument("what a transaction publishes is stored; it has no other mode")
        partition = record.partition
        info = await self._topic(topic, partition)
        layout = None
        if partition is None and record.key is not None:
            layout = self._reach.routes.layout(info)
            partition = layout.of_key(record.key)
        lane = self._lane(info, partition)
        if layout is not None:
            lane.layout = layout.number if lane.layout is None else lane.layout
        while not lane.builder.add(
            record.value,
            key=record.key,
            headers=record.headers,
            timestamp=record.times[0],
            expires_at=record.times[1],
            deliver_at=record.times[2],
        ):
            lane.build()
        if lane.builder.bytes_estimate >= self._reach.settings.batch_bytes:
            lane.build()
            await lane.send_if_full()

    async def publish_table(self, topic: str, table: Table, *, partition: int | None) -> None:
        """Add many records, column by column."""
        table.check()
        info = await self._topic(topic, partition)
        layout = self._reach.routes.layout(info)
        parts = dealt_out(table, layout) if partition is None else {partition: table}
        settings = self._reach.settings
        bytes_max = info.config.batch_bytes_max
        lanes = []
        for number, part in parts.items():
            lane = self._lane(info, number)
            if partition is None and number is not None and lane.layout is None:
                lane.layout = layout.number
            lanes.append(lane)
            lane.build()
            for some, _ in cut(
                part,
                bytes_target=min(settings.batch_bytes, bytes_max),
                bytes_max=bytes_max,
                records_max=settings.batch_records_max,
            ):
                columns = some.columns(settings.codec)
                lane.put(
                    columns.build(producer_id=NO_PRODUCER, epoch=Epoch(0), sequence=Sequence(0))
                )
                if lane.is_overfull:
                    await lane.send_if_full()
        for lane in lanes:
            await lane.send_if_full()

    async def put_batch(
        self, topic: str, partition: int, batch: Buffer, *, layout: int | None = None
    ) -> None:
        """Add a batch that has been built already, by `angarium.batch`, for one partition.

        `layout`: by which of the topic's layouts keys have sent it there; None: no key has.
        """
        info = await self._topic(topic, partition)
        lane = self._lane(info, partition)
        if layout is not None and lane.layout is None:
            lane.layout = layout
        lane.build()
        lane.put(batch)
        await lane.send_if_full()

    def acknowledge(self, topic: str, partition: int, ack: GroupAck) -> None:
        """Settle records of a group if the transaction commits."""
        key = (topic, partition)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(self, self._reach, topic, partition, bytes_max=1 << 20)
        lane.acks.setdefault((ack.group, ack.generation), []).extend(ack.ranges)

    async def flush(self) -> tuple[StagedIn, ...]:
        """Stage everything; return where something is staged."""
        lanes = list(self._lanes.values())
        # All of them to their end, also if one fails: a part that is still on its way could arrive
        # behind an abort.
        failures = await asyncio.gather(*(lane.flush() for lane in lanes), return_exceptions=True)
        for failure in failures:
            if isinstance(failure, BaseException):
                raise failure
        return self.staged_in()

    def staged_in(self) -> tuple[StagedIn, ...]:
        """Return where something is, or may be, staged."""
        return tuple(
            StagedIn(lane.topic, lane.partition, (self._stage,))
            for lane in self._lanes.values()
            # Also where a part was only sent and never answered: it may have been staged.
            if lane.parts
        )

    async def settle(self) -> None:
        """Send nothing more, and wait until of what was sent it is known whether it is staged."""
        await asyncio.gather(*(lane.settle() for lane in self._lanes.values()))

    async def drop(self) -> None:
        """Send nothing more."""
        for lane in self._lanes.values():
            await lane.drop()

    async def send(
        self,
        topic: str,
        partition: int,
        part: int,
        batches: list[Buffer],
        acks: list[GroupAck],
        *,
        layout: int | None,
    ) -> None:
        """Stage one part, however often that has to be asked."""
        header = StageHeader(
            self._transaction, self._stage, part, topic, partition, tuple(acks), layout
        )
        settings = self._reach.settings
        try:
            frame = await self._reach.calls.ask(
                Operation.STAGE,
                header,
                batches,
                partition=(topic, partition),
                timeout_s=settings.publish_timeout_s,
                wait_s=settings.attempt_timeout_s,
                passing=PASSING_LIMITS,
            )
        except (TransactionAborted, NotFound):
            # Perhaps because the topic was given partitions, or made anew with others: who runs it
            # again shall know them.
            with suppress(AngariumError):
                info = await self._reach.metadata.refresh(topic)
                if layout is not None and len(info.layouts) > layout + 1:
                    self.outdated[topic] = layout
            raise
        self.is_committed |= frame.read(Staged).is_committed
        self.size += sum(map(len, batches))

    async def _topic(self, name: str, partition: int | None) -> TopicInfo:
        """Return a topic; it is asked about anew if it seems to lack the partition."""
        info = await self._reach.metadata.topic_or_new(name)
        if partition is not None and partition >= len(info.partitions):
            info = await self._reach.metadata.refresh(name)
        return info

    def _lane(self, info: TopicInfo, partition: int | None) -> _Lane:
        count = len(info.partitions)
        if partition is None:
            # Records without a key stay together; the next transaction takes the next partition.
            partition = self._reach.routes.layout(info).in_turn(self._transaction.sequence)
        if not 0 <= partition < count:
            raise no_partition(info.name, count, partition)
        lane = self._lanes.get((info.name, partition))
        if lane is None:
            bytes_max = info.config.batch_bytes_max
            lane = _Lane(self, self._reach, info.name, partition, bytes_max=bytes_max)
            self._lanes[info.name, partition] = lane
        return lane


class _Lane:
    """What one stage holds for one partition."""

    def __init__(
        self, writer: StageWriter, reach: Reach, topic: str, partition: int, *, bytes_max: int
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.layout: int | None = None
        """The first layout of the topic by which a key has sent a record here."""
        self.parts = 0
        """Parts sent, or on their way."""
        self.acks: dict[tuple[str, int | None], list[int]] = {}
        """Ranges to acknowledge, by group and generation, in the order they were given."""
        self._writer = writer
        self._settings = reach.settings
        self._bytes_max = bytes_max
        self._ready: list[Buffer] = []
        self._ready_bytes = 0
        self._sending: asyncio.Task[None] | None = None
        self.builder = self._new_builder()

    def _new_builder(self) -> BatchBuilder:
        return BatchBuilder(
            bytes_max=self._bytes_max,
            records_max=self._settings.batch_records_max,
            codec=self._settings.codec,
        )

    @property
    def is_overfull(self) -> bool:
        """True when what waits should leave before more is added."""
        return self._ready_bytes >= PART_BYTES

    def build(self) -> None:
        """Make a batch of the records gathered so far."""
        if len(self.builder):
            self.put(self.builder.build())
            self.builder = self._new_builder()

    def put(self, batch: Buffer) -> None:
        """Add a batch to the next part."""
        self._ready.append(batch)
        self._ready_bytes += len(batch)

    async def send_if_full(self) -> None:
        """Send the next part if it is large enough, once the one before it has arrived."""
        if self.is_overfull:
            await self._send()

    async def flush(self) -> None:
        """Send everything, and wait until all of it is staged."""
        self.build()
        while self._ready or self.acks:
            await self._send()
        await self._arrived()

    async def settle(self) -> None:
        """Forget what waits, and wait for what is on its way."""
        self._ready, self._ready_bytes, self.acks = [], 0, {}
        with suppress(AngariumError):
            await self._arrived()

    async def drop(self) -> None:
        """Forget what waits, and no longer care about what is on its way."""
        self._ready, self._ready_bytes, self.acks = [], 0, {}
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])

    async def _send(self) -> None:
        # One part at a time per partition: parts are staged in order, and a gap is refused.
        await self._arrived()
        batches, self._ready, self._ready_bytes = self._ready, [], 0
        acks = self._take_acks()
        part = self.parts
        # Numbered when it is cut and not when it is answered: repeated under the same number, it
        # is staged once.
        self.parts += 1
        work = self._writer.send(
            self.topic, self.partition, part, batches, acks, layout=self.layout
        )
        self._sending = asyncio.get_running_loop().create_task(work)
        self._sending.add_done_callback(heard)

    def _take_acks(self) -> list[GroupAck]:
        """Return what the next part acknowledges; neighbours are joined."""
        taken: list[GroupAck] = []
        room = 2 * ACK_RANGES
        for (group, generation), ranges in list(self.acks.items()):
            joined = _joined(ranges)
            if joined[:room]:
                taken.append(GroupAck(group, tuple(joined[:room]), generation))
            if joined[room:]:
                self.acks[group, generation] = joined[room:]
            else:
                del self.acks[group, generation]
            room -= len(joined[:room])
        return taken

    async def _arrived(self) -> None:
        if self._sending is not None:
            # A caller that is cancelled must not cancel the part: whether it is staged would not
            # be known.
            await asyncio.shield(self._sending)
            self._sending = None


def _joined(ranges: list[int]) -> list[int]:
    """Return ranges in ascending order, those that touch or overlap as one."""
    joined: list[int] = []
    for start, end in sorted(zip(ranges[::2], ranges[1::2], strict=True)):
        if joined and start <= joined[-1]:
            joined[-1] = max(joined[-1], end)
        else:
            joined += (start, end)
    return joined
