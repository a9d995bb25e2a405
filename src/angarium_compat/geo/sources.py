"""The topics and partitions of one subscription, and how far each has been read.

Messages of a topic go by time, and by its layouts where it was given partitions
(docs/decisions/0025): what lies behind the fences of an addition comes after what lies before,
whatever the clocks said.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.api import FetchRequest, Start, StartAt
from angarium.api.fences import Gates, bound_of
from angarium.api.stored_records import readable, records_of
from angarium.batch import Batch
from angarium.doors.feeds.positions import found_start
from angarium.errors import OffsetOutOfRange
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.api import Broker, TopicInfo
    from angarium.batch.deadlines import Ranges
    from angarium.ids import Buffer
    from angarium_compat.geo.message_ids import MessageIds
    from angarium_compat.geo.publishing import GeoPublishing

PARTITION_BITS: Final = 32
PARTITION_MASK: Final = (1 << PARTITION_BITS) - 1
"""The number of a source is that of its topic, then that of its partition."""


class Sent(NamedTuple):
    """A message of the profile. They sort by time, and in one partition by offset."""

    time_us: int
    """When it was appended; later, behind a fence that clocks contradict."""
    appended_us: int
    source: int
    """Which partition of the subscription, so that two messages never compare by their bodies."""
    offset: int
    shown_us: int
    """The timestamp that the client is told: the last one of a batch tells the batch's time, those
    before it a microsecond less. A client that resumes after one of these gets the whole batch
    again, so a subscription that broke off in the middle of a batch misses nothing. Nor does one
    that broke off before a fence: it tells no time that something behind it does not come after."""
    id: str
    topic: str
    body: bytes


class Followed:
    """A topic of a subscription: its partitions, and which of its layouts is being read."""

    def __init__(self, info: TopicInfo, number: int, publishing: GeoPublishing) -> None:
        self.info = info
        self.topic = info.name
        self.number = number
        """Which topic of the subscription."""
        self.sources: dict[int, Source] = {}
        """By the partition's number."""
        self.behind_us: int | None = None
        """When the first of the messages was appended that wait behind the next fences."""
        self._publishing = publishing
        self._gates = Gates()
        self._opened = 0
        self._latest_us = 0
        self._floor_us = 0

    async def source(self, partition: int, *, after_us: int | None = 0) -> Source:
        """Return a partition, which is read after a time if it was not known before."""
        found = self.sources.get(partition)
        if found is None:
            ids = await self._publishing.ids_of(self.info.id, partition)
            found = self.sources[partition] = Source(self, partition, ids, after_us=after_us)
        return found

    @property
    def layout(self) -> int:
        """Up to which layout history has been read that comes before it."""
        return self._gates.opened

    @property
    def may_go_on(self) -> bool:
        """Whether something may lie behind the fences up to which it is read."""
        return self.layout + 1 < len(self.info.layouts) or self._gates.lacks(self.info)

    def stop(self, source: Source) -> None:
        """Note that a node has stopped a partition at the next fence."""
        self._gates.stop(source.partition, layout=self.layout)

    def go_on_to(self, layout: int) -> None:
        """Note that all before this layout has been read: what comes is later, in any case."""
        if layout > self._opened:
            self._opened = layout
            self._floor_us = self._latest_us

    def lifted(self, time_us: int) -> int:
        """Return the time by which a message is put into the row."""
        lifted = max(time_us, self._floor_us + 1) if self._floor_us else time_us
        self._latest_us = max(self._latest_us, lifted)
        return lifted

    async def look(self, broker: Broker) -> dict[int, int]:
        """Return up to where each partition may be read now, by the number of its source."""
        info = await broker.describe_topic(self.topic)
        if info.id == self.info.id and len(info.partitions) >= len(self.sources):
            self.info = info
        for one in self.info.partitions:
            await self.source(one.number)
        self._gates.look(self.info, {at: one.next for at, one in self.sources.items()})
        self.go_on_to(self.layout)
        bounds: dict[int, int] = {}
        behind: list[int] = []
        for at, source in self.sources.items():
            fence = bound_of(self.info, at, self.layout) if self.info.layouts else None
            if fence is not None:
                behind += await self._times_behind(broker, source, fence)
            if self._gates.is_open(self.info, at):
                end = await found_start(broker, self.topic, at, Start(StartAt.LATEST))
                # The end that its leader tells, whatever this node knows of it: what was published
                # before belongs into the row. A fence nobody has told of stops the fetch itself.
                bounds[source.number] = end if fence is None else min(end, fence)
        self.behind_us = min(behind, default=None)
        return bounds

    async def _times_behind(self, broker: Broker, source: Source, fence: int) -> list[int]:
        """Return when the first message behind a fence was appended, if one is known to be there.

        In a partition times only grow, so this is the earliest of all that come from it.
        """
        first = Offset(max(source.next, fence))
        if first >= (self.info.partitions[source.partition].end_offset or 0):
            return []
        wanted = FetchRequest(
            topic=self.topic, partition=source.partition, offset=first, bytes_max=1
        )
        with suppress(OffsetOutOfRange):  # trimmed away, or not here yet
            found = (await broker.fetch(wanted)).batches
            return [Batch.trusted(one).append_time for one in found[:1]]
        return []


class Source:
    """One partition of a subscription, and how far it has been read."""

    def __init__(
        self, of: Followed, partition: int, ids: MessageIds, *, after_us: int | None
    ) -> None:
        """Prepare to read what comes after a time; None: what comes from now on."""
        self.of = of
        self.number = (of.number << PARTITION_BITS) | partition
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
                    appended_us=time_us,
                    source=number,
                    offset=record.offset,
                    shown_us=time_us if count == len(found) else time_us - 1,
                    id=ids.at(record.offset),
                    topic=topic,
                    body=record.value or b"",
                )
