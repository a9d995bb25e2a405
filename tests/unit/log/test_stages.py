"""Stages: what a transaction has staged is kept in order, comes back after a crash, and goes."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from tests.unit.log.cutting_disk import Cut, CuttingDisk
from tests.unit.log.disk_images import cut, disk_with, flipped, image_of
from tests.unit.log.stamped_batches import unstamped

from angarium.errors import CorruptData, DiskFull
from angarium.log.memory_disk import MemoryDisk
from angarium.log.stages import StageStore
from angarium.testing.disk import SimulatedDisk

FOLDER = "stages"
A, B, C = (unstamped(word * 20) for word in (b"a", b"b", b"c"))


def batches(store: StageStore, stage: int) -> list[bytes]:
    return [bytes(batch) for batch in store.read(stage)]


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk(random.Random(4))


def test_batches_come_back_in_the_order_they_were_staged(disk: SimulatedDisk) -> None:
    store = StageStore(disk, FOLDER)
    store.append(1, 0, A + B)
    store.append(2, 0, C)
    store.sync()
    store.append(1, 1, C)
    assert batches(store, 1) == [A, B, C]
    assert batches(store, 2) == [C]
    store.sync()
    assert batches(store, 1) == [A, B, C]


def test_what_was_synced_survives_a_power_cut_and_the_rest_comes_again() -> None:
    for seed in range(30):
        disk = SimulatedDisk(random.Random(seed))
        store = StageStore(disk, FOLDER)
        store.append(1, 0, A)
        store.append(1, 1, B)
        store.sync()
        store.append(1, 2, C)
        store.append(2, 0, C)
        flush = store.take()
        assert flush is not None
        with suppress(Cut):  # the process ends somewhere in the middle of the write, or behind it
            cutting = CuttingDisk(disk, changes_max=seed % 6)
            StageStore(cutting, FOLDER).write(flush)
        disk.power_loss()
        again = StageStore(disk, FOLDER)
        assert not again.lacking({1: 2})
        assert 2 <= again.parts(1) <= 3
        again.append(1, 1, B)
        again.append(1, 2, C)
        again.append(2, 0, C)
        assert (batches(again, 1), batches(again, 2)) == ([A, B, C], [C])


def test_a_stage_decided_before_the_next_flush_never_touches_a_file(disk: SimulatedDisk) -> None:
    store = StageStore(disk, FOLDER)
    store.append(1, 0, A)
    store.drop(1)
    store.drop(99)
    assert (store.take(), store.waiting_bytes, store.take_dropped()) == (None, 0, [])
    assert disk.list(FOLDER) == []


def test_a_dropped_stage_is_gone(disk: SimulatedDisk) -> None:
    store = StageStore(disk, FOLDER)
    store.append(1, 0, A)
    store.sync()
    store.drop(1)
    store.remove(store.take_dropped())
    assert disk.list(FOLDER) == []
    with pytest.raises(CorruptData, match="not here"):
        store.read(1)


def test_a_stage_dropped_while_it_is_being_written_leaves_no_file(disk: SimulatedDisk) -> None:
    store = StageStore(disk, FOLDER)
    store.append(1, 0, A)
    flush = store.take()
    assert flush is not None
    assert store.take() is None
    store.drop(1)
    store.write(flush)
    store.flushed(flush)
    store.remove(store.take_dropped())
    assert disk.list(FOLDER) == []


def test_parts_of_a_stage_that_was_dropped_before_a_crash_cannot_be_read(
    disk: SimulatedDisk,
) -> None:
    store = StageStore(disk, FOLDER)
    store.append(1, 3, A)
    with pytest.raises(CorruptData):
        store.read(1)
    store.drop(1)


def test_a_restart_keeps_only_what_the_machine_knows(disk: SimulatedDisk) -> None:
    store = StageStore(disk, FOLDER)
    for stage in (1, 2, 3):
        store.append(stage, 0, A)
    store.sync()
    again = StageStore(disk, FOLDER)
    again.retain([2])
    assert [again.parts(stage) for stage in (1, 2, 3)] == [0, 1, 0]
    assert len(disk.list(FOLDER)) == 1


def test_a_peer_takes_over_all_stages(disk: SimulatedDisk) -> None:
    store = StageStore(disk, FOLDER)
    store.append(1, 0, A)
    store.append(1, 1, B + C)
    store.append(7, 0, C)
    peer = StageStore(disk, "peer")
    peer.append(5, 0, A)
    peer.sync()
    peer.replace(store.contents())
    disk.power_loss()
    again = StageStore(disk, "peer")
    assert again.contents() == {1: [A, B + C], 7: [C]}
    assert again.parts(5) == 0


def test_a_stage_is_read_part_by_part_wherever_its_parts_are(disk: SimulatedDisk) -> None:
    store = StageStore(disk, FOLDER)
    store.append(1, 0, A + B)
    store.append(1, 1, C)
    store.sync()
    store.append(1, 2, B)
    assert store.waiting_bytes == store.size(1) - len(A + B + C) - 2 * 40
    again = [store.part(1, part) for part in range(store.parts(1))]
    assert again == [A + B, C, B]
    for part in (-1, 3):
        with pytest.raises(CorruptData, match="not here"):
            store.part(1, part)


def test_a_full_disk_keeps_everything_in_memory_until_there_is_room() -> None:
    disk = MemoryDisk(capacity_bytes=10)
    store = StageStore(disk, FOLDER)
    store.append(1, 0, A)
    with pytest.raises(DiskFull):
        store.sync()
    assert batches(store, 1) == [A]
    disk.capacity_bytes = 1 << 20
    store.sync()
    assert batches(StageStore(disk, FOLDER), 1) == [A]


def test_every_flip_and_every_cut_is_noticed() -> None:
    disk = MemoryDisk()
    store = StageStore(disk, FOLDER)
    store.append(1, 0, A)
    store.append(1, 1, B)
    store.sync()
    image = image_of(disk, FOLDER)
    (name,) = image
    size = len(image[name])
    damaged = [flipped(image, name, position, bit=position % 8) for position in range(size)]
    damaged += [cut(image, name, length) for length in range(size)]
    for position, one in enumerate(damaged):
        again = StageStore(disk_with(one), FOLDER)
        if position % size not in range(36, 40):  # padding, which means nothing
            assert again.lacking({1: 2}) == [1] or position % size >= size - len(B) - 4
        # What is left is a prefix of what was there, and can be completed.
        kept = again.parts(1)
        again.append(1, 0, A)
        again.append(1, 1, B)
        assert batches(again, 1) == [A, B], (position, kept)


def test_damage_under_a_running_store_is_not_served(disk: SimulatedDisk) -> None:
    store = StageStore(disk, FOLDER)
    store.append(1, 0, A)
    store.append(1, 1, B)
    store.sync()
    disk.flip_bit(f"{FOLDER}/{disk.list(FOLDER)[0]}", 300)
    with pytest.raises(CorruptData, match="damaged"):
        store.read(1)
