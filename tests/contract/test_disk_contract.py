"""One suite for every disk: what the port promises, the real, the memory and the simulated keep."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from angarium.errors import DiskFull, StorageError
from angarium.log.disk import replace_file
from angarium.log.folder_lock import FolderInUse
from angarium.log.memory_disk import MemoryDisk
from angarium.log.os_disk import SHRINK_BYTES, OsDisk
from angarium.testing.disk import SimulatedDisk

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.log.disk import Disk


@pytest.fixture(params=["os", "memory", "simulated"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    if request.param == "os":
        return OsDisk(tmp_path / "data")
    return MemoryDisk() if request.param == "memory" else SimulatedDisk(random.Random(1))


def test_what_is_written_is_read_at_its_position(disk: Disk) -> None:
    file = disk.create("a")
    file.pwrite([b"hello ", memoryview(b"wide "), bytearray(b"world")], 3)
    assert file.pread(100, 0) == b"\0\0\0hello wide world"
    assert file.pread(4, 9) == b"wide"
    assert file.size() == 19


def test_a_write_over_old_bytes_replaces_only_those(disk: Disk) -> None:
    file = disk.create("a")
    file.pwrite([b"aaaaaaaa"], 0)
    file.pwrite([b"bb"], 2)
    assert file.pread(8, 0) == b"aabbaaaa"


def test_a_gather_longer_than_the_system_takes_is_written_whole(disk: Disk) -> None:
    buffers = [b"%05d" % number for number in range(3000)]
    file = disk.create("a")
    file.pwrite(buffers, 7)
    assert file.pread(15_000, 7) == b"".join(buffers)


def test_reading_past_the_end_returns_what_is_there(disk: Disk) -> None:
    file = disk.create("a")
    file.pwrite([b"abc"], 0)
    assert file.pread(10, 1) == b"bc"
    assert file.pread(10, 3) == b""
    assert file.pread(10, 30) == b""


def test_preallocated_bytes_count_and_read_as_zeros(disk: Disk) -> None:
    file = disk.create("a")
    file.preallocate(4096)
    file.pwrite([b"x"], 100)
    assert file.size() == 4096
    assert file.pread(102, 0) == bytes(100) + b"x\0"
    assert file.pread(10_000, 4000) == bytes(96)


def test_preallocating_never_shortens_or_overwrites(disk: Disk) -> None:
    file = disk.create("a")
    file.pwrite([b"x" * 100], 0)
    file.preallocate(50)
    assert file.pread(200, 0) == b"x" * 100


def test_truncating_cuts_and_growing_again_shows_zeros(disk: Disk) -> None:
    file = disk.create("a")
    file.pwrite([b"x" * 100], 0)
    file.truncate(10)
    assert file.size() == 10
    file.preallocate(20)
    assert file.pread(100, 0) == b"x" * 10 + bytes(10)


def test_two_handles_see_one_file(disk: Disk) -> None:
    writer = disk.create("a")
    reader = disk.open("a")
    writer.pwrite([b"abc"], 0)
    assert reader.pread(3, 0) == b"abc"


def test_a_closed_file_is_refused_and_may_be_closed_twice(disk: Disk) -> None:
    file = disk.create("a")
    file.close()
    file.close()
    for use in (
        lambda: file.pwrite([b"x"], 0),
        lambda: file.pread(1, 0),
        file.size,
        lambda: file.preallocate(1),
        lambda: file.truncate(0),
        file.datasync,
    ):
        with pytest.raises(StorageError):
            use()


def test_a_name_is_created_once_and_opened_only_if_it_is_there(disk: Disk) -> None:
    disk.create("a")
    with pytest.raises(FileExistsError):
        disk.create("a")
    with pytest.raises(FileNotFoundError):
        disk.open("b")
    with pytest.raises(FileNotFoundError):
        disk.create("no-such-folder/b")


def test_folders_are_made_with_their_parents_and_listed(disk: Disk) -> None:
    disk.make_folder("x/y/z")
    disk.make_folder("x/y")
    disk.create("x/b").close()
    disk.create("x/a").close()
    assert disk.list("x") == ["a", "b", "y"]
    assert disk.list("") == ["x"]
    assert disk.list("x/y/z") == []
    assert disk.list("nowhere") == []
    assert disk.exists("x/a")
    assert disk.exists("x/y/z")
    assert not disk.exists("x/q")


def test_renaming_replaces_what_had_the_name(disk: Disk) -> None:
    for name in ("old", "new"):
        file = disk.create(name)
        file.pwrite([name.encode()], 0)
    disk.rename("old", "new")
    assert disk.list("") == ["new"]
    assert disk.open("new").pread(10, 0) == b"old"
    with pytest.raises(FileNotFoundError):
        disk.rename("old", "newer")


def test_removing_is_repeatable_and_an_open_file_stays_readable(disk: Disk) -> None:
    file = disk.create("a")
    file.pwrite([b"abc"], 0)
    disk.remove("a")
    disk.remove("a")
    assert not disk.exists("a")
    assert file.pread(3, 0) == b"abc"


def test_a_folder_goes_with_all_that_is_in_it(disk: Disk) -> None:
    disk.make_folder("x/y")
    disk.make_folder("xy")
    disk.create("x/y/a").close()
    disk.create("x/b").close()
    disk.remove_folder("x")
    disk.remove_folder("x")
    disk.sync_directory("")
    assert disk.list("") == ["xy"]
    assert not disk.exists("x/y/a")


def test_syncing_names_and_bytes_is_accepted(disk: Disk) -> None:
    disk.make_folder("x")
    file = disk.create("x/a")
    file.pwrite([b"abc"], 0)
    file.datasync()
    disk.sync_directory("x")
    disk.sync_directory("")
    with pytest.raises(StorageError):
        disk.sync_directory("nowhere")


def test_replacing_a_file_leaves_the_new_content_and_no_draft(disk: Disk) -> None:
    disk.make_folder("x")
    replace_file(disk, "x/a", b"one")
    replace_file(disk, "x/a", b"two")
    assert disk.list("x") == ["a"]
    assert disk.open("x/a").pread(10, 0) == b"two"


def test_one_process_has_a_disk_to_itself_until_it_lets_it_go(disk: Disk) -> None:
    lock = disk.lock()
    assert lock.is_kept
    with pytest.raises(FolderInUse):
        disk.lock()
    lock.release()
    disk.lock().release()


def test_there_is_room_and_it_is_counted(disk: Disk) -> None:
    assert disk.free_bytes() > 0


@pytest.mark.parametrize("kind", ["memory", "simulated"])
def test_a_full_disk_refuses_and_goes_on_when_there_is_room(kind: str) -> None:
    disk = (
        MemoryDisk(capacity_bytes=100)
        if kind == "memory"
        else SimulatedDisk(random.Random(1), capacity_bytes=100)
    )
    file = disk.create("a")
    file.preallocate(60)
    other = disk.create("b")
    with pytest.raises(DiskFull):
        other.preallocate(50)
    with pytest.raises(DiskFull):
        other.pwrite([b"x" * 50], 0)
    file.pwrite([b"y" * 60], 0)  # preallocated bytes are ours, however full the disk is
    assert other.size() <= 40
    disk.capacity_bytes = 200
    other.pwrite([b"x" * 50], 0)
    assert other.pread(50, 0) == b"x" * 50
    assert disk.free_bytes() == 90


def test_a_full_device_is_a_full_disk() -> None:
    file = OsDisk("/dev").open("full")
    with pytest.raises(DiskFull):
        file.pwrite([b"x"], 0)
    file.close()


def test_a_folder_of_large_files_goes_little_by_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is let go at once holds up every sync on the same disk."""
    disk = OsDisk(tmp_path)
    disk.make_folder("x/y")
    for name, length in (("x/large", 2 * SHRINK_BYTES + 1), ("x/y/small", SHRINK_BYTES)):
        file = disk.create(name)
        file.truncate(length)
        file.close()
    steps: list[tuple[str, int]] = []
    monkeypatch.setattr(os, "truncate", lambda path, length: steps.append((path.name, length)))
    disk.remove_folder("x")
    assert steps == [("large", SHRINK_BYTES + 1), ("large", 1)]
    assert disk.list("") == []
