"""Mending segments that were compacted, with frames of a peer whose segments are cut otherwise."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from angarium.batch import Batch, encode, stamp
from angarium.errors import CorruptData
from angarium.ids import Micros, Offset, RaftGroupId, ReplicaId, Term
from angarium.log.segments import PartitionLog, SegmentConfig
from angarium.log.segments.compacted_mark import Pass
from angarium.log.segments.names import FOOTER, SEGMENT, file_name
from angarium.replica.mending import Mending
from angarium.replica.peers import FramesReply
from angarium.replica.work import do_now
from angarium.testing.disk import SimulatedDisk

if TYPE_CHECKING:
    from angarium.log.segments import SegmentDamage

FOLDER = "p"
BATCHES = 120


def filled(segment_bytes: int) -> tuple[SimulatedDisk, PartitionLog]:
    disk = SimulatedDisk(random.Random(1))
    config = SegmentConfig(segment_bytes=segment_bytes, index_bytes=300, preallocate_bytes=512)
    log = PartitionLog.open(disk, FOLDER, config)
    rng = random.Random(5)
    for number in range(BATCHES):
        base = log.end_offset
        count = rng.randint(1, 3)
        keys = [b"key %d" % rng.randrange(40) for _ in range(count)]
        batch = encode([b"%d" % number] * count, keys=keys)
        stamp(batch, base_offset=base, term=Term(1), append_time=Micros(base + 1))
        log.append([batch])
    return disk, log


def compact(log: PartitionLog, until: int) -> None:
    goal = Pass(Offset(until))
    log.close_segment(goal.until)
    log.sync()
    while log.compactor.is_behind(goal):
        do_now(log.compactor.turn(goal, limit=log.synced_offset))


def contents(log: PartitionLog) -> list[bytes]:
    found: list[bytes] = []
    offset = log.start_offset
    while batches := log.read(offset, 1 << 20):
        found += map(bytes, batches)
        offset = Batch.trusted(batches[-1]).next_offset
    return found


def mend(log: PartitionLog, peer: PartitionLog, damage: SegmentDamage) -> bool:
    """Do as a replica does: ask for frames until they reach the end of the damage, then mend."""
    mending = Mending(damage)
    for _ in range(1_000):
        asked = mending.request(
            group=RaftGroupId(1), replica=ReplicaId(1), peers=[ReplicaId(2)], bytes_max=200
        )
        frames = peer.read(asked.offset, asked.bytes_max, gaps=True)
        reply = FramesReply(
            RaftGroupId(1),
            ReplicaId(2),
            ReplicaId(1),
            asked.offset,
            tuple(map(bytes, frames)),
            stage=peer.compactor.stage,
        )
        assert mending.receive(reply)
        if mending.is_complete:
            return log.repair(damage, mending.frames, stage=mending.stage)
    raise AssertionError("the frames do not reach the end of the damage")


@pytest.mark.parametrize("sizes", [(1_500, 1_500), (1_500, 4_000), (4_000, 1_500)])
def test_a_flipped_bit_in_a_compacted_segment_is_mended(sizes: tuple[int, int]) -> None:
    (disk, log), (_, peer) = filled(sizes[0]), filled(sizes[1])
    end = log.end_offset
    for one in (log, peer):
        compact(one, end)
    good = contents(log)
    assert good == contents(peer)
    for segment in list(log.segments):
        if segment.bytes < 100:
            continue
        for position in range(0, segment.bytes, 97):
            disk.flip_bit(file_name(FOLDER, segment.base_offset, SEGMENT), position)
            with suppress(CorruptData):
                log.verify_segment(segment.base_offset)
            (damage,) = log.damage
            assert mend(log, peer, damage)
            assert not log.damage
    assert contents(log) == good


def lose_a_segment(disk: SimulatedDisk, log: PartitionLog) -> PartitionLog:
    end = log.synced_offset
    base = next(iter(log.segments)).base_offset
    log.close()
    for suffix in (SEGMENT, FOOTER):
        disk.remove(file_name(FOLDER, base, suffix))
    config = SegmentConfig(segment_bytes=1_500, index_bytes=300, preallocate_bytes=512)
    return PartitionLog.open(disk, FOLDER, config, durable_until=end)


def test_a_lost_segment_is_mended_by_a_peer_at_the_same_stage() -> None:
    (disk, log), (_, peer) = filled(1_500), filled(4_000)
    for one in (log, peer):
        compact(one, log.end_offset)
    good = contents(log)
    log = lose_a_segment(disk, log)
    while log.damage:
        mend(log, peer, log.damage[0])
    assert contents(log) == good


@pytest.mark.parametrize("until", [0, 60])
def test_a_lost_segment_is_not_mended_by_a_peer_at_another_stage(until: int) -> None:
    (disk, log), (_, peer) = filled(1_500), filled(4_000)
    compact(log, int(log.end_offset))
    if until:
        boundary = next(
            Batch.trusted(data).next_offset
            for data in contents(peer)
            if Batch.trusted(data).next_offset >= until
        )
        compact(peer, boundary)
    log = lose_a_segment(disk, log)
    with pytest.raises(CorruptData, match="compacted"):
        mend(log, peer, log.damage[0])
    assert log.damage


def with_neighbouring_gaps(segment_bytes: int) -> tuple[SimulatedDisk, PartitionLog]:
    """Return a log with two gaps side by side, and a record behind them that is superseded."""
    disk = SimulatedDisk(random.Random(1))
    config = SegmentConfig(segment_bytes=segment_bytes, index_bytes=300, preallocate_bytes=512)
    log = PartitionLog.open(disk, FOLDER, config)
    for number in range(60):
        batch = encode([b"%d" % number], keys=[b"key %d" % (number if number != 30 else 20)])
        end = log.end_offset
        stamp(batch, base_offset=end, term=Term(1), append_time=Micros(end + 1))
        log.append([batch])
        if number == 10:
            log.skip_to(Offset(13))
            log.skip_to(Offset(15))
    compact(log, 50)
    return disk, log


def test_gaps_that_only_the_peer_has_made_one_do_not_fit() -> None:
    """The one rewrote the segment with the gaps; in the other nothing of it was superseded."""
    (disk, log), (_, peer) = with_neighbouring_gaps(1_500), with_neighbouring_gaps(4_000)
    assert contents(log) == contents(peer)
    segment = log.segments.at(Offset(11))
    disk.flip_bit(file_name(FOLDER, segment.base_offset, SEGMENT), 3 * 180)
    log.verify_segment(segment.base_offset)
    (damage,) = log.damage
    assert damage.from_offset <= 11 < 15 <= damage.to_offset
    with pytest.raises(CorruptData, match="not those that were there"):
        mend(log, peer, damage)
