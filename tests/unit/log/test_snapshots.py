"""Snapshots: whole or not there, and a damaged one is an error, never an absence."""

from __future__ import annotations

import random

import pytest
from tests.unit.log.cutting_disk import Cut, CuttingDisk
from tests.unit.log.disk_images import cut, disk_with, flipped, image_of

from angarium.errors import CorruptData, DiskFull
from angarium.ids import Index, RaftGroupId, ReplicaId, Term
from angarium.log.memory_disk import MemoryDisk
from angarium.log.snapshots import SLICE_BYTES, SnapshotStore
from angarium.raft.messages import ConfState, Snapshot
from angarium.testing.disk import SimulatedDisk

GROUP = RaftGroupId(7)
FOLDER = "snapshots"


def snapshot(index: int, data: bytes = b"state") -> Snapshot:
    members = ConfState(voters=(ReplicaId(1), ReplicaId(2)), learners=(ReplicaId(3),))
    return Snapshot(Index(index), Term(2), members, data)


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk(random.Random(4))


def test_a_group_without_a_snapshot_has_none(disk: SimulatedDisk) -> None:
    assert SnapshotStore(disk).load(GROUP) is None


@pytest.mark.parametrize("size", [0, 1, SLICE_BYTES, 2 * SLICE_BYTES + 5])
def test_what_was_saved_is_loaded(disk: SimulatedDisk, size: int) -> None:
    SnapshotStore(disk).save(GROUP, snapshot(9, b"x" * size))
    disk.power_loss()
    assert SnapshotStore(disk).load(GROUP) == snapshot(9, b"x" * size)


def test_the_newest_counts_and_the_ones_before_are_removed(disk: SimulatedDisk) -> None:
    store = SnapshotStore(disk)
    for index in (3, 12, 100):
        store.save(GROUP, snapshot(index))
    store.save(RaftGroupId(8), snapshot(5))
    assert store.load(GROUP) == snapshot(100)
    assert store.list() == {GROUP: 100, RaftGroupId(8): 5}
    assert len(disk.list(FOLDER)) == 2


def test_groups_do_not_mix(disk: SimulatedDisk) -> None:
    store = SnapshotStore(disk)
    store.save(RaftGroupId(1), snapshot(5, b"one"))
    store.save(RaftGroupId(11), snapshot(6, b"eleven"))
    store.remove(RaftGroupId(1))
    assert store.load(RaftGroupId(1)) is None
    assert store.load(RaftGroupId(11)) == snapshot(6, b"eleven")


def test_a_large_state_is_written_in_slices(disk: SimulatedDisk) -> None:
    store = SnapshotStore(disk)
    writer = store.begin(GROUP, snapshot(9, bytes(3 * SLICE_BYTES)))
    steps = 1
    while not writer.step():
        assert store.load(GROUP) is None
        steps += 1
    assert steps == 4
    assert store.load(GROUP) == snapshot(9, bytes(3 * SLICE_BYTES))


def test_an_abandoned_writer_leaves_the_snapshot_before(disk: SimulatedDisk) -> None:
    store = SnapshotStore(disk)
    store.save(GROUP, snapshot(3))
    writer = store.begin(GROUP, snapshot(9, bytes(2 * SLICE_BYTES)))
    writer.step()
    writer.abandon()
    assert store.load(GROUP) == snapshot(3)
    assert len(disk.list(FOLDER)) == 1


def test_a_cut_before_any_change_leaves_the_old_or_the_new() -> None:
    whole = CuttingDisk(SimulatedDisk(random.Random(0)))
    SnapshotStore(whole).save(GROUP, snapshot(3))
    for changes in range(whole.changes + 2):
        for seed in range(6):
            disk = SimulatedDisk(random.Random(seed))
            SnapshotStore(disk).save(GROUP, snapshot(3))
            store = SnapshotStore(CuttingDisk(disk, changes_max=changes))
            is_saved = True
            try:
                store.save(GROUP, snapshot(9, b"new"))
            except Cut:
                is_saved = False
            disk.power_loss()
            found = SnapshotStore(disk).load(GROUP)
            assert found in (
                (snapshot(9, b"new"),) if is_saved else (snapshot(3), snapshot(9, b"new"))
            )


def test_a_full_disk_leaves_the_snapshot_before() -> None:
    disk = MemoryDisk()
    store = SnapshotStore(disk)
    store.save(GROUP, snapshot(3))
    disk.capacity_bytes = 500
    with pytest.raises(DiskFull):
        store.save(GROUP, snapshot(9, bytes(1000)))
    assert store.load(GROUP) == snapshot(3)
    disk.capacity_bytes = 5000
    store.save(GROUP, snapshot(9, bytes(1000)))
    assert store.load(GROUP) == snapshot(9, bytes(1000))


def test_every_flip_and_every_cut_is_an_error_and_never_an_absence() -> None:
    disk = MemoryDisk()
    SnapshotStore(disk).save(GROUP, snapshot(9))
    image = image_of(disk, FOLDER)
    (name,) = image
    damaged = [flipped(image, name, at, bit=at % 8) for at in range(len(image[name]))]
    damaged += [cut(image, name, length) for length in range(len(image[name]))]
    damaged.append({name: image[name] + b"x"})
    for one in damaged:
        store = SnapshotStore(disk_with(one))
        with pytest.raises(CorruptData):
            store.load(GROUP)
        assert store.load_intact(GROUP) is None
        assert store.list() == {GROUP: 9}


def test_a_file_under_another_name_is_not_believed() -> None:
    disk = MemoryDisk()
    SnapshotStore(disk).save(GROUP, snapshot(9))
    (content,) = image_of(disk, FOLDER).values()
    store = SnapshotStore(disk_with({f"{FOLDER}/8-{9:020d}.snapshot": content}))
    with pytest.raises(CorruptData, match="belongs to"):
        store.load(RaftGroupId(8))


def test_an_older_intact_snapshot_is_found_when_asked_for() -> None:
    disk = MemoryDisk()
    SnapshotStore(disk).save(GROUP, snapshot(3))
    old = image_of(disk, FOLDER)
    SnapshotStore(disk).save(GROUP, snapshot(9))
    (name,) = new = image_of(disk, FOLDER)
    store = SnapshotStore(disk_with({**old, **flipped(new, name, 20, bit=1)}))
    with pytest.raises(CorruptData):
        store.load(GROUP)
    assert store.load_intact(GROUP) == snapshot(3)
