"""A page ends with the log or when it is full, not where files happen to end."""

from __future__ import annotations

from typing import Any

import pytest

from angarium.batch import Batch, encode, stamp
from angarium.errors import CorruptData
from angarium.ids import Micros, Offset, Term
from angarium.log.memory_disk import MemoryDisk
from angarium.log.segments import PartitionLog, SegmentConfig
from angarium.service.fetching import page_of

RECORDS = 10
WRITTEN = 6
"""So many of them lie in files, and the others in memory."""


class OneReplica:
    """Ten records of 100 bytes, each in a segment of its own, of which one may be unreadable."""

    def __init__(self, *, damaged: int | None = None) -> None:
        self._damaged = damaged
        self.log = PartitionLog.open(MemoryDisk(), "p", SegmentConfig(segment_bytes=256))
        for number in range(RECORDS):
            batch = encode([b"x" * 100])
            stamp(batch, base_offset=Offset(number), term=Term(1), append_time=Micros(1 + number))
            self.log.append([batch])
            if number < WRITTEN and (flush := self.log.take()) is not None:
                self.log.write(flush)
                self.log.flushed(flush)
        self.batch_bytes = len(self.log.read(Offset(0), 1)[0])

    @property
    def end_offset(self) -> Offset:
        return self.log.end_offset

    def fetch(self, offset: Offset, *, bytes_max: int) -> list[memoryview]:
        if offset == self._damaged:
            raise CorruptData("damaged here")
        return self.log.read(offset, bytes_max)


def offsets_in(batches: list[memoryview]) -> list[int]:
    return [Batch.trusted(one).base_offset for one in batches]


def page(replica: Any, offset: int, *, bytes_max: int) -> list[int]:
    return offsets_in(page_of(replica, Offset(offset), bytes_max=bytes_max))


def test_a_page_goes_on_where_a_segment_ends() -> None:
    assert len(OneReplica().log.read(Offset(0), 1 << 20)) < RECORDS, "the log itself stops there"
    assert page(OneReplica(), 0, bytes_max=1 << 20) == list(range(RECORDS))
    assert page(OneReplica(), 7, bytes_max=1 << 20) == [7, 8, 9]
    assert page(OneReplica(), RECORDS, bytes_max=1 << 20) == []


@pytest.mark.parametrize("batches", [1, 2, 3, 4, 7])
def test_a_page_is_half_full_at_least_and_never_more_than_full(batches: int) -> None:
    replica = OneReplica()
    read = page(replica, 0, bytes_max=batches * replica.batch_bytes)
    assert read == list(range(len(read)))
    assert batches / 2 <= len(read) <= batches


def test_a_page_has_one_batch_however_large() -> None:
    assert page(OneReplica(), 3, bytes_max=1) == [3]


def test_a_page_ends_before_damage_which_the_next_one_tells() -> None:
    replica = OneReplica(damaged=4)
    assert page(replica, 0, bytes_max=1 << 20) == [0, 1, 2, 3]
    with pytest.raises(CorruptData):
        page(replica, 4, bytes_max=1 << 20)
