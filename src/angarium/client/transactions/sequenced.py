"""Publishing under numbers of one's own: stored once, even by a program that was restarted.

A named producer gives each publish a number that it can find again after a crash: a line in a
file, an offset in another system. Numbers grow; a partition refuses to store one twice. After a
restart the program asks for the last number of each partition and goes on from there, or repeats
what it is not sure of: what is stored already is answered as a duplicate.

A record goes to the partition of its key; without a key, to the one its number says, because a
repeated publish must find the same one. So a topic's partitions must not become more meanwhile, and
the program must not move to another region; nothing goes to another one if its home is lost.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.api import Ack
from angarium.api.layout import layout_of
from angarium.batch import BatchBuilder
from angarium.client.publishing.columns import cut, dealt_out
from angarium.client.publishing.receipts import Receipt
from angarium.client.shared import heard, shared
from angarium.client.transactions.series import open_series
from angarium.errors import AngariumError, InvalidArgument, NotFound, ProducerFenced
from angarium.ids import NO_PRODUCER, Epoch, Sequence
from angarium.wire.operations import Operation
from angarium.wire.operations.transactions import (
    LastSequenceAnswer,
    LastSequenceHeader,
    PublishSequencedHeader,
)

if TYPE_CHECKING:
    from angarium.api import TopicInfo
    from angarium.api.layout import Layout
    from angarium.client.publishing.columns import Table
    from angarium.client.publishing.outgoing import Outgoing
    from angarium.client.reach import Reach
    from angarium.ids import Buffer

ASKED_AT_ONCE: Final = 16
"""Partitions asked for their last number side by side."""


class Sequenced:
    """The numbered publishes of one named producer."""

    def __init__(self, reach: Reach, producer: str) -> None:
        self._reach = reach
        self._producer = producer
        self._opening: asyncio.Task[Epoch] | None = None
        self._turns: dict[tuple[str, int], asyncio.Lock] = {}
        self._fenced: ProducerFenced | None = None

    async def publish(self, topic: str, record: Outgoing, sequence: int) -> Receipt:
        """Publish a record unless its number has been stored before."""
        if record.mode is not None:
            raise InvalidArgument("a numbered record is stored; it has no other mode")
        info = await self._reach.metadata.topic_or_new(topic)
        partition = record.partition
        if partition is None:
            # From the number and not by turns: a publish that is repeated after a restart must
            # find the partition that knows its number.
            layout = self._layout(info)
            by_number = layout.in_turn(sequence)
            partition = by_number if record.key is None else layout.of_key(record.key)
        builder = BatchBuilder(
            bytes_max=info.config.batch_bytes_max, codec=self._reach.settings.codec
        )
        builder.add(
            record.value,
            key=record.key,
            headers=record.headers,
            timestamp=record.times[0],
            expires_at=record.times[1],
            deliver_at=record.times[2],
        )
        ack = await self._send(topic, partition, sequence, [builder.build()])
        return Receipt(ack, 0)

    async def publish_table(
        self, topic: str, table: Table, sequence: int, *, partition: int | None
    ) -> tuple[Ack, ...]:
        """Publish many records under one number, unless it has been stored before."""
        table.check()
        info = await self._reach.metadata.topic_or_new(topic)
        layout = self._layout(info)
        parts = dealt_out(table, layout) if partition is None else {partition: table}
        settings, bytes_max = self._reach.settings, info.config.batch_bytes_max
        sends = []
        by_partition: dict[int, list[Buffer]] = {}
        for number, part in parts.items():
            for some, _ in cut(
                part,
                bytes_target=min(settings.batch_bytes, bytes_max),
                bytes_max=bytes_max,
                records_max=settings.batch_records_max,
            ):
                batch = some.columns(settings.codec).build(
                    producer_id=NO_PRODUCER, epoch=Epoch(0), sequence=Sequence(0)
                )
                where = layout.in_turn(sequence) if number is None else number
                by_partition.setdefault(where, []).append(batch)
        for where, batches in by_partition.items():
            sends.append(self._send(topic, where, sequence, batches))
        return tuple(await asyncio.gather(*sends))

    def _layout(self, info: TopicInfo) -> Layout:
        region = self._reach.region
        # One that is measured may be another one after a restart.
        return layout_of(info, "" if region.is_measured else region.name)

    async def last(self, topic: str) -> dict[int, int | None]:
        """Return the last number stored in each partition; an older run can add none any more."""
        info = await self._reach.metadata.topic(topic)
        epoch = await self._epoch()
        found: dict[int, int | None] = {}
        limit = asyncio.Semaphore(ASKED_AT_ONCE)

        async def ask(partition: int) -> None:
            async with limit:
                header = LastSequenceHeader(self._producer, epoch, topic, partition)
                frame = await self._reach.calls.ask(
                    Operation.LAST_SEQUENCE,
                    header,
                    partition=(topic, partition),
                    wait_s=self._reach.settings.attempt_timeout_s,
                )
                found[partition] = frame.read(LastSequenceAnswer).sequence

        try:
            async with asyncio.TaskGroup() as asking:
                for one in info.partitions:
                    asking.create_task(ask(one.number))
        except* ProducerFenced as fenced:
            raise fenced.exceptions[0] from None
        return dict(sorted(found.items()))

    async def close(self) -> None:
        """Stop asking."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])

    async def _send(self, topic: str, partition: int, sequence: int, batches: list[Buffer]) -> Ack:
        if self._fenced is not None:
            raise self._fenced
        epoch = await self._epoch()
        turn = self._turns.setdefault((topic, partition), asyncio.Lock())
        async with turn:  # numbers of one partition go one after the other
            header = PublishSequencedHeader(self._producer, epoch, sequence, topic, partition)
            try:
                frame = await self._reach.calls.ask(
                    Operation.PUBLISH_SEQUENCED,
                    header,
                    batches,
                    partition=(topic, partition),
                    timeout_s=self._reach.settings.publish_timeout_s,
                    wait_s=self._reach.settings.attempt_timeout_s,
                )
            except ProducerFenced as fenced:
                # Remembered: another run of this producer is at work, and nothing of this one may
                # come behind it.
                self._fenced = fenced
                raise
            except NotFound:
                # The topic may have been made anew, with fewer partitions: the next one shall know.
                with suppress(AngariumError):
                    await self._reach.metadata.refresh(topic)
                raise
        return frame.read(Ack)

    async def _epoch(self) -> Epoch:
        opening = self._opening
        has_failed = opening is not None and opening.done() and not _is_there(opening)
        if opening is None or has_failed:
            opening = asyncio.get_running_loop().create_task(self._open())
            opening.add_done_callback(heard)
            self._opening = opening
        return await shared(opening)

    async def _open(self) -> Epoch:
        return (await open_series(self._reach, self._producer, sequenced=True)).epoch


def _is_there(opening: asyncio.Task[Epoch]) -> bool:
    return not opening.cancelled() and opening.exception() is None
