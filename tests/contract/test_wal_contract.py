"""What the write-ahead log promises its owner, on every disk."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING

import pytest

from angarium.errors import AlreadyExists, CorruptData, DiskFull, NotFound, StorageError, SyncFailed
from angarium.ids import Incarnation, Index, RaftGroupId, ReplicaId, Term
from angarium.log.memory_disk import MemoryDisk
from angarium.log.os_disk import OsDisk
from angarium.log.wal import Wal, WalConfig
from angarium.raft.errors import Compacted, Unavailable
from angarium.raft.messages import Entry, EntryKind, HardState
from angarium.raft.storage import within_bytes
from angarium.testing.disk import SimulatedDisk

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.log.disk import Disk, File
    from angarium.log.wal.group_log import GroupLog

A, B = RaftGroupId(1), RaftGroupId(2)
INCARNATION = Incarnation(0xABCDEF)
SMALL = WalConfig(file_bytes=8192, reserve_bytes=4096, cache_bytes=1000)
MANY_BYTES = 1 << 40


@pytest.fixture(params=["os", "memory", "simulated"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    if request.param == "os":
        return OsDisk(tmp_path / "data")
    return MemoryDisk() if request.param == "memory" else SimulatedDisk(random.Random(1))


def opened(disk: Disk, config: WalConfig = SMALL) -> Wal:
    return Wal.open(disk, incarnation=INCARNATION, config=config)


def entry(index: int, term: int = 1, data: bytes = b"data") -> Entry:
    return Entry(Term(term), Index(index), data)


def state(term: int = 1, vote: int = 0, commit: int = 0) -> HardState:
    return HardState(Term(term), ReplicaId(vote), Index(commit))


def terms(wal: Wal, group: RaftGroupId = A) -> list[int]:
    log = wal.log(group)
    return [log.term(Index(index)) for index in range(log.first_index(), log.last_index() + 1)]


def payloads(wal: Wal, group: RaftGroupId = A) -> list[bytes]:
    log = wal.log(group)
    lo, hi = log.first_index(), Index(log.last_index() + 1)
    found: list[bytes] = []
    while lo < hi:
        entries = log.entries(lo, hi, MANY_BYTES)
        found += [bytes(one.data) for one in entries]
        lo = Index(lo + len(entries))
    return found


def test_what_was_synced_is_there_after_opening_again(disk: Disk) -> None:
    wal = opened(disk)
    wal.add_group(A)
    wal.add_group(B)
    kinds = [Entry(Term(1), Index(1), b"c", EntryKind.CONF_CHANGE_V2), entry(2, data=b"")]
    wal.append(A, kinds, state(1, 7, 1))
    wal.append(B, [entry(1, 3, b"b" * 3000)])
    wal.sync()
    again = opened(disk)
    assert again.recovered.groups.keys() == {A, B}
    assert again.recovered.groups[A].hard_state == state(1, 7, 1)
    assert again.recovered.groups[A].damage is None
    assert list(again.log(A).entries(Index(1), Index(3), MANY_BYTES)) == kinds
    assert payloads(again, B) == [b"b" * 3000]
    assert not again.recovered.was_clean


def test_nothing_that_was_only_buffered_is_there_after_opening_again(disk: Disk) -> None:
    wal = opened(disk)
    wal.add_group(A)
    wal.sync()
    wal.append(A, [entry(1)])
    assert wal.log(A).last_index() == 1, "the owner sees it from the append on"
    assert opened(disk).log(A).last_index() == 0


def test_a_later_entry_supersedes_its_index_and_everything_after(disk: Disk) -> None:
    wal = opened(disk)
    wal.add_group(A)
    wal.append(A, [entry(index, 1) for index in range(1, 8)])
    wal.sync()
    wal.append(A, [entry(4, 2), entry(5, 2)])
    wal.append(A, [entry(5, 3)])
    assert terms(wal) == [1, 1, 1, 2, 3]
    wal.sync()
    assert terms(wal) == [1, 1, 1, 2, 3]
    assert terms(opened(disk)) == [1, 1, 1, 2, 3]


def test_old_entries_are_read_from_the_files_and_new_ones_from_memory(disk: Disk) -> None:
    wal = opened(disk)
    wal.add_group(A)
    wal.add_group(B)
    expected = []
    for index in range(1, 60):
        data = b"%d " % index * 50
        expected.append(data)
        wal.append(A, [entry(index, index // 7 + 1, data)])
        if index % 3 == 0:
            wal.append(B, [entry(index // 3, 1, b"between")])
        wal.sync()
    log = wal.log(A)
    assert len(log.recent) < 15, "the cache is bounded"
    assert payloads(wal) == expected
    assert terms(wal) == [index // 7 + 1 for index in range(1, 60)]
    assert payloads(opened(disk)) == expected
    one = log.entries(Index(3), Index(50), 0)
    assert [found.index for found in one] == [3], "at least one, however small the budget"
    some = log.entries(Index(3), Index(50), 1000)
    every = log.entries(Index(3), Index(50), MANY_BYTES)
    assert list(some) == list(within_bytes(every, 1000))


def test_the_edges_of_a_log_are_named(disk: Disk) -> None:
    wal = opened(disk)
    wal.add_group(A)
    wal.append(A, [entry(index) for index in range(1, 11)])
    wal.compact(A, Index(4), Term(1))
    log = wal.log(A)
    assert (log.first_index(), log.last_index(), log.term(Index(4))) == (5, 10, 1)
    with pytest.raises(Compacted):
        log.entries(Index(4), Index(6), 10)
    with pytest.raises(Compacted):
        log.term(Index(3))
    with pytest.raises(Unavailable):
        log.entries(Index(9), Index(12), 10)
    with pytest.raises(Unavailable):
        log.term(Index(11))


def test_a_snapshot_from_a_leader_replaces_a_log_that_contradicts_it(disk: Disk) -> None:
    wal = opened(disk)
    wal.add_group(A)
    wal.append(A, [entry(index, 1) for index in range(1, 11)])
    wal.sync()
    wal.compact(A, Index(6), Term(2))
    wal.append(A, [entry(7, 2)])
    wal.sync()
    for each in (wal, opened(disk)):
        log = each.log(A)
        assert (log.first_index(), log.last_index(), log.term(Index(6))) == (7, 7, 2)
    wal.compact(A, Index(100), Term(3))
    wal.append(A, [entry(index, 3) for index in range(90, 103)])
    wal.sync()
    assert terms(wal) == [3, 3], "what the snapshot stands for is left out"
    assert opened(disk).log(A).first_index() == 101


def test_groups_come_and_go(disk: Disk) -> None:
    wal = opened(disk)
    wal.add_group(A)
    with pytest.raises(AlreadyExists):
        wal.add_group(A)
    wal.append(A, [entry(1)], state(5, 5, 1))
    wal.sync()
    wal.reset_group(A)
    wal.add_group(B)
    wal.sync()
    assert opened(disk).recovered.groups[A].hard_state == HardState()
    wal.remove_group(A)
    with pytest.raises(NotFound):
        wal.log(A)
    with pytest.raises(NotFound):
        wal.append(A, [entry(1)])
    wal.sync()
    assert opened(disk).groups == [B]


def test_files_are_released_once_nobody_needs_them(disk: Disk) -> None:
    wal = opened(disk)
    wal.add_group(A)
    wal.add_group(B)
    wal.append(B, [entry(1, 9, b"quiet")], state(9, 1, 1))
    wal.sync()
    for index in range(1, 41):
        wal.append(A, [entry(index, 1, b"x" * 1000)], state(1, 1, index))
        wal.sync()
    assert wal.file_count > 4
    wal.compact(A, Index(38), Term(1))
    assert wal.release() == 0, "a compaction counts when it is durable"
    wal.sync()
    assert wal.release() == 0
    assert wal.pinning_groups() == [B]
    wal.compact(B, Index(1), Term(9))
    wal.sync()
    assert wal.release() > 3
    assert wal.file_count <= 2
    again = opened(disk)
    assert payloads(again) == [b"x" * 1000] * 2
    assert again.recovered.groups[B].hard_state == state(9, 1, 1)
    assert again.log(B).term(Index(1)) == 9


def test_closing_lets_the_next_opening_skip_the_reading(disk: Disk) -> None:
    wal = opened(disk)
    wal.add_group(A)
    for index in range(1, 31):
        wal.append(A, [entry(index, index // 10 + 1, b"%d" % index * 100)], state(3, 1, index))
        wal.sync()
    wal.append(A, [entry(25, 9, b"last words")])
    wal.close()
    wal.close()
    with pytest.raises(StorageError, match="closed"):
        wal.append(A, [entry(26)])
    again = opened(disk)
    assert again.recovered.was_clean
    assert again.recovered.groups[A].hard_state == state(3, 1, 30)
    assert payloads(again) == [b"%d" % index * 100 for index in range(1, 25)] + [b"last words"]
    again.append(A, [entry(26, 9)])
    again.sync()
    after_kill = opened(disk)
    assert not after_kill.recovered.was_clean, "the note of a clean stop does not outlive it"
    assert payloads(after_kill) == payloads(again)


def test_a_damaged_note_of_a_clean_stop_costs_only_time(disk: Disk) -> None:
    wal = opened(disk)
    wal.add_group(A)
    wal.append(A, [entry(1)])
    wal.close()
    note = disk.open("wal/clean")
    last = note.pread(1, note.size() - 1)[0]
    note.pwrite([bytes([last ^ 1])], note.size() - 1)
    again = opened(disk)
    assert not again.recovered.was_clean
    assert payloads(again) == [b"data"]


def test_a_note_of_a_clean_stop_that_cannot_be_written_costs_only_time(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    wal = opened(disk)
    wal.add_group(A)
    wal.append(A, [entry(1)])
    create = disk.create

    def refuse(name: str) -> File:
        if name.startswith("wal/clean"):
            raise StorageError(f"open {name}: Too many open files")
        return create(name)

    monkeypatch.setattr(disk, "create", refuse)
    wal.close()
    monkeypatch.undo()
    again = opened(disk)
    assert not again.recovered.was_clean
    assert payloads(again) == [b"data"]


def test_a_note_of_a_clean_stop_that_came_back_from_the_dead_is_ignored(disk: Disk) -> None:
    wal = opened(disk)
    wal.add_group(A)
    wal.append(A, [entry(1)])
    wal.close()
    note = disk.open("wal/clean")
    content = note.pread(note.size(), 0)
    again = opened(disk)
    again.append(A, [entry(1, 2, b"newer")])
    again.sync()
    disk.create("wal/clean").pwrite([content], 0)
    assert payloads(opened(disk)) == [b"newer"]


def test_damage_that_is_met_while_reading_is_told_and_can_be_repaired(disk: Disk) -> None:
    wal = opened(disk)
    wal.add_group(A)
    for index in range(1, 11):
        wal.append(A, [entry(index, 1, b"payload %02d" % index * 30)])
        wal.sync()
    name = "wal/0000000000000001.log"
    file = disk.open(name)
    content = file.pread(file.size(), 0)
    file.pwrite([b"X"], content.index(b"payload 03"))
    log = wal.log(A)
    assert [one.index for one in log.entries(Index(1), Index(9), MANY_BYTES)] == [1, 2]
    with pytest.raises(CorruptData):
        log.entries(Index(3), Index(9), MANY_BYTES)
    damage = log.damage()
    assert damage is not None
    assert (damage.first_damaged_index, damage.last_damaged_index) == (3, 3)
    assert damage.hard_state_intact
    wal.repair(A, [entry(3, 1, b"payload 03" * 30)])
    assert [one.index for one in log.entries(Index(3), Index(4), MANY_BYTES)] == [3]
    wal.sync()
    assert log.damage() is None
    assert payloads(wal) == [b"payload %02d" % index * 30 for index in range(1, 11)]
    again = opened(disk)
    assert again.recovered.groups[A].damage is None
    assert payloads(again) == payloads(wal)


def flipped(disk: Disk, *payloads: bytes) -> None:
    """Damage the first file of the log where these payloads lie."""
    file = disk.open("wal/0000000000000001.log")
    content = file.pread(file.size(), 0)
    for payload in payloads:
        file.pwrite([b"X"], content.index(payload))
    file.close()


def written_at_once(disk: Disk, count: int) -> None:
    """Write neighbouring entries in one sync round, and close the log."""
    wal = opened(disk)
    wal.add_group(A)
    wal.append(A, [entry(index, 1, b"payload %02d" % index) for index in range(1, count + 1)])
    wal.sync()
    wal.close()


def indexes(log: GroupLog, lo: int, hi: int) -> list[int]:
    return [one.index for one in log.entries(Index(lo), Index(hi), MANY_BYTES)]


@pytest.mark.parametrize("damaged", [1, 2, 5, 21, 22])
def test_a_read_never_passes_over_damage_inside_a_stretch(disk: Disk, damaged: int) -> None:
    written_at_once(disk, 22)
    flipped(disk, b"payload %02d" % damaged)
    wal = opened(disk)
    log = wal.log(A)
    assert wal.recovered.was_clean
    assert wal.take_hurt() == []
    # Once to find it, and once with the entry known to be a hole.
    for _ in range(2):
        if damaged > 1:
            assert indexes(log, 1, 23) == list(range(1, damaged))
        with pytest.raises(CorruptData):
            indexes(log, damaged, 23)
        assert log.damaged is not None
        assert log.damaged.first_damaged_index == log.damaged.last_damaged_index == damaged
        assert wal.take_hurt() == [A]
    if damaged < 22:
        assert indexes(log, damaged + 1, 23) == list(range(damaged + 1, 23))


def test_every_repaired_neighbour_is_read_while_their_repair_is_being_synced(disk: Disk) -> None:
    written_at_once(disk, 22)
    holes = range(5, 9)
    flipped(disk, *(b"payload %02d" % index for index in holes))
    wal = opened(disk)
    log = wal.log(A)
    for index in holes:
        with pytest.raises(CorruptData):
            indexes(log, index, 23)
    wal.repair(A, [entry(index, 1, b"payload %02d" % index) for index in holes])
    assert [bytes(one.data) for one in log.entries(Index(5), Index(6), MANY_BYTES)]
    sync_round = wal.seal()
    assert sync_round is not None
    found: list[int] = []
    while len(found) < 22:
        found += indexes(log, len(found) + 1, 23)
        assert found == list(range(1, len(found) + 1))
    sync_round.write()
    wal.synced(sync_round)
    assert payloads(wal) == [b"payload %02d" % index for index in range(1, 23)]
    assert log.damaged is None


def test_a_sync_round_longer_than_a_file_gets_a_longer_file(disk: Disk) -> None:
    wal = opened(disk)
    wal.add_group(A)
    wal.append(A, [entry(1, 1, b"x" * 50_000), entry(2, 1, b"y" * 50_000)])
    wal.append(A, [entry(3, 1, b"z" * 50_000)])
    wal.sync()
    wal.append(A, [entry(4, 1, b"small")])
    wal.sync()
    sizes = [len(data) for data in payloads(opened(disk))]
    assert sizes == [50_000, 50_000, 50_000, 5]


def test_the_write_may_run_in_a_thread_while_the_owner_goes_on(disk: Disk) -> None:
    wal = opened(disk)
    wal.add_group(A)
    wal.append(A, [entry(1)])
    first = wal.seal()
    assert first is not None
    thread = threading.Thread(target=first.write)
    thread.start()
    wal.append(A, [entry(2), entry(3)], state(1, 1, 1))
    second = wal.seal()
    wal.append(A, [entry(3, 2)])
    assert not wal.mark(), "nothing is marked while something is on its way"
    thread.join()
    wal.synced(first)
    assert second is not None
    second.write()
    wal.synced(second)
    wal.sync()
    assert terms(opened(disk)) == [1, 1, 2]


def test_a_mark_is_written_once_and_changes_nothing(disk: Disk) -> None:
    wal = opened(disk)
    wal.add_group(A)
    wal.append(A, [entry(1)])
    wal.sync()
    assert wal.mark()
    assert not wal.mark()
    wal.append(A, [entry(2)])
    assert not wal.mark(), "what is buffered will carry a mark itself"
    wal.sync()
    assert terms(opened(disk)) == [1, 1]


def test_another_incarnation_is_refused(disk: Disk) -> None:
    wal = opened(disk)
    wal.add_group(A)
    wal.sync()
    with pytest.raises(StorageError, match="belongs to incarnation"):
        Wal.open(disk, incarnation=Incarnation(5), config=SMALL)


def test_thousands_of_groups_are_cheap_to_keep(disk: Disk) -> None:
    wal = Wal.open(disk, incarnation=INCARNATION, config=WalConfig(file_bytes=1024 * 1024))
    for number in range(1, 3001):
        group = RaftGroupId(number)
        wal.add_group(group)
        wal.append(group, [entry(1)], state(1, 1, 0))
    wal.sync()
    wal.append(RaftGroupId(7), [entry(2, 1, b"x" * 500_000)])
    wal.sync()
    again = Wal.open(disk, incarnation=INCARNATION, config=WalConfig(file_bytes=1024 * 1024))
    assert len(again.groups) == 3000
    assert again.log(RaftGroupId(7)).last_index() == 2
    assert again.recovered.groups[RaftGroupId(3000)].hard_state == state(1, 1, 0)


# --- a disk that fails -----------------------------------------------------------------------


def full_disk() -> tuple[SimulatedDisk, Wal]:
    """Return a log on a disk that has just become too small for another file."""
    disk = SimulatedDisk(random.Random(1), capacity_bytes=5 * 8192)
    wal = opened(disk)
    wal.add_group(A)
    index = 0
    while not wal.is_full:
        index += 1
        wal.append(A, [entry(index, 1, b"x" * 800)], state(1, 1, index))
        wal.sync()
    return disk, wal


def test_a_full_disk_refuses_appends_before_anything_changes() -> None:
    _, wal = full_disk()
    before = wal.log(A).last_index()
    with pytest.raises(DiskFull):
        wal.append(A, [entry(before + 1)])
    assert wal.log(A).last_index() == before
    assert wal.buffered_bytes == 0
    assert payloads(wal) == [b"x" * 800] * before


def test_votes_membership_and_trims_get_through_on_a_full_disk() -> None:
    disk, wal = full_disk()
    last = wal.log(A).last_index()
    for number in range(20):
        wal.append(A, (), state(2 + number, 3, last))
        wal.append(A, [entry(last + 1 + number, 2 + number)], reserve=True)
        wal.sync()
    wal.compact(A, last, Term(1))
    wal.sync()
    disk.power_loss()
    again = opened(disk)
    assert again.recovered.groups[A].hard_state == state(21, 3, last)
    assert again.log(A).last_index() == last + 20
    assert again.log(A).first_index() == last + 1


def test_the_reserve_has_an_end_too() -> None:
    _, wal = full_disk()

    def vote_on() -> None:
        for number in range(10_000):
            wal.append(A, (), state(2 + number, 3, 0))
            wal.sync()

    with pytest.raises(DiskFull):
        vote_on()
    wal.sync()


def test_appends_go_on_when_there_is_room_again() -> None:
    disk, wal = full_disk()
    last = wal.log(A).last_index()
    wal.compact(A, last, Term(1))
    wal.append(A, (), state(1, 1, last))
    wal.sync()
    while not wal.release():  # the last file has to be left before it can go
        wal.append(A, (), state(1, 2, last))
        wal.sync()
    assert not wal.is_full
    wal.append(A, [entry(last + 1)])
    wal.sync()
    assert payloads(wal) == [b"data"]
    disk.capacity_bytes *= 2
    wal.append(A, [entry(last + 2, 1, b"x" * 20_000)])
    wal.sync()
    assert opened(disk).log(A).last_index() == last + 2


def test_a_failed_sync_is_fatal_and_says_so() -> None:
    disk = SimulatedDisk(random.Random(1))
    wal = opened(disk)
    wal.add_group(A)
    wal.append(A, [entry(1)])
    wal.sync()
    disk.fail_syncs(1)
    wal.append(A, [entry(2)])
    with pytest.raises(SyncFailed, match="dead"):
        wal.sync()
    for use in (
        lambda: wal.append(A, [entry(3)]),
        lambda: wal.compact(A, Index(1), Term(1)),
        lambda: wal.add_group(B),
        wal.seal,
        wal.sync,
        wal.mark,
        wal.release,
    ):
        with pytest.raises(SyncFailed, match="restart the node"):
            use()
    wal.close()
    assert opened(disk).log(A).last_index() in (1, 2)
