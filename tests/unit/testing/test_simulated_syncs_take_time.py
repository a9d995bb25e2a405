"""A sync that is under way when the power fails may not have happened; one before it has."""

from __future__ import annotations

import random

from angarium.testing.disk import SimulatedDisk


def test_a_sync_under_way_may_be_lost() -> None:
    lost = 0
    for seed in range(50):
        disk = SimulatedDisk(random.Random(seed))
        file = disk.create("a")
        disk.sync_directory("")
        with disk.deferring():
            file.pwrite([b"x" * 1_000], 0)
            file.datasync()
        disk.power_loss()
        lost += disk.open("a").pread(1_000, 0) != b"x" * 1_000
    assert lost > 10


def test_a_completed_sync_is_never_lost() -> None:
    for seed in range(50):
        disk = SimulatedDisk(random.Random(seed))
        file = disk.create("a")
        disk.sync_directory("")
        with disk.deferring() as pending:
            file.pwrite([b"x" * 1_000], 0)
            file.datasync()
        disk.complete(pending)
        disk.power_loss()
        assert disk.open("a").pread(1_000, 0) == b"x" * 1_000


def test_only_the_last_sync_of_several_can_be_under_way() -> None:
    # Whoever renames a file after its sync returned relies on that order.
    for seed in range(50):
        disk = SimulatedDisk(random.Random(seed))
        with disk.deferring():
            file = disk.create("draft")
            file.preallocate(4_096)
            file.datasync()
            disk.rename("draft", "final")
            disk.sync_directory("")
            file.pwrite([b"x"], 0)
            file.datasync()
        disk.power_loss()
        assert disk.open("final").size() == 4_096
