"""What was published before a subscription began, of many partitions, in one row by time.

Each partition is read page by page, and the next page only when the one before is used up: memory
holds one page of each, however long the history and however far apart its times. A row goes up to
where the partitions ended when it was begun, or to the fences of a layout (docs/decisions/0025);
more may have come meanwhile, so one row is followed by another until little is left.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.api import FetchRequest, Start, StartAt
from angarium.api.fences import bound_of, gates_open
from angarium.api.stored_records import readable, records_of
from angarium.doors.feeds.positions import found_start
from angarium.errors import LayoutChanged, OffsetOutOfRange
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from angarium.api import Broker, TopicInfo
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


class Followed:
    """A topic of a subscription: its partitions, and which of its layouts is being read."""

    def __init__(self, info: TopicInfo, number: int) -> None:
        self.info = info
        self.topic = info.name
        self.number = number
        """Which topic of the subscription."""
        self.sources: dict[int, Source] = {}
        """By the partition's number."""
        self.layout = 0
        """Up to which layout everything has been read that comes before it."""
        self._latest_us = 0
        self._floor_us = 0

    @property
    def is_at_its_last_layout(self) -> bool:
        """Whether nothing is known to lie behind the fences up to which it is read."""
        return self.layout + 1 >= len(self.info.layouts)

    def go_on_to(self, layout: int) -> None:
        """Note that all before this layout has been read: what comes is later, in any case."""
        if layout > self.layout:
            self.layout = layout
            self._floor_us = self._latest_us

    def lifted(self, time_us: int) -> int:
        """Return the time by which a message is put into the row."""
        lifted = max(time_us, self._floor_us + 1) if self._floor_us else time_us
        self._latest_us = max(self._latest_us, lifted)
        return lifted

    async def look(self, broker: Broker, ends: dict[int, Offset]) -> dict[int, int]:
        """Return up to where each partition may be read, of those that end at `ends`."""
        info = await broker.describe_topic(self.topic)
        if info.id != self.info.id or len(info.partitions) < len(ends):
            return {}
        self.info = info
        opened = gates_open(info, {at: one.next for at, one in self.sources.items()})
        self.go_on_to(opened)
        bounds: dict[int, int] = {}
        for at, end in ends.items():
            fence, known = bound_of(info, at, opened), info.partitions[at].end_offset
            # Of later records it is not known whether they lie behind another fence.
            bounds[at] = min(end, end if known is None else known, end if fence is None else fence)
        return bounds


class Source:
    """One partition of a subscription, and how far it has been read."""

    def __init__(
        self, of: Followed, partition: int, ids: MessageIds, *, after_us: int | None
    ) -> None:
        """Prepare to read what comes after a time; None: what comes from now on."""
        self.of = of
        of.sources[partition] = self
        self.number = (of.number << 32) | partition
        self.topic = of.topic
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
        self.next = await found_start(broker, self.topic, self.partition, self._start)

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
                    time_us=self.of.lifted(time_us),
                    source=number,
                    offset=record.offset,
                    shown_us=time_us if count == len(found) else time_us - 1,
                    id=ids.at(record.offset),
                    topic=topic,
                    body=record.value or b"",
                )


async def history(broker: Broker, topics: Sequence[Followed]) -> AsyncGenerator[Sent, None]:
    """Yield everything up to where the partitions, or their layouts, end now, by time."""
    pages: dict[int, Iterator[Sent]] = {}
    ends: dict[int, int] = {}
    sources = {source.number: source for one in topics for source in one.sources.values()}
    latest = Start(StartAt.LATEST)
    for one in topics:
        there = {at: await found_start(broker, one.topic, at, latest) for at in one.sources}
        for at, end in (await one.look(broker, there)).items():
            ends[one.sources[at].number] = end
    heads: list[Sent] = []

    async def advance(source: Source) -> None:
        """Put the next message of a partition among the heads, if there is one left."""
        while True:
            head = next(pages.get(source.number, iter(())), None)
            if head is not None:
                heapq.heappush(heads, head)
                return
            if source.next >= ends.get(source.number, 0):
                return
            page = await _page(broker, source)
            if page is None:
                ends[source.number] = source.next
            else:
                pages[source.number] = iter(page)

    for source in sources.values():
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
        return one._replace(shown_us=min(one.shown_us, one.time_us - 1))
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
