"""Repair: good frames from a peer go where this replica's own are damaged."""

from __future__ import annotations

import random

import pytest
from tests.unit.log.stamped_batches import contents, stamped

from angarium.errors import CorruptData, InvalidArgument
from angarium.ids import Buffer, Offset
from angarium.log.scrub import Scrub
from angarium.log.segments import PartitionLog, SegmentConfig, SegmentDamage
from angarium.log.segments.frames import frame_at
from angarium.log.segments.names import FOOTER, file_name
from angarium.testing.disk import SimulatedDisk

CONFIG = SegmentConfig(segment_bytes=1500, index_bytes=300, preallocate_bytes=256)


def filled(folder: str, disk: SimulatedDisk) -> PartitionLog:
    log = PartitionLog.open(disk, folder, CONFIG)
    while log.end_offset < 41:
        log.append([stamped(log.end_offset, 2)])
        if log.end_offset == 10:
            log.skip_to(Offset(13))
    log.sync()
    return log


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk(random.Random(2))


@pytest.fixture
def peer(disk: SimulatedDisk) -> PartitionLog:
    return filled("peer", disk)


def frames_of(peer: PartitionLog, damage: SegmentDamage, *, reads_max: int = 100) -> list[Buffer]:
    """Ask a peer for what is damaged, in as many reads as that takes, or a few of them."""
    frames: list[Buffer] = []
    offset = damage.from_offset
    for _ in range(reads_max):
        if offset >= damage.to_offset:
            break
        found = peer.read(offset, 400, gaps=True)
        frames += found
        head = frame_at(found[-1], 0)
        assert head is not None
        offset = head.next_offset
    return frames


def mend(log: PartitionLog, peer: PartitionLog, *, reads_max: int = 100) -> int:
    """Repair everything that is known to be damaged; return how many calls that took."""
    calls = 0
    while log.damage:
        damage = log.damage[0]
        log.repair(damage, frames_of(peer, damage, reads_max=reads_max))
        calls += 1
        assert calls < 100
    return calls


@pytest.mark.parametrize("position", range(0, 1400, 50))
def test_a_flipped_bit_in_a_sealed_segment_is_mended_in_place(
    disk: SimulatedDisk, peer: PartitionLog, position: int
) -> None:
    log = filled("p", disk)
    before = log.manifest()
    disk.flip_bit("p/00000000000000000000.seg", position)
    assert any(Scrub(log))
    assert mend(log, peer) == 1
    assert not any(Scrub(log))
    assert contents(log) == contents(peer)
    assert log.manifest() == before
    disk.power_loss()
    again = PartitionLog.open(disk, "p", CONFIG, durable_until=Offset(41))
    assert contents(again) == contents(PartitionLog.open(disk, "peer", CONFIG))


def test_several_damages_in_one_segment_are_mended_one_by_one(
    disk: SimulatedDisk, peer: PartitionLog
) -> None:
    log = filled("p", disk)
    for position in (100, 700, 1300):
        disk.flip_bit("p/00000000000000000000.seg", position)
    assert len([damage for damage in Scrub(log) if damage]) == 3
    assert mend(log, peer) == 3
    assert contents(log) == contents(peer)


def test_a_segment_that_breaks_after_damage_was_found_in_it_is_mended(
    disk: SimulatedDisk, peer: PartitionLog
) -> None:
    log = filled("p", disk)
    disk.flip_bit("p/00000000000000000000.seg", 700)
    assert any(Scrub(log))
    disk.flip_bit("p/00000000000000000000.seg", 100)
    disk.remove(file_name("p", Offset(0), FOOTER))
    next(iter(log.segments)).index = None  # as if many others had been read since
    with pytest.raises(CorruptData):
        log.read(Offset(0), 400)
    assert [one.from_offset for one in log.damage] == [0]
    mend(log, peer)
    assert contents(log) == contents(peer)


def test_a_lost_file_is_copied_frame_by_frame(disk: SimulatedDisk, peer: PartitionLog) -> None:
    log = filled("p", disk)
    log.close()
    disk.remove("p/00000000000000000000.seg")
    log = PartitionLog.open(disk, "p", CONFIG, durable_until=Offset(41))
    assert [one.from_offset for one in log.damage] == [0]
    assert mend(log, peer, reads_max=1) > 2
    assert contents(log) == contents(peer)
    log.close()
    again = PartitionLog.open(disk, "p", CONFIG, durable_until=Offset(41))
    assert (again.damage, contents(again)) == ((), contents(peer))


def test_a_file_lost_under_a_running_log_is_noticed_and_mended(
    disk: SimulatedDisk, peer: PartitionLog
) -> None:
    log = filled("p", disk)
    disk.remove("p/00000000000000000000.seg")
    with pytest.raises(CorruptData):
        log.read(Offset(0), 100)
    mend(log, peer)
    assert contents(log) == contents(peer)


def test_an_active_segment_that_lost_its_tail_is_completed(
    disk: SimulatedDisk, peer: PartitionLog
) -> None:
    log = filled("p", disk)
    last = log.manifest().segments[-1]
    log.close()
    disk.truncate(f"p/{last.base_offset:020d}.seg", last.bytes // 2)
    log = PartitionLog.open(disk, "p", CONFIG, durable_until=Offset(41))
    log.append([stamped(41)])
    log.sync()
    mend(log, peer)
    log.close()
    again = PartitionLog.open(disk, "p", CONFIG, durable_until=Offset(42))
    assert (again.damage, contents(again)) == ((), [*contents(peer), stamped(41)])


def test_damage_in_the_segment_that_still_grows_is_mended_after_sealing_it(
    disk: SimulatedDisk, peer: PartitionLog
) -> None:
    log = filled("p", disk)
    last = log.manifest().segments[-1]
    disk.flip_bit(f"p/{last.base_offset:020d}.seg", last.bytes - 60)
    with pytest.raises(CorruptData):
        contents(log)
    for one in (log, peer):
        one.append([stamped(41), stamped(42)])
    mend(log, peer)
    assert contents(log) == contents(peer)


def test_a_segment_cut_short_under_a_running_log_is_mended(
    disk: SimulatedDisk, peer: PartitionLog
) -> None:
    log = filled("p", disk)
    disk.truncate("p/00000000000000000000.seg", 800)
    assert any(Scrub(log))
    mend(log, peer)
    assert contents(log) == contents(peer)


def test_frames_that_are_not_what_was_there_are_refused(
    disk: SimulatedDisk, peer: PartitionLog
) -> None:
    log = filled("p", disk)
    disk.flip_bit("p/00000000000000000000.seg", 100)
    with pytest.raises(CorruptData):
        log.read(Offset(0), 100)
    (damage,) = log.damage
    good: list[Buffer] = list(peer.read(Offset(0), 400, gaps=True))
    forged: list[Buffer] = [stamped(base, 2, term=7) for base in (0, 2)]
    damaged = bytearray(good[0])
    damaged[-1] ^= 1
    assert not log.repair(damage, good[:1])
    attempts: tuple[tuple[list[Buffer], type[Exception]], ...] = (
        (forged, CorruptData),
        (good[1:], InvalidArgument),
        ([damaged, *good[1:]], InvalidArgument),
    )
    for frames, error in attempts:
        with pytest.raises(error):
            log.repair(damage, frames)
        assert log.damage == (damage,)
    log.repair(damage, good)
    assert contents(log) == contents(peer)
