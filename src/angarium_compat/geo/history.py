"""What was published before a subscription began, of many partitions, in one row by time.

Each partition is read page by page, and the next page only when the one before is used up: memory
holds one page of each, however long the history and however far apart its times. A row goes up to
where the partitions ended when it was begun; more may have come meanwhile, so one row is followed
by another until little is left.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.api import FetchRequest, Start, StartAt
from angarium.api.stored_records import readable, records_of
from angarium.errors import OffsetOutOfRange
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from angarium.api import Broker
    from angarium.batch.deadlines import Ranges
    from angarium.ids import Buffer
    from angarium_compat.geo.message_ids import MessageIds

PAGE_BYTES: Final = 256 << 10
"""About how much of one partition is read at a time."""

WAIT_MS: Final = 1_000
"""How long a page waits for a replica that has not yet what its leader has. Then it is asked for
again: it will come, and asking without a wait would keep the node from taking it."""


class Sent(NamedTuple):
    """A message of the profile. They sort by time, and in one partition by offset."""

    time_us: int
    source: int
    """Which partition of the subscription, so that two messages never compare by their bodies."""
    offset: int
    shown_us: int
    """The timestamp that the client is told: the last one of a batch tells the batch's time, those
    before it a microsecond less. A client that resumes after one of these gets the whole batch
    again, so a subscription that broke off in the middle of a batch misses nothing."""
    id: str
    topic: str
    body: bytes


class Source:
    """One partition of a subscription, and how far it has been read."""

    def __init__(
        self, number: int, topic: str, partition: int, ids: MessageIds, *, after_us: int | None
    ) -> None:
        """Prepare to read what comes after a time; None: what comes from now on."""
        self.number = number
        self.topic = topic
        self.partition = partition
        self.next = Offset(0)
        self._ids = ids
        self._start = Start(StartAt.LATEST)
        self._after_us = 0
        if after_us is not None:
            self._start = Start(StartAt.TIMESTAMP, after_us + 1)
            self._after_us = after_us

    async def find_start(self, broker: Broker) -> None:
        """Go to the first message after the time that was seen."""
        self.next = await broker.find_offset(self.topic, self.partition, self._start)

    def read(
        self, batches: Sequence[Buffer], *, from_offset: Offset, expired: Ranges
    ) -> Iterator[Sent]:
        """Yield the messages of stored batches, and be behind them."""
        ids, number, topic = self._ids, self.number, self.topic
        for buffer in batches:
            batch = readable(buffer, topic=topic, partition=self.partition)
            self.next = max(self.next, batch.next_offset)
            if batch.append_time <= self._after_us:
                continue  # this replica was behind the one where the client saw it
            found = list(records_of(batch, from_offset=from_offset, expired=expired))
            for count, record in enumerate(found, 1):
                time_us = record.append_time
                yield Sent(
                    time_us=time_us,
                    source=number,
                    offset=record.offset,
                    shown_us=time_us if count == len(found) else time_us - 1,
                    id=ids.at(record.offset),
                    topic=topic,
                    body=record.value or b"",
                )


async def history(broker: Broker, sources: Sequence[Source]) -> AsyncGenerator[Sent, None]:
    """Yield everything up to where the partitions end now, by time."""
    pages: dict[int, Iterator[Sent]] = {}
    ends = {
        one.number: await broker.find_offset(one.topic, one.partition, Start(StartAt.LATEST))
        for one in sources
    }
    heads: list[Sent] = []

    async def advance(source: Source) -> None:
        """Put the next message of a partition among the heads, if there is one left."""
        while True:
            head = next(pages.get(source.number, iter(())), None)
            if head is not None:
                heapq.heappush(heads, head)
                return
            if source.next >= ends[source.number]:
                return
            pages[source.number] = iter(await _page(broker, source))

    for source in sources:
        await advance(source)
    while heads:
        first = heapq.heappop(heads)
        await advance(sources[first.source])
        yield before(first, heads[0]) if heads else first


def before(one: Sent, following: Sent) -> Sent:
    """Return a message as it is told in front of another one.

    Two partitions of a topic may append in the same microsecond. Then the first of the two is told
    as of one earlier, as inside a batch: a client that resumes after it gets the second.
    """
    if following.time_us == one.time_us and following.topic == one.topic:
        return one._replace(shown_us=one.time_us - 1)
    return one


async def _page(broker: Broker, source: Source) -> list[Sent]:
    """Return the next messages of a partition; none where only a gap is left."""
    start = source.next
    try:
        result = await broker.fetch(
            FetchRequest(
                topic=source.topic,
                partition=source.partition,
                offset=start,
                bytes_max=PAGE_BYTES,
                wait_ms=WAIT_MS,
            )
        )
    except OffsetOutOfRange as error:
        # Retention was faster than the reader: what is gone is gone, for every reader.
        source.next = Offset(max(start, getattr(error, "start", start)))
        if source.next == start:
            raise
        return []
    if not result.batches:
        source.next = max(start, result.end_offset)
        return []
    return list(source.read(result.batches, from_offset=start, expired=result.expired))
