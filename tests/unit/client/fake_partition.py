"""The log of one partition in memory, judged by the machine's own rules for producers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from angarium.api import Ack, Place, TopicConfig
from angarium.batch import Batch, Record, clear_stamp, stamp
from angarium.errors import OffsetOutOfRange
from angarium.ids import Micros, Offset, Term
from angarium.machine.limits import Limits
from angarium.machine.outcomes import Duplicate, Refused
from angarium.machine.producers import Producers
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from angarium.api import Start
    from angarium.wire import Stream


class Partition:
    """The log of one partition, and who leads it."""

    def __init__(self, leader: int) -> None:
        self.leader: int | None = leader
        self.term = 1
        self.batches: list[bytearray] = []
        self.start = 0
        self.end = 0
        self.producers = Producers()
        self.changed = asyncio.Event()
        self.listeners: list[tuple[Stream, int]] = []
        self.appends = 0

    def append(self, data: bytes | bytearray) -> Ack:
        """Store one batch unless the machine's rules refuse it."""
        batch = Batch.parse(data)
        self.appends += 1
        past = self.end + batch.count
        verdict = None
        if batch.producer_id:
            verdict = self.producers.admit(
                batch.producer_id,
                epoch=batch.epoch,
                first=batch.first_sequence,
                past=batch.first_sequence + batch.count,
                base_offset=self.end,
                next_offset=past,
                time=self.appends,
                limits=Limits(),
            )
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
        stored = bytearray(data)
        stamp(
            stored,
            base_offset=Offset(self.end),
            term=Term(self.term),
            append_time=Micros(1_000_000 + self.appends),
        )
        self.batches.append(stored)
        base, self.end = self.end, past
        self.announce()
        return Ack(
            **answer,
            base_offset=Offset(base),
            next_offset=Offset(past),
            append_time=Micros(1_000_000 + self.appends),
            term=Term(self.term),
        )

    def announce(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def lose_from(self, offset: int) -> None:
        """Forget what was stored from an offset on, as if a follower without it had taken over."""
        kept = [one for one in self.batches if Batch.trusted(one).next_offset <= offset]
        self.batches, self.end, self.producers = [], 0, Producers()
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

    def offset_of(self, start: Start) -> int:
        """Return the offset that `start` stands for."""
        match start.place:
            case Place.EARLIEST:
                return self.start
            case Place.LATEST:
                return self.end
            case Place.OFFSET:
                if start.value < self.start:
                    raise OffsetOutOfRange(offset=start.value, start=self.start, end=self.end)
                return start.value
            case Place.TIMESTAMP:
                for one in self.batches:
                    batch = Batch.trusted(one)
                    if batch.append_time >= start.value:
                        return batch.base_offset
                return self.end

    def records(self) -> list[Record]:
        return [record for one in self.batches for record in Batch.trusted(one)]

    def values(self) -> list[bytes | None]:
        return [record.value for record in self.records()]


@dataclass
class Topic:
    id: int
    name: str
    partitions: list[Partition]
    config: TopicConfig = field(default_factory=TopicConfig)
