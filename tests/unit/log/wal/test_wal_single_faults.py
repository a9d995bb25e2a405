"""Every single flipped byte and every cut of a small log: harmless, detected, or a clean cut.

The log under test has several groups with entries, hard states, supersession, compaction,
removal, payloads of zeros; several sync rounds; and more than one file. The last sync round is
not covered by a mark.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from angarium.ids import Incarnation, Index, RaftGroupId, ReplicaId, Term
from angarium.log.memory_disk import MemoryDisk
from angarium.log.wal import Damage, Wal, WalConfig
from angarium.raft.messages import Entry, EntryKind, HardState

if TYPE_CHECKING:
    from collections.abc import Mapping

INCARNATION = Incarnation(0x5EED_CAFE_F00D)
CONFIG = WalConfig(file_bytes=4096, reserve_bytes=4096, cache_bytes=0)
SNAPSHOT_TERMS = {1: 2, 2: 4, 3: 1}
MANY_BYTES = 1 << 40

State = dict[int, tuple[HardState, int, dict[int, Entry]]]
"""By group: hard state, compaction point, entries by index."""


def entry(index: int, term: int, data: bytes = b"", kind: EntryKind = EntryKind.NORMAL) -> Entry:
    return Entry(Term(term), Index(index), data, kind)


def hard_state(term: int, vote: int, commit: int) -> HardState:
    return HardState(Term(term), ReplicaId(vote), Index(commit))


def group(number: int) -> RaftGroupId:
    return RaftGroupId(number)


def opened(disk: MemoryDisk) -> Wal:
    return Wal.open(disk, incarnation=INCARNATION, config=CONFIG)


def state_of(wal: Wal) -> State:
    return {number: state_of_group(wal, number) for number in wal.groups}


def state_of_group(wal: Wal, number: RaftGroupId) -> tuple[HardState, int, dict[int, Entry]]:
    log = wal.log(number)
    damage = log.damaged
    entries = {}
    for index in range(log.first_index(), log.last_index() + 1):
        if damage is None or not is_damaged(damage, index):
            (found,) = log.entries(Index(index), Index(index + 1), MANY_BYTES)
            entries[index] = found
            assert log.term(Index(index)) == found.term
    return log.hard_state, log.snapshot_index, entries


def is_damaged(damage: Damage, index: int) -> bool:
    first, last = damage.first_damaged_index, damage.last_damaged_index
    return first is not None and first <= index and (last is None or index <= last)


def content_of(disk: MemoryDisk) -> dict[str, bytes]:
    contents = {}
    for name in disk.list("wal"):
        file = disk.open(f"wal/{name}")
        contents[name] = file.pread(file.size(), 0)
    return contents


def disk_of(contents: Mapping[str, bytes]) -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_folder("wal")
    for name, content in contents.items():
        disk.create(f"wal/{name}").pwrite([content], 0)
    return disk


def written(*, release: bool) -> tuple[MemoryDisk, State, State]:
    """Return a disk, the state before its last sync round, and the state after it."""
    disk = MemoryDisk()
    wal = opened(disk)
    for number in (1, 2, 3, 9):
        wal.add_group(group(number))
    wal.append(group(1), [entry(1, 1, b"one"), entry(2, 1, b"")], hard_state(1, 7, 0))
    wal.append(group(2), [entry(1, 1, b"c", EntryKind.CONF_CHANGE_V2)], hard_state(1, 8, 1))
    wal.sync()
    wal.append(group(1), [entry(3, 1, b"x" * 60), entry(4, 1, b"old")])
    wal.append(group(9), [entry(1, 1, b"gone soon")], hard_state(3, 3, 0))
    wal.sync()
    wal.append(group(1), [entry(4, 2, b"new"), entry(5, 2, b"newer")], hard_state(2, 7, 3))
    wal.append(group(3), [entry(1, 1, bytes(1030)), entry(2, 1, b"after zeros")])
    wal.mark()
    wal.sync()
    wal.mark()
    wal.remove_group(group(9))
    wal.compact(group(1), Index(2), Term(1))
    wal.append(group(3), (), hard_state(4, 9, 2))
    wal.sync()
    wal.append(group(1), [entry(6, 2, b"y" * 20), entry(7, 2, b"z" * 100)], hard_state(2, 7, 6))
    wal.sync()
    wal.compact(group(2), Index(50), Term(4))
    wal.append(group(2), [entry(51, 4, b"past the snapshot")], hard_state(4, 0, 50))
    wal.append(group(3), [entry(3, 4, b"w" * 1100)])
    wal.sync()
    assert wal.file_count >= 2
    if release:
        for number, index, term in ((1, 7, 2), (3, 2, 1)):
            wal.compact(group(number), Index(index), Term(term))
        wal.append(group(1), [entry(8, 2, b"alone")])
        wal.sync()
        assert wal.release() >= 1
    wal.append(group(3), [entry(4, 4, b"marked")])
    wal.sync()
    before = state_of(wal)
    wal.append(group(1), [entry(wal.log(group(1)).last + 1, 2, b"v" * 600)], hard_state(5, 7, 7))
    wal.append(group(3), [entry(5, 4, b"last")])
    wal.sync()
    return disk, before, state_of(wal)


@cache
def reference(*, release: bool) -> tuple[dict[str, bytes], State, State]:
    disk, before, after = written(release=release)
    contents = {name: data for name, data in content_of(disk).items() if name.endswith(".log")}
    assert state_of(opened(disk_of(contents))) == after
    return contents, before, after


def check_told(wal: Wal, expected: State) -> bool:
    """Check that every difference from `expected` is covered by a report; True if there is any."""
    recovered = wal.recovered
    found = state_of(wal)
    assert found.keys() - expected.keys() == set() or recovered.unknown_groups
    reported = recovered.unknown_groups
    for number, (state, snapshot, entries) in expected.items():
        if number not in found:
            assert recovered.unknown_groups, f"group {number} vanished silently"
            continue
        damage = recovered.groups[group(number)].damage
        found_state, found_snapshot, found_entries = found[number]
        if damage is None:
            assert found[number] == expected[number]
            continue
        reported = True
        if damage.hard_state_intact:
            assert found_state == state
        for index, one in entries.items():
            if is_damaged(damage, index):
                continue
            if index > found_snapshot:
                assert found_entries.get(index) == one, f"entry {index} of group {number}"
        for index, one in found_entries.items():
            assert index <= snapshot or entries.get(index) == one, "an entry was invented"
    return reported


def flips(contents: Mapping[str, bytes]) -> list[tuple[str, int]]:
    """Return every byte that was written, and some of the zeros behind."""
    places = []
    for name, content in contents.items():
        end = len(content.rstrip(b"\0"))
        places += [(name, position) for position in range(min(len(content), end + 100))]
        places += [(name, position) for position in range(end + 100, len(content), 61)]
    return places


@pytest.mark.parametrize("release", [False, True])
def test_every_flipped_byte_is_harmless_or_told(release: bool) -> None:
    contents, _, after = reference(release=release)
    told = 0
    for name, position in flips(contents):
        damaged = bytearray(contents[name])
        damaged[position] ^= (0xFF, 0x01, 0x80, 0x10, 0x55)[position % 5]
        wal = opened(disk_of({**contents, name: bytes(damaged)}))
        told += check_told(wal, after)
    assert told > 1000


@pytest.mark.parametrize("release", [False, True])
def test_every_zeroed_byte_is_harmless_or_told(release: bool) -> None:
    contents, _, after = reference(release=release)
    for name, position in flips(contents):
        if contents[name][position : position + 1] not in (b"", b"\0"):
            damaged = bytearray(contents[name])
            damaged[position] = 0
            check_told(opened(disk_of({**contents, name: bytes(damaged)})), after)


@pytest.mark.parametrize("release", [False, True])
def test_every_cut_is_told_or_only_takes_the_group_that_no_mark_covers(release: bool) -> None:
    contents, before, after = reference(release=release)
    for name, length in flips(contents):
        wal = opened(disk_of({**contents, name: contents[name][:length]}))
        if state_of(wal) != before:
            check_told(wal, after)


@pytest.mark.parametrize("release", [False, True])
def test_every_missing_tail_of_the_last_write_is_a_clean_cut(release: bool) -> None:
    """A process killed while it writes leaves a prefix of a sync round, then zeros."""
    contents, before, after = reference(release=release)
    name = max(contents)
    content = contents[name]
    end = len(content.rstrip(b"\0"))
    start = content.rfind(b"ANGGROUP")
    for length in range(start, end):
        wal = opened(disk_of({**contents, name: content[:length].ljust(len(content), b"\0")}))
        assert state_of(wal) in (before, after)
        assert all(one.damage is None for one in wal.recovered.groups.values())
        assert not wal.recovered.unknown_groups


def test_a_missing_file_is_told() -> None:
    contents, _, after = reference(release=False)
    names = sorted(contents)
    for name in names[:-1]:
        rest = {other: data for other, data in contents.items() if other != name}
        assert check_told(opened(disk_of(rest)), after)


def test_two_files_swapped_are_told() -> None:
    contents, _, after = reference(release=False)
    first, second, *_ = sorted(contents)
    swapped = {**contents, first: contents[second], second: contents[first]}
    assert check_told(opened(disk_of(swapped)), after)


def repaired(wal: Wal, truth: State) -> bool:
    """Repair what can be repaired from a peer's entries; False if something cannot be."""
    if wal.recovered.unknown_groups:
        return False
    for number in wal.groups:
        log = wal.log(number)
        state, snapshot, entries = truth[number]
        if log.damaged is not None and snapshot > log.snapshot_index:
            wal.compact(number, Index(snapshot), Term(SNAPSHOT_TERMS[number]))  # it is durable
        damage = log.damaged
        if damage is None:
            continue
        if damage.first_damaged_index is None or damage.last_damaged_index is None:
            return False
        if not damage.hard_state_intact:
            return False
        assert log.hard_state == state
        wanted = range(damage.first_damaged_index, damage.last_damaged_index + 1)
        wal.repair(number, [entries[index] for index in wanted])
    wal.sync()
    return True


@pytest.mark.parametrize("release", [False, True])
def test_what_is_bounded_can_be_repaired_for_good(release: bool) -> None:
    contents, _, after = reference(release=release)
    repairs = 0
    for name, position in flips(contents)[::3]:
        damaged = bytearray(contents[name])
        damaged[position] ^= 0x80
        disk = disk_of({**contents, name: bytes(damaged)})
        wal = opened(disk)
        if all(one.damage is None for one in wal.recovered.groups.values()):
            continue
        if repaired(wal, after):
            repairs += 1
            assert state_of(wal) == after
            again = opened(disk)
            assert state_of(again) == after
            assert all(one.damage is None for one in again.recovered.groups.values())
    assert repairs > 100


def test_one_flip_never_costs_more_than_what_it_hits() -> None:
    """One damaged frame names one group; the others neither lose anything nor are suspected."""
    contents, _, _ = reference(release=False)
    for name, position in flips(contents)[::3]:
        damaged = bytearray(contents[name])
        damaged[position] ^= 0x80
        wal = opened(disk_of({**contents, name: bytes(damaged)}))
        hit = [number for number, one in wal.recovered.groups.items() if one.damage is not None]
        assert len(hit) <= 1, f"{name} at {position} hit {hit}"
        assert not wal.recovered.unknown_groups


def test_a_damaged_group_takes_no_appends_until_it_is_reset() -> None:
    from angarium.errors import CorruptData

    contents, _, _ = reference(release=False)
    wal = hit(contents, b"z" * 100)
    with pytest.raises(CorruptData, match="damaged"):
        wal.append(group(1), [entry(9, 5)])
    wal.append(group(1), (), hard_state(6, 0, 7))  # which is intact, and may move on
    wal.reset_group(group(1))
    wal.append(group(1), [entry(1, 6, b"fresh")], hard_state(6, 1, 0))
    wal.sync()
    assert state_of_group(wal, group(1))[2] == {1: entry(1, 6, b"fresh")}


def hit(contents: Mapping[str, bytes], payload: bytes) -> Wal:
    """Open the log with one byte of `payload` flipped."""
    changed: dict[str, Any] = dict(contents)
    (name,) = [name for name, content in contents.items() if payload in content]
    damaged = bytearray(contents[name])
    damaged[contents[name].index(payload) + len(payload) // 2] ^= 4
    return opened(disk_of({**changed, name: bytes(damaged)}))


def test_a_damaged_payload_names_its_index() -> None:
    contents, _, _ = reference(release=False)
    wal = hit(contents, b"z" * 100)
    damages = {number: one.damage for number, one in wal.recovered.groups.items() if one.damage}
    expected = Damage(
        first_damaged_index=Index(7), last_damaged_index=Index(7), hard_state_intact=True
    )
    assert damages == {group(1): expected}


def test_damage_to_what_was_superseded_or_compacted_is_harmless() -> None:
    contents, _, after = reference(release=False)
    for payload in (b"one", b"old", b"gone soon"):
        wal = hit(contents, payload)
        assert state_of(wal) == after
        assert all(one.damage is None for one in wal.recovered.groups.values())
