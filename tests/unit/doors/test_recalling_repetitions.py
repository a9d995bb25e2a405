"""Requests that come again while a topic is given partitions: stored once, whatever breaks off."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.machine.leader import TERM, Leader

from angarium.api import Ack
from angarium.api.layout import Layout
from angarium.batch import Batch
from angarium.doors.intake.once import Once
from angarium.doors.intake.outgoing import Outgoing
from angarium.doors.intake.packing import packed
from angarium.doors.intake.partitions import TopicShape
from angarium.doors.intake.recalling import named, recalled, recalled_one
from angarium.errors import KeyReused, NotLeader
from angarium.ids import Buffer, Micros
from angarium.machine import Appended, Duplicate, Fence, Refused
from angarium.modes import DeliveryMode
from angarium.replica.acks import Dealt

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

COUNTS = (2, 3, 5, 7)
"""How many partitions the topic has, layout by layout."""


def shape_of(layout: int) -> TopicShape:
    """Return what a door believes that has heard of layouts up to this one."""
    layouts = [
        Layout(tuple(range(count)), COUNTS[layout], number=number)
        for number, count in enumerate(COUNTS[: layout + 1])
    ]
    return TopicShape(
        layout=layouts[-1],
        steady=layouts[-1],
        former=tuple(layouts[:-1]),
        begun=(0, *[1_000] * layout),
        batch_bytes_max=1 << 20,
        read_at=0.0,
        turn=0,
    )


class Partitions:
    """A topic's partitions with their leaders, and what doors do with them."""

    def __init__(self) -> None:
        self.leaders = [Leader() for _ in range(max(COUNTS))]
        self.stored: Counter[bytes] = Counter()
        self.asked: list[tuple[int, int | None]] = []
        self.down: set[int] = set()

    def grow(self, layout: int) -> None:
        """Put the fences of a layout into all older partitions."""
        for leader in self.leaders[: COUNTS[layout - 1]]:
            leader.submit(Fence(layout=layout))

    async def publish_each(
        self,
        topic: str,
        per_partition: Mapping[int, tuple[Buffer, ...]],
        mode: DeliveryMode | None,
        layout: int | None = None,
    ) -> list[tuple[Ack, ...] | Exception]:
        answers: list[tuple[Ack, ...] | Exception] = []
        for partition, batches in per_partition.items():
            self.asked.append((partition, layout))
            if partition in self.down:
                answers.append(NotLeader())
            else:
                acks = [self._publish(topic, partition, one, mode, layout) for one in batches]
                answers.append(tuple(acks))
        return answers

    def _publish(
        self, topic: str, partition: int, one: Buffer, mode: DeliveryMode | None, layout: int | None
    ) -> Ack:
        leader = self.leaders[partition]
        born = next(at for at, count in enumerate(COUNTS) if partition < count)
        fault = None if layout is None else Dealt(layout, born).fault(leader.machine.layout)
        data = bytearray(one)
        if fault is None:
            (outcome,) = leader.publish(data)
        else:
            prepared = leader.projection.append(
                [data], term=TERM, now=Micros(leader.now), barred={0: fault}
            )
            (outcome,) = prepared.outcomes
        assert mode is not None
        ack = Ack(mode=mode, topic=topic, partition=partition)
        match outcome:
            case Appended():
                batch = Batch.parse(one)
                count = batch.header.count
                self.stored.update(row.value or b"" for row in batch.records(0, count))
            case Refused():
                return Ack(mode=mode, topic=topic, partition=partition, code=outcome.code)
            case Duplicate():
                return Ack(mode=mode, topic=topic, partition=partition, duplicate=True)
        return ack


async def publish(
    partitions: Partitions, layout: int, records: Sequence[Outgoing], reached: Container[int]
) -> bool:
    """Publish as a door does that believes in `layout`, as far as its partitions are `reached`.

    Return whether the request was answered with success.
    """
    once = Once(b"key", b"content")
    shape = shape_of(layout)
    found = await recalled(partitions, "t", records, shape, once)
    rest = [one for at, one in enumerate(records) if at not in found.partitions]
    if not rest:
        return True
    batches, _ = packed(rest, shape, partition=None, producers=named(once, shape, layout))
    there = {number: some for number, some in batches.items() if number in reached}
    answers = await partitions.publish_each("t", there, DeliveryMode.CONSISTENT, layout)
    refused = any(ack.code for one in answers if isinstance(one, tuple) for ack in one)
    return len(there) == len(batches) and not refused


@given(
    keys=st.lists(st.one_of(st.none(), st.binary(min_size=1, max_size=2)), min_size=1, max_size=8),
    attempts=st.lists(
        st.tuples(st.booleans(), st.integers(0, 3), st.sets(st.integers(0, 6))), max_size=8
    ),
)
def test_a_request_that_broke_off_anywhere_is_stored_once_by_whichever_layouts(
    keys: list[bytes | None], attempts: list[tuple[bool, int, set[int]]]
) -> None:
    async def story() -> None:
        partitions = Partitions()
        records = [Outgoing(b"%d" % at, key) for at, key in enumerate(keys)]
        layout = 0
        for grows, lag, reached in attempts:
            if grows and layout + 1 < len(COUNTS):
                layout += 1
                partitions.grow(layout)
            # Doors that have not heard of the newest layout come as well.
            await publish(partitions, max(layout - lag, 0), records, reached)
        assert await publish(partitions, layout, records, range(7))
        assert partitions.stored == Counter(one.value or b"" for one in records)

    asyncio.run(story())


def test_a_request_of_one_record_is_asked_about_where_it_went_before() -> None:
    async def story() -> None:
        partitions = Partitions()
        moved = next(
            b"%d" % n
            for n in range(100)
            if len({shape_of(at).steady.of_key(b"%d" % n) for at in range(3)}) == 3
        )
        record, once = Outgoing(b"value", moved), Once(b"key", b"content")
        first = shape_of(0)
        batches, _ = packed([record], first, partition=None, producers=once)
        await partitions.publish_each("t", batches, DeliveryMode.CONSISTENT, 0)
        for layout in (1, 2):
            partitions.grow(layout)
        partitions.asked.clear()
        ack = await recalled_one(partitions, "t", record, shape_of(2), once)
        assert ack is not None
        assert ack.duplicate
        assert partitions.asked == [(first.steady.of_key(moved), 0)], "it need not ask further"
        assert await recalled_one(partitions, "t", record, shape_of(2), Once(b"new", b"")) is None
        with pytest.raises(KeyReused):
            await recalled_one(partitions, "t", record, shape_of(2), Once(b"key", b"other"))
        # While one of them cannot tell, nothing is stored anywhere.
        partitions.down.add(first.steady.of_key(moved))
        with pytest.raises(NotLeader):
            await recalled_one(partitions, "t", record, shape_of(2), once)
        with pytest.raises(NotLeader):
            await recalled(partitions, "t", [record], shape_of(2), once)

    asyncio.run(story())


def test_nothing_is_asked_where_a_key_stays_or_partitions_were_never_added() -> None:
    stays = next(
        b"%d" % n
        for n in range(1_000)
        if len({shape_of(at).steady.of_key(b"%d" % n) for at in range(4)}) == 1
    )
    assert shape_of(0).formerly(lambda one: one.of_key(b"any")) == ()
    assert shape_of(3).formerly(lambda one: one.of_key(stays)) == ()
