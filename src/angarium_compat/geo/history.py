"""What was published before a subscription began, of many partitions, in one row by time.

Each partition is read page by page, and the next page only when the one before is used up: memory
holds one page of each, however long the history and however far apart its times. A row goes up to
where the partitions ended when it was begun, through the gates of layouts that came before; more
may have come meanwhile, so one row is followed by another until little is left.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from angarium.api import FetchRequest
from angarium.errors import LayoutChanged, OffsetOutOfRange
from angarium.ids import Offset
from angarium_compat.geo.sources import PARTITION_BITS, PARTITION_MASK

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from angarium.api import Broker
    from angarium_compat.geo.sources import Followed, Sent, Source

PAGE_BYTES: Final = 256 << 10
"""About how much of one partition is read at a time."""

WAIT_MS: Final = 1_000
"""How long a page waits for a replica that has not yet what its leader has. Then it is asked for
again: it will come, and asking without a wait would keep the node from taking it."""


async def history(broker: Broker, topics: Sequence[Followed]) -> AsyncGenerator[Sent, None]:
    """Yield everything up to where the partitions end now, by time and by the topics' layouts."""
    row = _Row(broker, topics)
    await row.begin()
    while row.heads:
        first = await row.take()
        yield before(first, row.heads[0]) if row.heads else first


class _Row:
    """The next message of every partition that has one, and where to find those behind it."""

    def __init__(self, broker: Broker, topics: Sequence[Followed]) -> None:
        self._broker = broker
        self._topics = topics
        self.heads: list[Sent] = []
        """A heap: the first is the earliest."""
        self._pages: dict[int, Iterator[Sent]] = {}
        self._ends: dict[int, int] = {}
        self._heads_of = [0] * len(topics)
        """By topic, how many of its partitions have a message among the heads."""

    async def begin(self) -> None:
        """Find the end of every partition, then their first messages."""
        for topic in self._topics:
            self._ends.update(await topic.look(self._broker))
        for topic in self._topics:
            await self._advance_all(topic)

    async def take(self) -> Sent:
        """Take the earliest message out."""
        first = heapq.heappop(self.heads)
        topic = self._topics[first.source >> PARTITION_BITS]
        self._heads_of[topic.number] -= 1
        await self._advance(topic.sources[first.source & PARTITION_MASK])
        if topic.behind_us is not None:
            # Else a client that resumes after it misses what clocks say was earlier.
            first = first._replace(shown_us=min(first.shown_us, topic.behind_us - 1))
        await self._go_on(topic)
        return first

    async def _advance_all(self, topic: Followed) -> None:
        for source in topic.sources.values():
            await self._advance(source)
        await self._go_on(topic)

    async def _advance(self, source: Source) -> None:
        """Put the next message of a partition among the heads, if there is one left."""
        while True:
            head = next(self._pages.get(source.number, iter(())), None)
            if head is not None:
                heapq.heappush(self.heads, head)
                self._heads_of[source.of.number] += 1
                return
            if source.next >= self._ends.get(source.number, 0):
                return
            page = await _page(self._broker, source)
            if page is None:
                source.of.stop(source)
                self._ends[source.number] = 0
            else:
                self._pages[source.number] = iter(page)

    async def _go_on(self, topic: Followed) -> None:
        """Go through the gate of a topic if it stands before one with all its partitions."""
        if self._heads_of[topic.number] or not topic.may_go_on:
            return
        layout = topic.layout
        self._ends.update(await topic.look(self._broker))
        # Else not all fences are there yet: what lies behind them comes live.
        if topic.layout > layout:
            await self._advance_all(topic)


def before(one: Sent, following: Sent) -> Sent:
    """Return a message as it is told in front of another one.

    Two partitions of a topic may append in the same microsecond, or the second one earlier, where
    a fence is between them. Then the first of the two is told as of one earlier than the second, as
    inside a batch: a client that resumes after it gets the second.
    """
    if following.appended_us <= one.appended_us and following.topic == one.topic:
        return one._replace(shown_us=min(one.shown_us, following.appended_us - 1))
    return one


async def _page(broker: Broker, source: Source) -> list[Sent] | None:
    """Return the next messages of a partition; none where only a gap is left, and None at the fence
    of the next layout."""
    start = source.next
    try:
        result = await broker.fetch(
            FetchRequest(
                topic=source.topic,
                partition=source.partition,
                offset=start,
                bytes_max=PAGE_BYTES,
                wait_ms=WAIT_MS,
                layout=source.of.layout,
            )
        )
    except LayoutChanged:
        return None
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
