"""A partition that is opened again takes the entries of its log a second time."""

from __future__ import annotations

import random

from angarium.batch import Batch, encode
from angarium.ids import Epoch, Index, Micros, RaftGroupId, Sequence, Term
from angarium.log.segments import SegmentConfig
from angarium.machine import Command, Commit, Stage
from angarium.machine.commands import encode as encoded
from angarium.raft.messages import Entry
from angarium.replica.config import ReplicaConfig
from angarium.replica.outbox import Outbox
from angarium.replica.partition import Partition
from angarium.replica.partition_snapshot import empty_partition
from angarium.replica.work import do_now
from angarium.testing.disk import SimulatedDisk


def opened(disk: SimulatedDisk, config: ReplicaConfig | None = None) -> Partition:
    return Partition(
        disk,
        "groups/1",
        group=RaftGroupId(1),
        saved=empty_partition(),
        config=config or ReplicaConfig(),
        segments=SegmentConfig(),
        outbox=Outbox(),
    )


def entry(index: int, command: Command) -> Entry:
    return Entry(Term(1), Index(index), encoded(command))


def values(partition: Partition) -> list[bytes | None]:
    found = []
    offset = partition.log.start_offset
    while offset < partition.log.end_offset:
        for view in partition.log.read(offset, 1 << 20):
            batch = Batch.parse(view)
            found += [record.value for record in batch]
            offset = batch.next_offset
    return found


def test_a_commit_of_which_the_segments_hold_only_a_part_is_completed_when_it_comes_again() -> None:
    batches = b"".join(bytes(encode([value])) for value in (b"one", b"two", b"three"))
    stage = Stage(
        name="t",
        epoch=Epoch(0),
        sequence=Sequence(1),
        stage="a",
        part=0,
        batches=batches,
        time=Micros(1),
    )
    commit = Commit(name="t", epoch=Epoch(0), sequence=Sequence(1), stages=("a",), time=Micros(2))
    disk = SimulatedDisk(random.Random(1))
    partition = opened(disk)
    partition.apply(entry(2, stage))
    partition.apply(entry(3, commit))
    do_now(partition.files.maintain())

    # The crash leaves the first of three batches in the segment, which was not synced.
    (segment,) = [name for name in disk.names() if name.endswith(".seg")]
    first = len(partition.log.read(partition.log.start_offset, 1)[0])
    disk.crash()
    disk.truncate(segment, first)

    partition = opened(disk)
    assert partition.log.next_offset == 1
    assert values(partition) == [], "half of a commit is not to be seen"
    partition.apply(entry(2, stage))
    assert values(partition) == []
    partition.apply(entry(3, commit))
    assert values(partition) == [b"one", b"two", b"three"]
