"""When a leader proposes to compact."""

from __future__ import annotations

import pytest

from angarium.batch import encode, stamp
from angarium.ids import Micros, Offset, Term
from angarium.log.memory_disk import MemoryDisk
from angarium.log.segments import PartitionLog, SegmentConfig
from angarium.log.segments.compacted_mark import Pass
from angarium.machine import Compact
from angarium.machine.catalog import TopicSettings
from angarium.machine.catalog.values import Cleanup
from angarium.node import compaction
from angarium.node.compaction import proposal
from angarium.replica.work import do_now

NOW = Micros(1_000_000)
SETTINGS = TopicSettings(cleanup=Cleanup.COMPACT, tombstone_micros=1_000)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> PartitionLog:
    monkeypatch.setattr(compaction, "DIRTY_BYTES_MIN", 1)
    return PartitionLog.open(MemoryDisk(), "p", SegmentConfig(segment_bytes=500))


def append(log: PartitionLog, count: int, *, value: bytes | None = b"v", time: int = 0) -> None:
    for _ in range(count):
        base = log.end_offset
        batch = encode([value], keys=[b"key %d" % base])
        moment = Micros(time or base + 1)
        stamp(batch, base_offset=base, term=Term(1), append_time=moment)
        log.append([batch])


def carry_out(log: PartitionLog, command: Compact) -> Pass:
    goal = Pass(command.until, command.tombstones_before)
    log.close_segment(goal.until)
    log.sync()
    while log.compactor.is_behind(goal):
        do_now(log.compactor.turn(goal, limit=log.synced_offset))
    return goal


def test_what_is_new_is_compacted_once_it_is_a_large_enough_part(log: PartitionLog) -> None:
    append(log, 20)
    first = proposal(log, SETTINGS, Pass(), now=NOW)
    assert first == Compact(until=Offset(20), tombstones_before=Micros(NOW - 1_000))
    # One after the other.
    assert proposal(log, SETTINGS, Pass(Offset(20)), now=NOW) is None
    reached = carry_out(log, first)
    append(log, 10)
    assert proposal(log, SETTINGS, reached, now=NOW) is None
    append(log, 12)
    second = proposal(log, SETTINGS, reached, now=NOW)
    assert second is not None
    assert second.until == 42


def test_little_is_not_worth_it(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "DIRTY_BYTES_MIN", 1 << 20)
    append(log, 20)
    assert proposal(log, SETTINGS, Pass(), now=NOW) is None


def test_a_tombstone_that_has_had_its_time_is_reason_enough(log: PartitionLog) -> None:
    append(log, 20)
    append(log, 1, value=None, time=NOW - 500)
    first = proposal(log, SETTINGS, Pass(), now=NOW)
    assert first is not None
    reached = carry_out(log, first)
    assert proposal(log, SETTINGS, reached, now=NOW) is None
    later = proposal(log, SETTINGS, reached, now=Micros(NOW + 501))
    assert later == Compact(until=Offset(21), tombstones_before=Micros(NOW - 499))
    reached = carry_out(log, later)
    assert proposal(log, SETTINGS, reached, now=Micros(NOW + 10_000)) is None
