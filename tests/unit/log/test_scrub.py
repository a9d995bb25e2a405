"""The scrub: bounded steps, every flip found, and it goes on where an earlier one stopped."""

from __future__ import annotations

import random

import pytest
from tests.unit.log.stamped_batches import stamped

from angarium.ids import Offset
from angarium.log.scrub import Scrub
from angarium.log.segments import PartitionLog, SegmentConfig
from angarium.testing.disk import SimulatedDisk

CONFIG = SegmentConfig(segment_bytes=1000, index_bytes=300, preallocate_bytes=256)
SLICE = 130


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk(random.Random(2))


@pytest.fixture
def log(disk: SimulatedDisk) -> PartitionLog:
    log = PartitionLog.open(disk, "p", CONFIG)
    while log.end_offset < 40:
        log.append([stamped(log.end_offset, 2)])
    log.sync()
    return log


def sealed_bytes(log: PartitionLog) -> int:
    return sum(info.bytes for info in log.manifest().segments[:-1])


def test_a_round_verifies_every_byte_of_the_sealed_segments(log: PartitionLog) -> None:
    scrub = Scrub(log, slice_bytes=SLICE)
    assert not any(scrub)
    assert scrub.verified_bytes == sealed_bytes(log)


def test_a_step_verifies_no_more_than_its_slice(log: PartitionLog) -> None:
    scrub = Scrub(log, slice_bytes=SLICE)
    before = 0
    while not scrub.is_done:
        scrub.step()
        assert scrub.verified_bytes - before <= SLICE
        before = scrub.verified_bytes


def test_every_flip_in_a_sealed_segment_is_found(log: PartitionLog, disk: SimulatedDisk) -> None:
    for info in log.manifest().segments[:-1]:
        for position in range(0, info.bytes, 11):
            name = f"p/{info.base_offset:020d}.seg"
            disk.flip_bit(name, position, bit=position % 8)
            found = [damage for damage in Scrub(log, slice_bytes=SLICE) if damage]
            assert len(found) == 1, position
            assert found[0].segment == info.base_offset
            assert found[0].from_offset < found[0].to_offset
            disk.flip_bit(name, position, bit=position % 8)


def test_a_round_goes_on_behind_the_damage(log: PartitionLog, disk: SimulatedDisk) -> None:
    infos = log.manifest().segments
    for info in infos[:-1]:
        disk.flip_bit(f"p/{info.base_offset:020d}.seg", info.bytes - 1)
        disk.flip_bit(f"p/{info.base_offset:020d}.seg", 0)
    found = [damage for damage in Scrub(log, slice_bytes=SLICE) if damage]
    assert len(found) == 2 * (len(infos) - 1)
    assert log.damage == tuple(found)


def test_a_later_scrub_goes_on_where_an_earlier_one_stopped(log: PartitionLog) -> None:
    first = Scrub(log, slice_bytes=SLICE)
    for _ in range(5):
        first.step()
    second = Scrub(log, slice_bytes=SLICE, position=first.position)
    assert not any(second)
    assert first.verified_bytes + second.verified_bytes == sealed_bytes(log)


def test_segments_deleted_on_the_way_are_passed_over(log: PartitionLog) -> None:
    scrub = Scrub(log, slice_bytes=SLICE)
    scrub.step()
    log.trim(Offset(30))
    log.collect()
    assert not any(scrub)


def test_an_empty_log_is_done_at_once(disk: SimulatedDisk) -> None:
    scrub = Scrub(PartitionLog.open(disk, "empty", CONFIG))
    assert scrub.step() is None
    assert scrub.is_done
