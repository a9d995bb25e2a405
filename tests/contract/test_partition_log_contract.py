"""What a partition's log promises, on the memory disk, the simulated one and the real one."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from tests.unit.log.stamped_batches import contents, spans, stamped

from angarium.errors import (
    CorruptData,
    DiskFull,
    InvalidArgument,
    LimitExceeded,
    NotFound,
    OffsetOutOfRange,
)
from angarium.ids import Micros, Offset
from angarium.log.memory_disk import MemoryDisk
from angarium.log.os_disk import OsDisk
from angarium.log.segments import Manifest, PartitionLog, SegmentConfig, SegmentImport
from angarium.testing.disk import SimulatedDisk

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.log.disk import Disk

FOLDER = "partition"
SMALL = SegmentConfig(segment_bytes=1200, index_bytes=300, preallocate_bytes=512)
"""About six batches to a segment, two to a stretch of the index."""


@pytest.fixture(params=["memory", "simulated", "real"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    if request.param == "memory":
        return MemoryDisk()
    if request.param == "simulated":
        return SimulatedDisk(random.Random(7))
    return OsDisk(tmp_path)


@pytest.fixture
def log(disk: Disk) -> PartitionLog:
    return PartitionLog.open(disk, FOLDER, SMALL)


def reopened(disk: Disk, log: PartitionLog) -> PartitionLog:
    log.close()
    return PartitionLog.open(disk, FOLDER, SMALL, durable_until=log.synced_offset)


def fill(log: PartitionLog, until: int, *, count: int = 2) -> None:
    while log.end_offset < until:
        log.append([stamped(log.end_offset, count)])


# --- appending and reading ------------------------------------------------------------------


def test_a_new_log_is_empty(log: PartitionLog) -> None:
    assert (log.start_offset, log.end_offset, log.synced_offset) == (0, 0, 0)
    assert log.read(Offset(0), 1000) == []
    assert log.take() is None


def test_an_appended_batch_is_visible_at_once(log: PartitionLog) -> None:
    log.append([stamped(0, 3), stamped(3)])
    assert (log.end_offset, log.synced_offset) == (4, 0)
    assert spans(log) == [(0, 3), (3, 4)]


def test_batches_come_back_byte_for_byte_from_memory_and_from_disk(log: PartitionLog) -> None:
    fill(log, 40)
    before = contents(log)
    log.sync()
    assert contents(log) == before == [stamped(base, 2) for base in range(0, 40, 2)]
    assert log.unflushed_bytes == 0


def test_the_buffers_given_are_the_ones_served_until_they_are_written(log: PartitionLog) -> None:
    buffer = stamped(0)
    log.append([buffer])
    assert log.read(Offset(0), 1000)[0].obj is buffer


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer_may_be_appended(
    disk: Disk, log: PartitionLog, kind: type[bytes]
) -> None:
    log.append([kind(stamped(0)), kind(stamped(1))])
    log.sync()
    assert spans(reopened(disk, log)) == [(0, 1), (1, 2)]


def test_a_read_begins_with_the_batch_that_holds_the_offset(log: PartitionLog) -> None:
    fill(log, 60, count=3)
    log.sync()
    fill(log, 90, count=3)
    for offset in range(90):
        assert spans(log, start=offset)[0][0] == offset - offset % 3


def test_a_read_keeps_to_the_bytes_asked_for_but_gives_at_least_one(log: PartitionLog) -> None:
    fill(log, 20)
    one = len(stamped(0, 2))
    for _ in range(2):
        assert len(log.read(Offset(0), 1)) == 1
        assert len(log.read(Offset(0), 2 * one)) <= 2
        assert len(log.read(Offset(18), 100 * one)) == 1
        log.sync()


def test_a_batch_larger_than_a_segment_gets_one_of_its_own(disk: Disk, log: PartitionLog) -> None:
    log.append([stamped(0), stamped(1, size=5000), stamped(2)])
    log.sync()
    assert len(log.manifest().segments) == 3
    assert spans(reopened(disk, log)) == [(0, 1), (1, 2), (2, 3)]


def test_offsets_outside_the_log_are_refused_with_its_range(log: PartitionLog) -> None:
    fill(log, 10)
    log.trim(Offset(4))
    for offset in (3, 11, -1):
        with pytest.raises(OffsetOutOfRange) as refused:
            log.read(Offset(offset), 100)
        assert (refused.value.start, refused.value.end) == (4, 10)
    assert log.read(Offset(10), 100) == []


def test_a_gap_must_be_declared(log: PartitionLog) -> None:
    with pytest.raises(InvalidArgument, match="skip_to"):
        log.append([stamped(5)])
    log.skip_to(Offset(5))
    log.append([stamped(5)])
    assert spans(log) == [(5, 6)]


def test_a_declared_gap_is_remembered_and_passed_over(disk: Disk, log: PartitionLog) -> None:
    fill(log, 8)
    log.skip_to(Offset(1000))
    log.append([stamped(1000)])
    log.skip_to(Offset(2000))
    log.sync()
    again = reopened(disk, log)
    assert again.end_offset == 2000
    assert not again.damage
    assert spans(again, start=8) == [(1000, 1001)]
    assert again.read(Offset(1500), 1000) == []
    assert [len(frame) for frame in again.read(Offset(1001), 1000, gaps=True)] == [56]


def test_gaps_may_fill_whole_segments(disk: Disk, log: PartitionLog) -> None:
    log.append([stamped(0)])
    for end in range(10, 1000, 10):
        log.skip_to(Offset(end))
    log.append([stamped(990)])
    log.sync()
    again = reopened(disk, log)
    assert spans(again) == [(0, 1), (990, 991)]
    assert again.time_at(Offset(500)) == 990_001


def test_a_skip_below_the_end_does_nothing(log: PartitionLog) -> None:
    fill(log, 8)
    log.skip_to(Offset(3))
    assert log.end_offset == 8


@pytest.mark.parametrize("junk", [b"", b"junk" * 50, stamped(0)[:-1], stamped(0) + stamped(1)])
def test_only_single_whole_batches_are_taken(log: PartitionLog, junk: bytes) -> None:
    with pytest.raises(InvalidArgument):
        log.append([junk])
    assert log.end_offset == 0


def test_memory_is_bounded(disk: Disk) -> None:
    config = SegmentConfig(unflushed_bytes_max=1000)
    log = PartitionLog.open(disk, FOLDER, config)
    fill(log, 6)
    with pytest.raises(LimitExceeded):
        fill(log, 60)
    end = log.end_offset
    log.sync()
    fill(log, end + 2)
    assert log.end_offset == end + 2


# --- after a crash --------------------------------------------------------------------------


def test_a_batch_that_comes_again_is_skipped(disk: Disk, log: PartitionLog) -> None:
    fill(log, 20)
    log.append([stamped(18, 2)])
    log.sync()
    again = reopened(disk, log)
    fill(again, 20)
    again.append([stamped(base, 2) for base in range(0, 30, 2)])
    assert spans(again) == [(base, base + 2) for base in range(0, 30, 2)]


@pytest.mark.parametrize("is_written", [False, True])
def test_a_different_batch_under_the_same_offset_is_divergence(
    disk: Disk, log: PartitionLog, is_written: bool
) -> None:
    fill(log, 20)
    if is_written:
        log.sync()
        log.close()
        log = PartitionLog.open(disk, FOLDER, SMALL, durable_until=Offset(0))
    with pytest.raises(CorruptData, match="diverged"):
        log.append([stamped(18, 2, term=9)])


def test_a_batch_that_reaches_beyond_what_is_stored_is_divergence(log: PartitionLog) -> None:
    fill(log, 4)
    with pytest.raises(CorruptData, match="diverged"):
        log.append([stamped(2, 3)])


# --- flushing -------------------------------------------------------------------------------


def test_a_flush_in_three_steps_lets_appends_go_on_beside_it(log: PartitionLog) -> None:
    fill(log, 20)
    flush = log.take()
    assert flush is not None
    assert log.take() is None
    fill(log, 30)
    log.write(flush)
    assert log.synced_offset == 0
    fill(log, 40)
    assert spans(log)[-1] == (38, 40)
    log.flushed(flush)
    assert (log.synced_offset, log.end_offset) == (20, 40)
    assert spans(log) == [(base, base + 2) for base in range(0, 40, 2)]
    log.sync()
    assert log.synced_offset == 40


def test_a_flush_without_sync_writes_and_the_next_one_syncs(disk: Disk) -> None:
    log = PartitionLog.open(disk, FOLDER)
    fill(log, 20)
    flush = log.take(sync=False)
    assert flush is not None
    log.write(flush)
    log.flushed(flush)
    assert (log.unflushed_bytes, log.synced_offset) == (0, 0)
    assert log.take(sync=False) is None
    log.sync()
    assert log.synced_offset == 20


def test_a_flush_that_failed_is_taken_again_whole(log: PartitionLog) -> None:
    fill(log, 20)
    flush = log.take()
    assert flush is not None
    log.failed(flush)
    assert log.unflushed_bytes > 0
    log.sync()
    assert log.synced_offset == 20


def test_after_a_clean_stop_everything_is_there(disk: Disk, log: PartitionLog) -> None:
    fill(log, 100)
    log.sync()
    again = reopened(disk, log)
    assert (again.end_offset, again.damage, again.cut_from) == (100, (), None)
    assert contents(again) == [stamped(base, 2) for base in range(0, 100, 2)]
    fill(again, 140)
    again.sync()
    assert spans(reopened(disk, again))[-1] == (138, 140)


def test_opening_reads_only_the_active_segment_from_end_to_end(
    disk: Disk, log: PartitionLog
) -> None:
    fill(log, 100)
    log.sync()
    again = reopened(disk, log)
    assert again.scanned_bytes == log.manifest().segments[-1].bytes


# --- time -----------------------------------------------------------------------------------


def test_offsets_are_found_by_append_time(disk: Disk, log: PartitionLog) -> None:
    fill(log, 60)
    log.sync()
    fill(log, 80)
    for base in range(0, 80, 2):
        time = 1000 * base + 1
        assert log.offset_at(Micros(time)) == base
        assert log.offset_at(Micros(time - 1)) == base
        assert log.offset_at(Micros(time + 1)) == base + 2
        assert log.time_at(Offset(base)) == log.time_at(Offset(base + 1)) == time
    assert log.offset_at(Micros(10**9)) == 80
    log.trim(Offset(31))
    assert log.offset_at(Micros(0)) == 31


def test_a_segment_ends_when_it_is_old_enough(disk: Disk) -> None:
    log = PartitionLog.open(disk, FOLDER, SegmentConfig(segment_age_micros=1000))
    log.append([stamped(0, time=1), stamped(1, time=1001), stamped(2, time=1002)])
    assert [info.base_offset for info in log.manifest().segments] == [0, 2]


# --- retention ------------------------------------------------------------------------------


def test_a_trim_counts_at_once_and_deletes_whole_segments_later(
    disk: Disk, log: PartitionLog
) -> None:
    fill(log, 100)
    log.sync()
    files = len(disk.list(FOLDER))
    log.trim(Offset(51))
    assert log.start_offset == 51
    assert len(disk.list(FOLDER)) == files
    assert log.collect() > 0
    assert log.collect() == 0
    assert len(disk.list(FOLDER)) < files
    assert spans(log)[0] == (50, 52)
    log.trim(Offset(20))
    assert log.start_offset == 51


def test_a_restart_from_an_older_state_does_not_take_deleted_segments_for_lost(
    disk: Disk, log: PartitionLog
) -> None:
    fill(log, 100)
    log.sync()
    log.trim(Offset(90))
    log.collect()
    log.close()
    again = PartitionLog.open(disk, FOLDER, SMALL, start_offset=Offset(0), durable_until=Offset(40))
    assert not again.damage
    assert again.end_offset == 100
    assert spans(again, start=90)[-1] == (98, 100)


def test_a_log_trimmed_to_its_end_gives_all_its_room_back(disk: Disk, log: PartitionLog) -> None:
    fill(log, 50)
    log.sync()
    log.trim(Offset(50))
    log.collect()
    assert disk.list(FOLDER) == ["start"]
    again = reopened(disk, log)
    assert (again.start_offset, again.end_offset, again.damage) == (50, 50, ())
    fill(again, 54)
    again.sync()
    assert spans(reopened(disk, again)) == [(50, 52), (52, 54)]


def test_what_is_not_synced_is_not_deleted(disk: Disk, log: PartitionLog) -> None:
    fill(log, 50)
    log.trim(Offset(50))
    assert log.collect() == 0
    log.sync()
    assert log.collect() > 0


def test_a_trim_behind_the_end_is_refused(log: PartitionLog) -> None:
    fill(log, 4)
    with pytest.raises(InvalidArgument):
        log.trim(Offset(5))


# --- copies ---------------------------------------------------------------------------------


def copy(source: PartitionLog, importing: SegmentImport) -> int:
    """Carry out an import; return how many bytes came from the source."""
    copied = 0
    while (wanted := importing.missing()) is not None:
        data = source.read_segment(*wanted)
        importing.write(wanted.segment, wanted.position, data)
        copied += len(data)
    return copied


def test_a_peer_that_copies_a_manifest_has_the_same_log(disk: Disk, log: PartitionLog) -> None:
    fill(log, 60)
    log.skip_to(Offset(65))
    log.append([stamped(65)])
    manifest = log.manifest()
    log.sync()
    fill(log, 90)
    log.sync()
    importing = SegmentImport.begin(disk, "peer", Manifest.decode(manifest.encode()))
    assert copy(log, importing) == manifest.total_bytes
    importing.finish()
    peer = PartitionLog.open(disk, "peer", SMALL, durable_until=manifest.end_offset)
    assert contents(peer) == contents(log)[: len(contents(peer))]
    assert (peer.end_offset, peer.damage, peer.manifest()) == (66, (), manifest)


def test_segments_that_agree_are_not_copied_again(disk: Disk, log: PartitionLog) -> None:
    fill(log, 60)
    log.sync()
    first = SegmentImport.begin(disk, "peer", log.manifest())
    copy(log, first)
    first.finish()
    fill(log, 100)
    log.sync()
    manifest = log.manifest()
    second = SegmentImport.begin(disk, "peer", manifest)
    assert 0 < copy(log, second) < manifest.total_bytes
    second.finish()
    peer = PartitionLog.open(disk, "peer", SMALL, durable_until=manifest.end_offset)
    assert contents(peer) == contents(log)


def test_an_import_can_be_given_up(disk: Disk, log: PartitionLog) -> None:
    fill(log, 60)
    log.sync()
    peer = PartitionLog.open(disk, "peer", SMALL)
    peer.append([stamped(0, 2)])
    peer.sync()
    importing = peer.begin_import(log.manifest(), chunk_bytes=100)
    wanted = importing.missing()
    assert wanted is not None
    importing.write(wanted.segment, wanted.position, log.read_segment(*wanted))
    with pytest.raises(InvalidArgument, match="missing"):
        importing.finish()
    importing.discard()
    assert SegmentImport.resume(disk, "peer") is None
    assert spans(peer) == [(0, 2)]


def test_bytes_that_are_not_what_the_manifest_says_are_refused(
    disk: Disk, log: PartitionLog
) -> None:
    fill(log, 4)
    log.sync()
    importing = SegmentImport.begin(disk, "peer", log.manifest())
    wanted = importing.missing()
    assert wanted is not None
    data = bytearray(log.read_segment(*wanted))
    data[-1] ^= 1
    with pytest.raises(CorruptData):
        importing.write(wanted.segment, wanted.position, data)
    assert importing.missing() == wanted
    with pytest.raises(InvalidArgument):
        importing.write(wanted.segment, wanted.position + 1, b"x")
    assert copy(log, importing) == len(data)


def test_a_segment_that_is_gone_is_not_found(log: PartitionLog) -> None:
    fill(log, 60)
    log.sync()
    log.trim(Offset(60))
    log.collect()
    with pytest.raises(NotFound):
        log.read_segment(Offset(0), 0, 100)


def test_what_is_not_yet_written_cannot_be_copied_yet(log: PartitionLog) -> None:
    fill(log, 4)
    assert log.read_segment(Offset(0), 0, 100) == b""
    log.sync()
    assert len(log.read_segment(Offset(0), 0, 1 << 20)) == log.manifest().total_bytes


# --- a full disk ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "simulated"])
def test_a_full_disk_loses_nothing_and_the_flush_succeeds_when_there_is_room(kind: str) -> None:
    disk = MemoryDisk() if kind == "memory" else SimulatedDisk(random.Random(3))
    log = PartitionLog.open(disk, FOLDER, SMALL)
    for capacity in range(0, 6000, 250):
        disk.capacity_bytes = capacity
        fill(log, log.end_offset + 4)
        try:
            log.sync()
        except DiskFull:
            assert log.synced_offset < log.end_offset
        assert spans(log) == [(base, base + 2) for base in range(0, log.end_offset, 2)]
    disk.capacity_bytes = 1 << 30
    log.sync()
    assert log.synced_offset == log.end_offset
    assert spans(reopened(disk, log)) == spans(log)
