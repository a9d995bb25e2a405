"""Reading by offset: once, or all that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api import Place, Start
from angarium.batch import split
from angarium.client.reading.starts import LATEST, start_in
from angarium.client.records import received
from angarium.ids import Offset
from angarium.wire.operations import (
    FetchHeader,
    FindOffsetAnswer,
    FindOffsetHeader,
    Operation,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from angarium.client.reach import Reach
    from angarium.client.reading.starts import StartLike
    from angarium.client.records import ReceivedBatch


async def fetched(
    reach: Reach,
    topic: str,
    partition: int,
    offset: int,
    *,
    bytes_max: int,
    wait_s: float = 0.0,
    fresh: bool = False,
) -> tuple[list[ReceivedBatch], int]:
    """Return what lies from `offset` on, about `bytes_max` of it, and where to go on."""
    frame = await reach.calls.ask(
        Operation.FETCH,
        FetchHeader(topic, partition, Offset(offset), bytes_max, int(wait_s * 1000), fresh),
        partition=(topic, partition),
        wait_s=wait_s,
    )
    batches = [
        received(topic, partition, buffer, from_offset=offset) for buffer in split(frame.payload)
    ]
    if not batches:
        return [], offset
    # One that has been compacted may hold nothing from here on, and is passed over.
    return [batch for batch in batches if len(batch)], batches[-1].batch.next_offset


async def offset_in(reach: Reach, topic: str, partition: int, start: Start) -> Offset:
    """Return the offset that `start` stands for."""
    frame = await reach.calls.ask(
        Operation.FIND_OFFSET,
        FindOffsetHeader(topic, partition, start),
        partition=(topic, partition),
    )
    return frame.read(FindOffsetAnswer).offset


async def everything(reach: Reach, topic: str, start: StartLike) -> AsyncIterator[ReceivedBatch]:
    """Yield what a topic holds from `start` to its present end, one partition after the other."""
    info = await reach.metadata.topic(topic)
    numbers = [partition.number for partition in info.partitions]
    # All ends first: "present" means the moment at which the reading began.
    ends = {number: await offset_in(reach, topic, number, LATEST) for number in numbers}
    for number in numbers:
        begin = start_in(start, number)
        offset = (
            begin.value
            if begin.place is Place.OFFSET
            else await offset_in(reach, topic, number, begin)
        )
        while offset < ends[number]:
            batches, after = await fetched(
                reach, topic, number, offset, bytes_max=reach.settings.fetch_bytes
            )
            for batch in batches:
                if batch.batch.base_offset < ends[number]:
                    yield batch
            if after == offset:
                break
            offset = after
