"""A partition's log in memory, by the rules of the real one: what every fake broker stands on.

The machine's own tables judge producers and keys, the service's own checks what may be stored, so a
fake refuses what a node would. `tests/contract` holds the fakes to that.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from angarium.api import Ack, FetchResult, StartAt
from angarium.api.reading import check_start
from angarium.api.settings import check
from angarium.batch import Batch, Record, clear_stamp, stamp
from angarium.batch.deadlines import expired_among
from angarium.errors import InvalidArgument, OffsetOutOfRange
from angarium.ids import Micros, Offset, Term
from angarium.machine.catalog.topics import PARTITIONS_MAX, name_fault
from angarium.machine.keys import KEYED_FROM, Keys
from angarium.machine.outcomes import Duplicate, Refused
from angarium.machine.partition_limits import NAME_CHARACTERS_MAX, PartitionLimits
from angarium.machine.producers import Producers
from angarium.modes import DeliveryMode
from angarium.service.admission import check_writable
from angarium.service.publishing import checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import FetchRequest, Start, TopicConfig
    from angarium.ids import Buffer


class MemoryLog:
    """The log of one partition."""

    def __init__(self, *, term: int = 1, times_from: int = 1_000_000) -> None:
        self.term = term
        self.batches: list[bytearray] = []
        self.start = 0
        self.end = 0
        self.appends = 0
        self.changed = asyncio.Event()
        """Set when something comes, and another one from then on."""
        self._times_from = times_from
        self._producers = Producers()
        self._keys = Keys()

    def duplicate(self, data: Buffer) -> Ack | None:
        """Return the answer to a batch that is stored already; None to any other one."""
        batch = Batch.parse(data)
        first, epoch = batch.first_sequence, batch.epoch
        known = self._producers.repeated(
            batch.producer_id, epoch=epoch, first=first, past=first + batch.count
        )
        return self.append(data) if isinstance(known, Duplicate) else None

    def append(self, data: Buffer) -> Ack:
        """Store one batch unless the machine's rules refuse it."""
        batch = Batch.parse(data)
        self.appends += 1
        verdict = self._verdict(batch)
        answer: Any = {"mode": DeliveryMode.CONSISTENT, "topic": "", "partition": 0}
        if isinstance(verdict, Refused):
            return Ack(**answer, code=verdict.code, message=verdict.message)
        if isinstance(verdict, Duplicate):
            return Ack(
                **answer,
                base_offset=verdict.base_offset,
                next_offset=verdict.next_offset,
                duplicate=True,
            )
        stored, base, time = bytearray(data), Offset(self.end), self._time
        stamp(stored, base_offset=base, term=Term(self.term), append_time=time)
        self.batches.append(stored)
        self.end += batch.count
        self.announce()
        return Ack(
            **answer,
            base_offset=base,
            next_offset=Offset(self.end),
            append_time=time,
            term=Term(self.term),
        )

    @property
    def _time(self) -> Micros:
        return Micros(self._times_from + self.appends)

    def _verdict(self, batch: Batch) -> Duplicate | Refused | None:
        first, past = batch.first_sequence, self.end + batch.count
        place: Any = {"base_offset": self.end, "next_offset": past, "time": self._time}
        place["limits"] = PartitionLimits()
        if batch.producer_id >= KEYED_FROM:
            return self._keys.admit(batch.producer_id, content=first, **place)
        if not batch.producer_id:
            return None
        past_sequence = first + batch.count
        return self._producers.admit(
            batch.producer_id, epoch=batch.epoch, first=first, past=past_sequence, **place
        )

    def announce(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def lose_from(self, offset: int) -> None:
        """Forget what was stored from an offset on, as if a follower without it had taken over."""
        kept = [one for one in self.batches if Batch.trusted(one).next_offset <= offset]
        self.batches, self.end, self._producers, self._keys = [], 0, Producers(), Keys()
        self.term += 1
        for one in kept:
            clear_stamp(one)
            self.append(one)

    def read(self, offset: int, bytes_max: int = 1 << 20) -> list[bytearray]:
        found: list[bytearray] = []
        size = 0
        for one in self.batches:
            if Batch.trusted(one).next_offset > max(offset, self.start):
                if found and size + len(one) > bytes_max:
                    break
                found.append(one)
                size += len(one)
        return found

    async def fetch(self, request: FetchRequest, *, now: Micros) -> FetchResult:
        if request.offset < 0 or request.bytes_max < 1 or request.wait_ms < 0:
            raise InvalidArgument("a fetch needs an offset >= 0, a size >= 1 and a wait >= 0")
        if request.offset > self.end:
            raise OffsetOutOfRange(offset=request.offset, start=self.start, end=self.end)
        if request.wait_ms and request.offset == self.end:
            try:
                async with asyncio.timeout(request.wait_ms / 1_000):
                    await self.changed.wait()
            except TimeoutError:
                pass
        found = self.read(request.offset, request.bytes_max)
        return FetchResult(
            start_offset=Offset(self.start),
            end_offset=Offset(self.end),
            batches=tuple(found),
            expired=expired_among(found, now=now),
        )

    def offset_of(self, start: Start) -> Offset:
        """Return the offset that `start` stands for."""
        check_start(start)
        match start.at:
            case StartAt.EARLIEST:
                return Offset(self.start)
            case StartAt.LATEST:
                return Offset(self.end)
            case StartAt.OFFSET:
                if start.value < self.start:
                    raise OffsetOutOfRange(offset=start.value, start=self.start, end=self.end)
                return Offset(start.value)
            case StartAt.TIMESTAMP:
                for one in self.batches:
                    batch = Batch.trusted(one)
                    if batch.append_time >= start.value:
                        return batch.base_offset
                return Offset(self.end)

    def records(self) -> list[Record]:
        return [record for one in self.batches for record in Batch.trusted(one)]

    def values(self) -> list[bytes | None]:
        return [record.value for record in self.records()]


# --- what a node refuses -------------------------------------------------------------------------


def check_batches(topic: str, batches: Sequence[Buffer], config: TopicConfig) -> list[bytearray]:
    """Return batches that may be stored, each in a buffer of its own."""
    check_writable(topic)
    if not batches:
        raise InvalidArgument("a publish carries at least one batch")
    return [checked(one, config.batch_bytes_max) for one in batches]


def check_topic(name: str, partitions: int, config: TopicConfig) -> None:
    fault = name_fault(name)
    if fault is not None:
        raise InvalidArgument(fault)
    if not 0 < partitions <= PARTITIONS_MAX:
        raise InvalidArgument(f"a topic has 1 to {PARTITIONS_MAX} partitions, not {partitions}")
    check(config)


def check_alteration(had: int, partitions: int | None, config: TopicConfig | None) -> None:
    if partitions is not None and not had <= partitions <= PARTITIONS_MAX:
        raise InvalidArgument(f"a topic of {had} partitions keeps them")
    if config is not None:
        check(config)


def check_producer(name: str | None) -> None:
    if name is not None and not 0 < len(name) <= NAME_CHARACTERS_MAX:
        raise InvalidArgument("a producer's name is too long or empty")
