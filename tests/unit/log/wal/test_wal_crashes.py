"""Kills and power losses at any moment, beside a model: what was synced is there, all of it.

A seed gives a life story: random appends, supersessions, compactions, snapshots, groups that come
and go, marks, releases, clean stops, and a crash before some change of the disk. After each crash
the log must equal the model after the last published sync round, or after the one that was being
written; and it must never call a torn write damage.
"""

from __future__ import annotations

import random

import pytest
from tests.unit.log.cutting_disk import Cut, CuttingDisk

from angarium.ids import Incarnation, Index, RaftGroupId, ReplicaId, Term
from angarium.log.wal import SyncRound, Wal, WalConfig
from angarium.raft.errors import Compacted, Unavailable
from angarium.raft.messages import Entry, EntryKind, HardState
from angarium.testing.disk import SimulatedDisk

INCARNATION = Incarnation(42)
MANY_BYTES = 1 << 40


class GroupModel:
    """What one group's log ought to be."""

    def __init__(self) -> None:
        self.hard_state = HardState()
        self.snapshot = (0, 0)
        self.entries: list[Entry] = []

    @property
    def last(self) -> int:
        return self.snapshot[0] + len(self.entries)

    def term(self, index: int) -> int:
        base, term = self.snapshot
        return term if index == base else self.entries[index - base - 1].term

    def append(self, entries: list[Entry]) -> None:
        del self.entries[entries[0].index - self.snapshot[0] - 1 :]
        self.entries += entries

    def compact(self, index: int, term: int) -> None:
        keep = index <= self.last and self.term(index) == term
        self.entries = self.entries[index - self.snapshot[0] :] if keep else []
        self.snapshot = (index, term)


Model = dict[int, GroupModel]


def copied(model: Model) -> Model:
    copies: Model = {}
    for number, one in model.items():
        copies[number] = copy = GroupModel()
        copy.hard_state, copy.snapshot, copy.entries = one.hard_state, one.snapshot, [*one.entries]
    return copies


class Story:
    """One disk, one log after another on it, and the model."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disk = SimulatedDisk(random.Random(seed + 1))
        self.config = WalConfig(
            file_bytes=4096 * self.rng.choice([1, 2, 5, 40]),
            reserve_bytes=4096,
            cache_bytes=self.rng.choice([0, 3000, 10**9]),
        )
        self.model: Model = {}
        """With everything that was appended."""
        self.published: Model = {}
        self.in_flight: list[tuple[SyncRound, Model]] = []
        self.is_writing = False
        self.term = 1
        self.next_round = 1
        self.crashes = 0

    def run(self, lives: int) -> None:
        for _ in range(lives):
            cutting = CuttingDisk(self.disk, changes_max=self.rng.choice([0, 1, 3, 10, 40]))
            try:
                self.wal = Wal.open(cutting, incarnation=INCARNATION, config=self.config)
                self.check_recovered()
                for _ in range(self.rng.randrange(60)):
                    self.step()
            except Cut:
                pass
            self.crashes += 1
            self.disk.power_loss() if self.rng.random() < 0.8 else self.disk.crash()

    def check_recovered(self) -> None:
        recovered = self.wal.recovered
        assert not recovered.unknown_groups
        assert [one for one in recovered.groups.values() if one.damage is not None] == []
        allowed = [self.published]
        if self.is_writing:
            allowed.append(self.in_flight[0][1])
        found = self.contents()
        matching = [model for model in allowed if contents_of(model) == found]
        assert matching, f"crash {self.crashes}: neither before nor after the last write"
        self.model = copied(matching[0])
        self.published = copied(matching[0])
        self.in_flight, self.is_writing = [], False
        self.check_reads()

    def contents(self) -> dict[int, object]:
        contents: dict[int, object] = {}
        for number in self.wal.groups:
            log = self.wal.log(number)
            first, last = log.first_index(), log.last_index()
            entries = list(log.entries(first, Index(last + 1), MANY_BYTES)) if last >= first else []
            while len(entries) <= last - first:
                entries += log.entries(Index(first + len(entries)), Index(last + 1), MANY_BYTES)
            snapshot = (log.snapshot_index, log.snapshot_term)
            contents[number] = (log.hard_state, snapshot, [plain(one) for one in entries])
        return contents

    def check_reads(self) -> None:
        for number, model in self.model.items():
            log = self.wal.log(RaftGroupId(number))
            base = model.snapshot[0]
            assert (log.first_index(), log.last_index()) == (base + 1, model.last)
            for index in range(base, model.last + 1):
                assert log.term(Index(index)) == model.term(index)
            if model.entries:
                lo = self.rng.randint(base + 1, model.last)
                hi = self.rng.randint(lo, model.last) + 1
                bytes_max = self.rng.choice([0, 500, 3000, MANY_BYTES])
                entries = log.entries(Index(lo), Index(hi), bytes_max)
                expected = model.entries[lo - base - 1 : hi - base - 1]
                assert 1 <= len(entries) <= len(expected)
                for found, one in zip(entries, expected, strict=False):
                    assert plain(found) == plain(one)
            with pytest.raises(Unavailable):
                log.term(Index(model.last + 1))
            if base:
                with pytest.raises(Compacted):
                    log.term(Index(base - 1))

    def step(self) -> None:
        actions = [self.append] * 8 + [self.sync] * 4 + [self.pipeline] * 2 + [self.add_group]
        actions += [self.hard_state, self.install, self.wal_release]
        actions += [self.compact, self.wal_mark] * 3
        actions += [self.remove_group] * (self.rng.random() < 0.2)
        actions += [self.stop_cleanly] * (self.rng.random() < 0.1)
        if not self.model:
            actions = [self.add_group]
        self.rng.choice(actions)()
        if self.rng.random() < 0.1:
            self.check_reads()

    def any_group(self) -> tuple[RaftGroupId, GroupModel]:
        number = self.rng.choice(list(self.model))
        return RaftGroupId(number), self.model[number]

    def append(self) -> None:
        group, model = self.any_group()
        self.term += self.rng.random() < 0.2
        lowest = max(model.hard_state.commit, model.snapshot[0]) + 1
        index = model.last + 1
        if self.rng.random() < 0.2:
            index = self.rng.randint(min(lowest, index), index)
        entries = [
            Entry(Term(self.term), Index(index + n), self.data(), self.rng.choice(list(EntryKind)))
            for n in range(self.rng.randint(1, 4))
        ]
        state = None
        if self.rng.random() < 0.5:
            commit = self.rng.randint(min(lowest - 1, index - 1), index - 1)
            commit = max(commit, model.hard_state.commit)
            state = HardState(Term(self.term), ReplicaId(self.rng.randrange(4)), Index(commit))
        self.wal.append(group, entries, state)
        model.append(entries)
        if state is not None:
            model.hard_state = state

    def data(self) -> bytes | bytearray | memoryview:
        size = self.rng.choice([0, 1, 7, 8, 30, 100, 500, 505, 512, 700, 1100, 2500])
        if self.rng.random() < 0.02:
            size = self.rng.randrange(32_000, 40_000)
        fill = self.rng.random()
        data = bytes(size) if fill < 0.2 else self.rng.randbytes(size)
        if fill > 0.9 and size > 1000:
            data = data[:300] + bytes(size - 310) + b"0123456789"
        forms: list[bytes | bytearray | memoryview] = [data, bytearray(data), memoryview(data)]
        return self.rng.choice(forms)

    def hard_state(self) -> None:
        group, model = self.any_group()
        commit = self.rng.randint(min(model.hard_state.commit, model.last), model.last)
        commit = max(commit, model.hard_state.commit)
        state = HardState(Term(self.term), ReplicaId(self.rng.randrange(4)), Index(commit))
        self.wal.append(group, (), state)
        model.hard_state = state

    def compact(self) -> None:
        group, model = self.any_group()
        commit = min(model.hard_state.commit, model.last)
        if commit > model.snapshot[0]:
            index = self.rng.randint(model.snapshot[0] + 1, commit)
            term = model.term(index)
            self.wal.compact(group, Index(index), Term(term))
            model.compact(index, term)

    def install(self) -> None:
        group, model = self.any_group()
        if self.rng.random() < 0.3:
            index = max(model.last, model.hard_state.commit) + self.rng.randint(1, 50)
            self.term += 1
            self.wal.compact(group, Index(index), Term(self.term))
            model.compact(index, self.term)

    def add_group(self) -> None:
        if len(self.model) < 6:
            self.wal.add_group(RaftGroupId(self.next_round))
            self.model[self.next_round] = GroupModel()
            self.next_round += 1

    def remove_group(self) -> None:
        group, _ = self.any_group()
        if self.rng.random() < 0.5:
            self.wal.remove_group(group)
            del self.model[group]
        else:
            self.wal.reset_group(group)
            self.model[group] = GroupModel()

    def wal_mark(self) -> None:
        self.wal.mark()

    def wal_release(self) -> None:
        self.wal.release()

    def seal(self) -> None:
        group = self.wal.seal()
        if group is not None:
            self.in_flight.append((group, copied(self.model)))

    def write_one(self) -> None:
        if self.in_flight:
            group, model = self.in_flight[0]
            self.is_writing = True
            group.write()
            self.wal.synced(group)
            self.is_writing = False
            self.published = model
            self.in_flight.pop(0)

    def sync(self) -> None:
        self.seal()
        while self.in_flight:
            self.write_one()

    def pipeline(self) -> None:
        """Seal while an earlier group is still on its way."""
        self.seal()
        if len(self.in_flight) > 2:
            self.write_one()

    def stop_cleanly(self) -> None:
        self.sync()
        self.wal.close()
        cutting = CuttingDisk(self.disk, changes_max=self.rng.choice([0, 3, 10, 40]))
        self.wal = Wal.open(cutting, incarnation=INCARNATION, config=self.config)
        self.check_recovered()


def plain(entry: Entry) -> tuple[int, int, bytes, EntryKind]:
    return entry.term, entry.index, bytes(entry.data), entry.kind


def contents_of(model: Model) -> dict[int, object]:
    return {
        number: (one.hard_state, one.snapshot, [plain(entry) for entry in one.entries])
        for number, one in model.items()
    }


@pytest.mark.parametrize("seed", range(150))
def test_what_was_synced_survives_and_nothing_torn_is_called_damage(seed: int) -> None:
    Story(seed).run(lives=12)
