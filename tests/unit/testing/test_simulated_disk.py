"""The simulated disk loses all it may and nothing else."""

from __future__ import annotations

import random

import pytest

from angarium.errors import StorageError, SyncFailed
from angarium.log.disk import SECTOR_BYTES, replace_file
from angarium.testing.disk import SimulatedDisk


def disk_with(content: bytes, seed: int, name: str = "a") -> SimulatedDisk:
    disk = SimulatedDisk(random.Random(seed))
    file = disk.create(name)
    file.pwrite([content], 0)
    file.datasync()
    disk.sync_directory("")
    return disk


def content_of(disk: SimulatedDisk, name: str = "a") -> bytes:
    file = disk.open(name)
    return file.pread(file.size(), 0)


def test_what_was_synced_survives_every_power_loss() -> None:
    for seed in range(50):
        disk = disk_with(b"kept" * 1000, seed)
        disk.power_loss()
        assert content_of(disk) == b"kept" * 1000


def test_unsynced_sectors_survive_one_by_one_whole_or_not_at_all() -> None:
    written = b"o" * 256 + b"n" * SECTOR_BYTES * 3 + b"o" * 256
    outcomes = set()
    for seed in range(100):
        disk = disk_with(b"o" * SECTOR_BYTES * 4, seed)
        disk.open("a").pwrite([b"n" * SECTOR_BYTES * 3], 256)
        disk.power_loss()
        content = content_of(disk)
        for start in range(0, len(content), SECTOR_BYTES):
            sector = content[start : start + SECTOR_BYTES]
            assert sector in (b"o" * SECTOR_BYTES, written[start : start + SECTOR_BYTES])
        outcomes.add(content)
    assert len(outcomes) > 8, "all lost, nothing lost, and mixtures"


def test_a_sector_written_twice_goes_back_by_none_one_or_both_writes() -> None:
    outcomes = set()
    for seed in range(100):
        disk = disk_with(b"0" * 10, seed)
        file = disk.open("a")
        file.pwrite([b"1"], 0)
        file.pwrite([b"2"], 1)
        disk.power_loss()
        outcomes.add(content_of(disk)[:2])
    assert outcomes == {b"00", b"10", b"12"}, "the later write never survives without the earlier"


def test_an_unsynced_length_is_lost_or_reads_as_zeros() -> None:
    outcomes = set()
    for seed in range(100):
        disk = disk_with(b"x", seed)
        disk.open("a").pwrite([b"y" * SECTOR_BYTES], SECTOR_BYTES)
        disk.power_loss()
        outcomes.add(content_of(disk))
    whole = b"x" + bytes(SECTOR_BYTES - 1)
    assert outcomes == {b"x", whole + b"y" * SECTOR_BYTES, whole + bytes(SECTOR_BYTES)}


def test_unsynced_names_come_and_go() -> None:
    outcomes = set()
    for seed in range(200):
        disk = disk_with(b"old", seed)
        disk.create("b").close()
        disk.rename("b", "c")
        disk.remove("a")
        disk.power_loss()
        outcomes.add(tuple(disk.list("")))
    assert outcomes >= {("a",), ("a", "c"), ("c",), ()}
    assert ("b", "c") not in outcomes, "a rename is atomic"


def test_synced_names_stay() -> None:
    for seed in range(50):
        disk = disk_with(b"old", seed)
        disk.make_folder("f")
        disk.create("f/b").close()
        disk.sync_directory("f")
        disk.remove("a")
        disk.sync_directory("")
        disk.power_loss()
        assert disk.list("") == ["f"]
        assert disk.list("f") == ["b"]


def test_a_folder_made_again_outlives_the_removal_of_the_one_before() -> None:
    for seed in range(50):
        disk = SimulatedDisk(random.Random(seed))
        disk.make_folder("f/g")
        disk.remove_folder("f")
        disk.make_folder("f/g")
        disk.create("f/g/a").close()
        disk.sync_directory("f/g")
        disk.power_loss()
        assert disk.exists("f/g/a")


def test_a_removed_folder_stays_removed_once_its_parent_is_synced() -> None:
    for seed in range(50):
        disk = SimulatedDisk(random.Random(seed))
        disk.make_folder("f/g")
        disk.create("f/g/a").close()
        disk.remove_folder("f")
        disk.sync_directory("")
        disk.power_loss()
        assert disk.list("") == []
        assert not disk.exists("f/g/a")


def test_replacing_a_file_is_whole_old_or_whole_new() -> None:
    outcomes = set()
    for seed in range(100):
        disk = disk_with(b"old", seed)
        draft = disk.create("a.draft")
        draft.pwrite([b"new"], 0)
        draft.datasync()
        disk.rename("a.draft", "a")
        disk.power_loss()
        outcomes.add(content_of(disk))
        replace_file(disk, "a", b"newer")
        disk.power_loss()
        assert content_of(disk) == b"newer"
    assert outcomes == {b"old", b"new"}


def test_a_crash_loses_nothing_but_the_open_files() -> None:
    disk = disk_with(b"old", 1)
    file = disk.open("a")
    file.pwrite([b"new"], 0)
    disk.crash()
    for use in (lambda: file.pread(1, 0), lambda: file.pwrite([b"x"], 0), file.datasync):
        with pytest.raises(StorageError, match="dead"):
            use()
    assert content_of(disk) == b"new"


def test_a_failed_sync_may_have_dropped_what_it_should_have_kept() -> None:
    outcomes = set()
    for seed in range(50):
        disk = disk_with(b"old", seed)
        file = disk.open("a")
        file.pwrite([b"new"], 0)
        disk.fail_syncs(1)
        with pytest.raises(SyncFailed):
            file.datasync()
        file.datasync()  # succeeds, and proves nothing
        outcomes.add(content_of(disk))
    assert outcomes == {b"old", b"new"}


def test_bits_flip_and_files_are_cut_where_they_lie() -> None:
    disk = disk_with(b"\x00\xff\x00", 1)
    disk.flip_bit("a", 1, bit=7)
    assert content_of(disk) == b"\x00\x7f\x00"
    disk.truncate("a", 1)
    disk.power_loss()
    assert content_of(disk) == b"\x00"


def test_one_seed_has_one_outcome() -> None:
    def outcome(seed: int) -> bytes:
        disk = disk_with(b"o" * 20_000, seed)
        file = disk.open("a")
        for position in range(0, 20_000, 700):
            file.pwrite([b"n" * 300], position)
        disk.power_loss()
        return content_of(disk)

    assert [outcome(seed) for seed in range(10)] == [outcome(seed) for seed in range(10)]
