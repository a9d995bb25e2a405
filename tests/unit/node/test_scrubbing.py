"""Rot in segments that nobody reads is found by the node itself."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from angarium.batch import encode, stamp
from angarium.errors import StorageError
from angarium.ids import Micros, Offset, RaftGroupId, Term
from angarium.log.segments import PartitionLog, SegmentConfig
from angarium.log.segments.reader import SegmentReader
from angarium.node.scrubbing import Scrubbing
from angarium.testing.disk import SimulatedDisk

if TYPE_CHECKING:
    from angarium.replica.partition_replica import PartitionReplica

STEPS_MAX = 1_000


def written(disk: SimulatedDisk, folder: str) -> PartitionLog:
    """Return a log of ten sealed segments and one that grows."""
    log = PartitionLog.open(disk, folder, SegmentConfig(segment_bytes=256))
    for number in range(11):
        batch = encode([b"x" * 100])
        stamp(batch, base_offset=Offset(number), term=Term(1), append_time=Micros(number + 1))
        log.append([batch])
        flush = log.take(sync=True)
        assert flush is not None
        log.write(flush)
        log.flushed(flush)
    return log


def replica_of(log: PartitionLog) -> PartitionReplica:
    return cast("PartitionReplica", SimpleNamespace(partition=SimpleNamespace(log=log)))


def a_round(scrubbing: Scrubbing, replicas: dict[RaftGroupId, PartitionReplica]) -> int:
    """Verify until a round is over; return how many steps it took."""
    for steps in range(STEPS_MAX):
        if not scrubbing.step(replicas):
            return steps
    pytest.fail("the round has no end")


def test_a_flipped_bit_is_found_in_whichever_partition_it_is() -> None:
    disk = SimulatedDisk(random.Random(1))
    logs = {RaftGroupId(number): written(disk, f"p{number}") for number in (1, 2)}
    replicas = {group: replica_of(log) for group, log in logs.items()}
    name = next(one for one in disk.names() if one.startswith("p2/") and one.endswith(".seg"))
    disk.flip_bit(name, 150, bit=3)
    scrubbing = Scrubbing(bytes_per_s=1)
    a_round(scrubbing, replicas)  # the first one only looks what there is
    a_round(scrubbing, replicas)
    assert not logs[RaftGroupId(1)].damage
    assert logs[RaftGroupId(2)].damage
    assert scrubbing.verified_bytes > 0


def test_a_log_that_was_replaced_is_not_verified_any_more() -> None:
    disk = SimulatedDisk(random.Random(1))
    old, new = written(disk, "old"), written(disk, "new")
    group = RaftGroupId(1)
    replicas = {group: replica_of(old)}
    scrubbing = Scrubbing(bytes_per_s=1)
    a_round(scrubbing, replicas)
    scrubbing.step(replicas)
    replicas[group] = replica_of(new)
    old.close()
    a_round(scrubbing, replicas)
    a_round(scrubbing, replicas)
    assert not new.damage


def test_a_disk_that_cannot_be_read_does_not_end_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    log = written(SimulatedDisk(random.Random(1)), "p")

    def refuse(*_: object) -> None:
        raise StorageError("input/output error")

    monkeypatch.setattr(SegmentReader, "verify", refuse)
    scrubbing = Scrubbing(bytes_per_s=1)
    replicas = {RaftGroupId(1): replica_of(log)}
    a_round(scrubbing, replicas)
    assert a_round(scrubbing, replicas) == 1
