"""Reading by offset: once, or all that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.api import Start, StartAt
from angarium.batch import split
from angarium.batch.deadlines import is_among
from angarium.client.reading.starts import LATEST, start_in
from angarium.client.records import Served, received, without
from angarium.errors import Expired, NotFound, OffsetOutOfRange
from angarium.ids import Offset
from angarium.wire.operations import (
    FetchAnswer,
    FetchHeader,
    FindOffsetAnswer,
    FindOffsetHeader,
    Operation,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from angarium.client.reach import Reach
    from angarium.client.reading.starts import StartLike
    from angarium.client.records import ReceivedBatch, Record
    from angarium.wire import Frame

STALENESS_S: Final = 2.0
"""How much longer an answer may take where the age of what is read has a bound: a node looks for
something new enough for a second, and longer where the leader is in another region."""


async def fetched(
    reach: Reach,
    topic: str,
    partition: int,
    offset: int,
    *,
    bytes_max: int,
    wait_s: float = 0.0,
    fresh: bool = False,
    at_least: int | None = None,
    max_staleness_ms: int | None = None,
) -> tuple[list[ReceivedBatch], int, Served]:
    """Return what lies from `offset` on, about `bytes_max` of it, where to go on, and who served.

    What has expired, and batches that compaction has emptied, are passed over.
    """
    frame = await _asked(
        reach,
        topic,
        partition,
        offset,
        bytes_max=bytes_max,
        wait_s=wait_s,
        fresh=fresh,
        at_least=at_least,
        max_staleness_ms=max_staleness_ms,
    )
    answer = frame.read(FetchAnswer)
    served = Served(answer.node, answer.region, answer.staleness_ms)
    batches = [
        received(topic, partition, buffer, from_offset=offset, served=served)
        for buffer in split(frame.payload)
    ]
    if not batches:
        return [], offset, served
    after = batches[-1].batch.next_offset
    if answer.expired:
        batches = [left for batch in batches for left in without(batch, answer.expired)]
    return [batch for batch in batches if len(batch)], after, served


async def fetched_one(
    reach: Reach, topic: str, partition: int, offset: int, *, fresh: bool = False
) -> Record:
    """Return the record at exactly `offset`, or raise why there is none."""
    frame = await _asked(reach, topic, partition, offset, bytes_max=1, fresh=fresh)
    answer = frame.read(FetchAnswer)
    if offset >= answer.end_offset:
        raise OffsetOutOfRange(offset=offset, start=answer.start_offset, end=answer.end_offset)
    for buffer in split(frame.payload):
        batch = received(topic, partition, buffer, from_offset=offset)
        if len(batch) and batch.offsets()[0] == offset:
            if is_among(answer.expired, Offset(offset)):
                raise Expired(offset=offset)
            return next(iter(batch))
    raise NotFound(
        f"there is no record at offset {offset} of {topic!r} partition {partition}: compaction has "
        "removed it, or the offset was never filled"
    )


async def _asked(
    reach: Reach,
    topic: str,
    partition: int,
    offset: int,
    *,
    bytes_max: int,
    wait_s: float = 0.0,
    fresh: bool = False,
    at_least: int | None = None,
    max_staleness_ms: int | None = None,
) -> Frame:
    header = FetchHeader(
        topic,
        partition,
        Offset(offset),
        bytes_max,
        int(wait_s * 1000),
        fresh,
        at_least=reach.seen.at_least(topic, partition, at_least),
        max_staleness_ms=max_staleness_ms,
    )
    frame = await reach.calls.ask(
        Operation.FETCH,
        header,
        partition=(topic, partition),
        is_read=not fresh,
        # A node may take so much longer to find out how old its replica is.
        wait_s=wait_s + (0.0 if max_staleness_ms is None else STALENESS_S),
    )
    reach.seen.note(topic, partition, frame.read(FetchAnswer).end_offset)
    return frame


async def offset_in(
    reach: Reach, topic: str, partition: int, start: Start, *, timeout_s: float | None = None
) -> Offset:
    """Return the offset that `start` stands for."""
    frame = await reach.calls.ask(
        Operation.FIND_OFFSET,
        FindOffsetHeader(topic, partition, start),
        partition=(topic, partition),
        timeout_s=timeout_s,
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
            if begin.at is StartAt.OFFSET
            else await offset_in(reach, topic, number, begin)
        )
        is_fresh = False
        while offset < ends[number]:
            batches, after, _ = await fetched(
                reach, topic, number, offset, bytes_max=reach.settings.fetch_bytes, fresh=is_fresh
            )
            for batch in batches:
                if batch.batch.base_offset < ends[number]:
                    yield batch
            if after == offset:
                if is_fresh:
                    break
                # A node that follows may not have heard of the last records yet: where its own end
                # was taken for the topic's, the reader would miss them without a word.
                is_fresh = True
            offset = after
