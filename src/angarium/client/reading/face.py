"""Reading by offset. To follow a topic as it grows, subscribe."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from angarium.client.reading.bounds import offset_known, staleness_ms_of
from angarium.client.reading.fetching import everything, fetched, fetched_one, offset_in
from angarium.client.reading.starts import start_in
from angarium.client.records import Served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from datetime import timedelta

    from angarium.client.publishing.receipts import Receipt
    from angarium.client.reach import Reach
    from angarium.client.reading.starts import StartLike
    from angarium.client.records import ReceivedBatch, Record
    from angarium.ids import Offset


class FetchedBatches(list["ReceivedBatch"]):
    """Batches of one partition, in order, and where to go on."""

    def __init__(
        self, batches: Iterable[ReceivedBatch] = (), *, after: int, served: Served | None = None
    ) -> None:
        super().__init__(batches)
        self.after = after
        """The offset from which to fetch next; the one asked for, if nothing was there."""
        self.served = served or Served()
        """Which node's replica was read, where that is, and how old it may be."""


class Reading(ABC):
    """The half of a client that reads what is stored."""

    @property
    @abstractmethod
    def _reach(self) -> Reach: ...

    async def fetch(
        self,
        topic: str,
        partition: int = 0,
        offset: int = 0,
        *,
        records_max: int | None = None,
        bytes_max: int | None = None,
        wait_s: float = 0.0,
        fresh: bool = False,
        at_least: Receipt | int | None = None,
        max_staleness: float | timedelta | None = None,
    ) -> list[Record]:
        """Return records from `offset` on, about `bytes_max` of them; none at the end.

        Records that have expired are left out.

        `wait_s` waits that long for records to come. `fresh` asks a leader that makes sure that it
        leads, so that everything acknowledged before is seen.

        A client with a region reads from the nearest replica, which may lag behind; it never
        answers with less than this client has seen of the partition before. `at_least` is an
        offset, or the receipt of a publish, that has to be there. `max_staleness`, in seconds: all
        that was committed before then is there, or `TooStale` is raised.
        """
        batches = await self.fetch_batches(
            topic,
            partition,
            offset,
            bytes_max=bytes_max,
            wait_s=wait_s,
            fresh=fresh,
            at_least=at_least,
            max_staleness=max_staleness,
        )
        records = [record for batch in batches for record in batch]
        return records if records_max is None else records[:records_max]

    async def fetch_batches(
        self,
        topic: str,
        partition: int = 0,
        offset: int = 0,
        *,
        bytes_max: int | None = None,
        wait_s: float = 0.0,
        fresh: bool = False,
        at_least: Receipt | int | None = None,
        max_staleness: float | timedelta | None = None,
    ) -> FetchedBatches:
        """Return the same as `fetch`, in the batches in which it is stored.

        A batch with expired records comes in the pieces that are left of it. The list
        says where to go on (`after`), also behind what has expired at its end, and who `served`.
        """
        known = offset_known(at_least, topic, partition)
        staleness_ms = staleness_ms_of(max_staleness)
        while True:
            batches, after, served = await fetched(
                self._reach,
                topic,
                partition,
                offset,
                bytes_max=self._reach.settings.fetch_bytes if bytes_max is None else bytes_max,
                wait_s=wait_s,
                fresh=fresh,
                at_least=known,
                max_staleness_ms=staleness_ms,
            )
            if batches or after == offset:
                return FetchedBatches(batches, after=after, served=served)
            offset = after  # everything there has expired, or was removed by compaction

    async def fetch_one(
        self, topic: str, partition: int, offset: int, *, fresh: bool = False
    ) -> Record:
        """Return the record at exactly `offset`.

        Raises `Expired` if its time is over, `OffsetOutOfRange` if the offset was never written or
        has been trimmed away, and `NotFound` if compaction has removed the record.
        """
        return await fetched_one(self._reach, topic, partition, offset, fresh=fresh)

    async def read(self, topic: str, *, start: StartLike = "earliest") -> AsyncIterator[Record]:
        """Yield everything a topic holds at this moment, one partition after the other."""
        async for batch in self.read_batches(topic, start=start):
            for record in batch:
                yield record

    def read_batches(
        self, topic: str, *, start: StartLike = "earliest"
    ) -> AsyncIterator[ReceivedBatch]:
        """Yield the same as `read`, in the batches in which it is stored."""
        return everything(self._reach, topic, start)

    async def find_offset(self, topic: str, partition: int, start: StartLike) -> Offset:
        """Return the offset that `start` stands for."""
        return await offset_in(self._reach, topic, partition, start_in(start, partition))
