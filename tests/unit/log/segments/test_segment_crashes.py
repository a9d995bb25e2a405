"""Power cuts and kills at any moment: what was synced stays, nothing is invented or reordered."""

from __future__ import annotations

import random

import pytest
from tests.unit.log.cutting_disk import Cut, CuttingDisk
from tests.unit.log.stamped_batches import contents, stamped

from angarium.errors import DiskFull, SyncFailed
from angarium.ids import Offset
from angarium.log.segments import PartitionLog, SegmentConfig
from angarium.testing.disk import SimulatedDisk

FOLDER = "p"
CONFIG = SegmentConfig(segment_bytes=1500, index_bytes=400, preallocate_bytes=512)


class Owner:
    """A replica as the log sees it: it remembers everything, and restarts from a snapshot."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disk = SimulatedDisk(random.Random(seed + 1))
        self.history: list[tuple[int, int, bytes | None]] = []
        """All that was ever committed: from and to which offset, a batch or None for a gap."""
        self.end = 0
        self.start = 0
        self.snapshot = (0, 0)
        """Start offset and durable end, as of the last snapshot."""
        self.log = PartitionLog.open(self.disk, FOLDER, CONFIG)

    def act(self) -> None:
        """Do one thing at random."""
        actions = (
            (10, self.append),
            (1, self.skip),
            (4, self.write),
            (4, self.sync),
            (2, self.trim),
            (2, self.collect),
            (3, self.save_snapshot),
            (1, self.fill_disk),
            (2, self.lose_power),
            (1, self.be_killed),
        )
        weights, choices = zip(*actions, strict=True)
        self.rng.choices(choices, weights)[0]()

    def append(self) -> None:
        for _ in range(self.rng.randint(1, 5)):
            batch = stamped(self.end, self.rng.randint(1, 3), size=self.rng.choice((5, 40, 700)))
            self.log.append([batch])
            self.history.append((self.end, self.log.end_offset, batch))
            self.end = self.log.end_offset

    def skip(self) -> None:
        end = self.end + self.rng.randint(1, 9)
        self.log.skip_to(Offset(end))
        self.history.append((self.end, end, None))
        self.end = end

    def write(self) -> None:
        flush = self.log.take(sync=self.rng.random() < 0.5)
        if flush is None:
            return
        if self.rng.random() < 0.3:
            self.append()
        self.log.write(flush)
        self.log.flushed(flush)

    def sync(self) -> None:
        self.log.sync()
        assert self.log.synced_offset == self.end

    def trim(self) -> None:
        self.start = self.rng.randint(self.start, self.end)
        self.log.trim(Offset(self.start))

    def collect(self) -> None:
        self.log.collect()

    def save_snapshot(self) -> None:
        self.log.sync()
        self.snapshot = (self.start, self.end)

    def fill_disk(self) -> None:
        used = (1 << 62) - self.disk.free_bytes()
        self.disk.capacity_bytes = used + self.rng.randint(0, 1500)
        try:
            self.log.sync()
        except DiskFull:
            assert self.log.synced_offset < self.end
        finally:
            self.disk.capacity_bytes = 1 << 62
        self.check()

    def lose_power(self) -> None:
        self.disk.power_loss()
        self.restart()

    def be_killed(self) -> None:
        self.disk.crash()
        self.restart()

    def restart(self) -> None:
        synced = self.log.synced_offset
        start, durable = self.snapshot
        self.log = PartitionLog.open(
            self.disk, FOLDER, CONFIG, start_offset=Offset(start), durable_until=Offset(durable)
        )
        assert not self.log.damage
        assert synced <= self.log.end_offset <= self.end
        found = contents(self.log)
        assert found == self.expected(self.log.start_offset, self.log.end_offset)
        self.replay(durable)
        self.check()

    def replay(self, start: int) -> None:
        """Let the write-ahead log bring everything from `start` on again."""
        for _, end, batch in self.history:
            if end <= start:
                continue
            if batch is None:
                self.log.skip_to(Offset(end))
            else:
                self.log.append([batch])
        self.log.trim(Offset(self.start))

    def check(self) -> None:
        assert self.log.end_offset == self.end
        assert contents(self.log) == self.expected(self.log.start_offset, self.end)

    def expected(self, start: int, end: int) -> list[bytes]:
        return [
            batch
            for base, behind, batch in self.history
            if batch is not None and behind > start and base < end
        ]


@pytest.mark.parametrize("seed", range(60))
def test_what_was_synced_survives_and_the_rest_comes_again(seed: int) -> None:
    owner = Owner(seed)
    for _ in range(60):
        owner.act()
    owner.check()
    owner.lose_power()


def test_a_failing_sync_is_told_and_claims_nothing() -> None:
    disk = SimulatedDisk(random.Random(1))
    log = PartitionLog.open(disk, FOLDER, CONFIG)
    log.append([stamped(0)])
    disk.fail_syncs(1)
    with pytest.raises(SyncFailed):
        log.sync()
    assert log.synced_offset == 0


def scenario(disk: CuttingDisk) -> list[int]:
    """Append, roll, seal, trim and collect; return what was synced, as far as it came."""
    synced = [0]
    try:
        log = PartitionLog.open(disk, FOLDER, CONFIG)
        for end in (6, 16, 30):
            while log.end_offset < end:
                log.append([stamped(log.end_offset, 2, size=60)])
            log.sync()
            synced.append(log.synced_offset)
        log.trim(Offset(20))
        log.collect()
        log.append([stamped(30)])
        log.sync()
        synced.append(log.synced_offset)
    except Cut:
        pass
    return synced


def test_a_cut_before_any_single_change_of_the_disk_is_survived() -> None:
    whole = CuttingDisk(SimulatedDisk(random.Random(0)))
    scenario(whole)
    for changes in range(whole.changes):
        for seed in range(4):
            disk = SimulatedDisk(random.Random(seed))
            synced = scenario(CuttingDisk(disk, changes_max=changes))[-1]
            disk.power_loss()
            log = PartitionLog.open(disk, FOLDER, CONFIG, durable_until=Offset(synced))
            assert not log.damage, (changes, seed)
            assert log.end_offset >= synced
            all_batches = [*(stamped(base, 2, size=60) for base in range(0, 30, 2)), stamped(30)]
            log.append(all_batches)
            found = contents(log)
            assert found == all_batches[len(all_batches) - len(found) :], (changes, seed)
            assert log.start_offset in {0, 20}
