"""Compaction: what stays, that everybody comes to the same bytes, and that crashes cost nothing."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.cutting_disk import Cut, CuttingDisk

from angarium.batch import Batch, Codec, encode, stamp
from angarium.errors import DiskFull
from angarium.ids import Micros, Offset, Term
from angarium.log.memory_disk import MemoryDisk
from angarium.log.os_disk import OsDisk
from angarium.log.scrub import Scrub
from angarium.log.segments import PartitionLog, SegmentConfig, SegmentImport, survivors
from angarium.log.segments.compacted_mark import Pass
from angarium.replica.work import do_now
from angarium.testing.disk import SimulatedDisk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from angarium.log.disk import Disk

FOLDER = "partition"
SMALL = SegmentConfig(segment_bytes=1_500, index_bytes=300, preallocate_bytes=512)
ALL = Offset(1 << 62)


class Told(NamedTuple):
    """A record as the model knows it."""

    offset: int
    key: bytes | None
    value: bytes | None
    time: int


@pytest.fixture(params=["memory", "simulated", "real"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    if request.param == "memory":
        return MemoryDisk()
    if request.param == "simulated":
        return SimulatedDisk(random.Random(7))
    return OsDisk(tmp_path)


Row = tuple[bytes | None, bytes | None]


def batch_of(rows: Sequence[Row], base: int, *, codec: Codec = Codec.NONE) -> bytearray:
    batch = encode(
        [value for _, value in rows],
        keys=[key for key, _ in rows],
        deliver_at=[base % 7 * 1_000] * len(rows),
        codec=codec,
    )
    stamp(batch, base_offset=Offset(base), term=Term(1), append_time=Micros(base * 10 + 1))
    return batch


class Owner:
    """A log with everything that was ever put into it, and what should be left of that."""

    def __init__(self, disk: Disk, *, config: SegmentConfig = SMALL) -> None:
        self.disk = disk
        self.config = config
        self.log = PartitionLog.open(disk, FOLDER, config)
        self.told: list[Told] = []
        self.goal = Pass()
        self.boundaries: list[int] = [0]

    def append(self, rows: Sequence[Row], *, codec: Codec = Codec.NONE) -> None:
        base = self.log.end_offset
        self.log.append([batch_of(rows, base, codec=codec)])
        self.told += [
            Told(base + at, key, value, base * 10 + 1) for at, (key, value) in enumerate(rows)
        ]
        self.boundaries.append(int(self.log.end_offset))

    def reopen(self) -> None:
        end = self.log.synced_offset
        self.log.close()
        self.log = PartitionLog.open(
            self.disk, FOLDER, self.config, start_offset=self.log.start_offset, durable_until=end
        )

    def want(self, until: int, tombstones_before: int = 0) -> None:
        """Ask for a compaction, as an entry of the log would: it never asks for less."""
        self.goal = Pass(
            max(Offset(until), self.goal.until),
            max(Micros(tombstones_before), self.goal.tombstones_before),
        )
        self.log.close_segment(self.goal.until)
        self.log.sync()

    def turn(self) -> bool:
        return do_now(self.log.compactor.turn(self.goal, limit=self.log.synced_offset))

    def compact(self) -> None:
        for _ in range(1_000):
            if not self.log.compactor.is_behind(self.goal):
                return
            self.turn()
        raise AssertionError("a compaction does not come to an end")

    def expected(self) -> list[Told]:
        return expected(self.told, self.goal, start=self.log.start_offset)

    def found(self) -> list[Told]:
        return [
            Told(one.offset, one.key, one.value, one.append_time)
            for data in frames(self.log)
            for one in Batch.parse(data, compacted=True)
            if one.offset >= self.log.start_offset
        ]

    def check(self) -> None:
        assert self.found() == self.expected()
        assert not self.log.damage
        assert all(found is None for found in Scrub(self.log))


def expected(told: list[Told], goal: Pass, *, start: int = 0) -> list[Told]:
    """Return what a compaction leaves, the slow and obvious way."""
    latest = {one.key: one.offset for one in told if one.offset < goal.until}
    return [
        one
        for one in told
        if one.offset >= start
        and (
            one.offset >= goal.until
            or one.key is None
            or (
                latest[one.key] == one.offset
                and (one.value is not None or one.time >= goal.tombstones_before)
            )
        )
    ]


def frames(log: PartitionLog) -> list[bytes]:
    """Return the batches of a log, gaps left out."""
    found: list[bytes] = []
    offset = log.start_offset
    while batches := log.read(offset, 700):
        found += map(bytes, batches)
        offset = Batch.trusted(batches[-1]).next_offset
    return found


def fill(owner: Owner, batches: int = 40, *, seed: int = 3, keys: int = 6) -> None:
    rng = random.Random(seed)
    for _ in range(batches):
        rows: list[Row] = []
        for _ in range(rng.randint(1, 4)):
            key = None if rng.random() < 0.05 else b"key-%d" % rng.randrange(keys)
            value = None if rng.random() < 0.2 else rng.randbytes(rng.randrange(60))
            rows.append((key, value))
        owner.append(rows, codec=rng.choice(list(Codec)))


def test_the_latest_record_of_each_key_stays_where_it_was(disk: Disk) -> None:
    owner = Owner(disk)
    fill(owner)
    owner.want(owner.log.end_offset)
    before = sum(segment.bytes for segment in owner.log.segments)
    owner.compact()
    owner.check()
    assert len(owner.found()) < len(owner.told) / 2
    assert sum(segment.bytes for segment in owner.log.segments) < before / 2
    owner.reopen()
    owner.check()
    fill(owner, seed=4)
    owner.want(owner.log.end_offset)
    owner.compact()
    owner.check()


def test_what_lies_above_the_goal_is_not_looked_at(disk: Disk) -> None:
    owner = Owner(disk)
    fill(owner)
    owner.want(owner.boundaries[20])
    owner.compact()
    owner.check()
    assert owner.found()[-1] == owner.told[-1]


def test_a_tombstone_goes_when_its_time_has_come_and_so_does_what_it_stands_for(
    disk: Disk,
) -> None:
    owner = Owner(disk)
    owner.append([(b"a", b"1"), (b"b", b"1")])
    owner.append([(b"a", None)])
    owner.append([(b"c", b"1")])
    end = int(owner.log.end_offset)
    owner.want(end)
    owner.compact()
    assert [one.key for one in owner.found()] == [b"b", b"a", b"c"]
    assert owner.log.compactor.oldest_tombstone == 21
    owner.want(end, 22)
    owner.compact()
    owner.check()
    assert [one.key for one in owner.found()] == [b"b", b"c"]
    assert owner.log.compactor.oldest_tombstone is None


def test_neighbours_that_have_become_small_are_put_together(disk: Disk) -> None:
    owner = Owner(disk)
    for number in range(60):
        owner.append([(b"always the same", b"%d" % number)])
    many = len(list(owner.log.segments))
    owner.want(owner.log.end_offset)
    owner.compact()
    owner.check()
    left = list(owner.log.segments)
    assert len(left) < many / 3
    assert sum(segment.bytes for segment in left) < 500
    owner.reopen()
    owner.check()
    assert owner.log.offset_at(Micros(301)) == 59


def test_a_reader_sees_gaps_as_gaps_and_can_begin_in_one(disk: Disk) -> None:
    owner = Owner(disk)
    fill(owner)
    owner.want(owner.log.end_offset)
    owner.compact()
    left = [one.offset for one in owner.expected()]
    for offset in range(owner.log.end_offset):
        batches = owner.log.read(Offset(offset), 1)
        later = [one for one in left if one >= offset]
        records = [one.offset for data in batches for one in Batch.trusted(data)]
        assert [one for one in records if one >= offset][:1] in ([], later[:1])
        assert owner.log.time_at(Offset(offset)) > 0 if later else True


def test_delays_of_what_stays_are_still_known(disk: Disk) -> None:
    owner = Owner(disk)
    fill(owner)
    owner.want(owner.log.end_offset)
    owner.compact()
    for _ in range(2):
        due = owner.log.delays.due((0, 1 << 63), 1 << 60, floor=0, limit=1_000)
        wanted = [
            (one.deliver_at, one.offset)
            for data in frames(owner.log)
            for one in Batch.trusted(data)
            if one.deliver_at
        ]
        assert due == sorted(wanted)
        owner.reopen()


def test_segments_that_change_nothing_are_left_alone(disk: Disk) -> None:
    owner = Owner(disk)
    for number in range(40):
        owner.append([(b"key %d" % number, b"x" * 40)])
    owner.want(owner.log.end_offset)
    whole = [one.crc for one in owner.log.segments if one.bytes * 4 >= SMALL.segment_bytes]
    owner.compact()
    owner.check()
    assert [one.crc for one in owner.log.segments][: len(whole)] == whole


def test_nothing_is_touched_that_no_snapshot_covers(disk: Disk) -> None:
    owner = Owner(disk)
    fill(owner)
    owner.want(owner.log.end_offset)
    before = frames(owner.log)
    for _ in range(5):
        limit = Offset(owner.log.end_offset - 1)
        assert not do_now(owner.log.compactor.turn(owner.goal, limit=limit))
    assert frames(owner.log) == before


def test_replicas_with_other_segments_and_other_steps_come_to_the_same_batches() -> None:
    one, two = Owner(MemoryDisk()), Owner(MemoryDisk(), config=SegmentConfig(segment_bytes=4_000))
    for owner in (one, two):
        fill(owner, 30)
    one.want(one.boundaries[10], 50)
    one.compact()
    one.want(one.boundaries[22], 200)
    one.turn()
    one.reopen()
    for owner in (one, two):
        fill(owner, 30, seed=9)
        owner.want(owner.boundaries[55], 300)
        owner.compact()
        owner.check()
    assert frames(one.log) == frames(two.log)
    assert one.log.compactor.stage == two.log.compactor.stage


def test_a_large_backlog_is_done_in_several_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("angarium.log.segments.compactor.PASS_RECORDS_MAX", 9)
    one, two = Owner(MemoryDisk()), Owner(MemoryDisk())
    for owner in (one, two):
        fill(owner)
        owner.want(owner.log.end_offset, 120)
    one.compact()
    monkeypatch.setattr(
        "angarium.log.segments.compactor.PASS_RECORDS_MAX", survivors.PASS_RECORDS_MAX
    )
    two.compact()
    one.check()
    assert frames(one.log) == frames(two.log)


def test_trims_in_the_middle_of_a_pass_do_no_harm(disk: Disk) -> None:
    owner = Owner(disk)
    fill(owner)
    owner.want(owner.log.end_offset)
    step = 0
    while owner.log.compactor.is_behind(owner.goal):
        step += 1
        owner.log.trim(Offset(min(owner.boundaries[step * 2], owner.log.end_offset)))
        owner.log.collect()
        owner.turn()
    assert step > 3
    owner.check()


def test_a_full_disk_leaves_everything_as_it_was() -> None:
    disk = SimulatedDisk(random.Random(1))
    owner = Owner(disk)
    fill(owner)
    owner.want(owner.log.end_offset)
    before = owner.found()
    owner.turn()  # the first one learns the keys, and may rewrite something
    disk.capacity_bytes = disk.used_bytes()
    with suppress(DiskFull):
        for _ in range(20):
            owner.turn()
    disk.capacity_bytes = 1 << 30
    assert set(owner.expected()) <= set(owner.found()) <= set(before)
    owner.compact()
    owner.check()


def test_a_copy_for_a_peer_knows_how_far_it_is_compacted() -> None:
    owner = Owner(MemoryDisk())
    fill(owner)
    owner.want(owner.boundaries[30])
    owner.compact()
    fill(owner, 5, seed=8)
    owner.log.sync()
    peer = Owner(MemoryDisk())
    fill(peer, 6)  # what it had before is replaced
    peer.log.close()
    importing = SegmentImport.begin(peer.disk, FOLDER, owner.log.manifest())
    while (wanted := importing.missing()) is not None:
        data = owner.log.read_segment(wanted.segment, wanted.position, wanted.length)
        importing.write(wanted.segment, wanted.position, data)
    importing.finish()
    peer.log = PartitionLog.open(peer.disk, FOLDER, SMALL, durable_until=owner.log.end_offset)
    assert peer.log.compactor.stage == owner.log.compactor.stage
    peer.told, peer.boundaries = owner.told, owner.boundaries
    for one in (owner, peer):
        one.want(owner.boundaries[-1])
        one.compact()
        one.check()
    assert frames(peer.log) == frames(owner.log)


# --- crashes --------------------------------------------------------------------------------


def story(disk: Disk, goals: Sequence[tuple[int, int]]) -> None:
    owner = Owner(disk)
    fill(owner, 16)
    for boundary, before in goals:
        owner.want(owner.boundaries[boundary], before)
        owner.compact()


@pytest.mark.parametrize("goals", [((16, 0),), ((9, 100), (16, 300))])
def test_a_power_cut_at_any_moment_costs_neither_a_record_nor_a_deletion(
    goals: tuple[tuple[int, int], ...],
) -> None:
    whole = Owner(MemoryDisk())
    fill(whole, 16)
    whole.want(whole.boundaries[16], goals[-1][1])
    whole.compact()
    counting = CuttingDisk(MemoryDisk())
    Owner(counting)
    fill_owner = Owner(counting)
    fill(fill_owner, 16)
    fill_owner.log.sync()
    first = counting.changes // 2
    counting = CuttingDisk(MemoryDisk())
    story(counting, goals)
    for changes in range(first, counting.changes):
        below = SimulatedDisk(random.Random(changes))
        with suppress(Cut):
            story(CuttingDisk(below, changes_max=changes), goals)
        below.power_loss()
        after = Owner(below)
        for row in rows_of(whole):  # the write-ahead log brings everything again
            after.log.append([row])
        after.told, after.boundaries = whole.told, whole.boundaries
        after.want(whole.boundaries[16], goals[-1][1])
        after.compact()
        after.check()
        assert frames(after.log) == frames(whole.log), changes


def rows_of(owner: Owner) -> list[bytearray]:
    """Return the batches as they were before the compaction."""
    again = Owner(MemoryDisk())
    fill(again, 16)
    return [bytearray(data) for data in frames(again.log)]


# --- anything -------------------------------------------------------------------------------

keys = st.one_of(st.none(), st.sampled_from([b"a", b"b", b"c", b"dd"]))
rows = st.lists(
    st.tuples(keys, st.one_of(st.none(), st.binary(max_size=80))), min_size=1, max_size=4
)
steps = st.lists(
    st.one_of(
        rows,
        st.tuples(st.just("want"), st.integers(0, 40), st.integers(0, 300)),
        st.sampled_from(["turn", "turn", "compact", "reopen", "sync", "trim", "skip"]),
    ),
    max_size=30,
)


@settings(max_examples=200, deadline=None)
@given(steps)
def test_whatever_happens_in_between_the_end_is_the_same(
    steps: list[list[Row] | tuple[str, int, int] | str],
) -> None:
    owner = Owner(MemoryDisk())
    for step in steps:
        if isinstance(step, list):
            owner.append(step)
        elif isinstance(step, tuple):
            boundary = owner.boundaries[min(step[1], len(owner.boundaries) - 1)]
            owner.want(boundary, step[2])
        elif step == "turn":
            owner.turn()
        elif step == "compact":
            owner.compact()
        elif step == "reopen":
            owner.log.sync()
            owner.reopen()
        elif step == "sync":
            owner.log.sync()
        elif step == "trim":
            owner.log.trim(Offset(owner.boundaries[len(owner.boundaries) // 3]))
            owner.log.collect()
        else:
            owner.log.skip_to(Offset(owner.log.end_offset + 3))
            owner.boundaries.append(int(owner.log.end_offset))
    owner.compact()
    owner.check()
    once = Owner(MemoryDisk())
    once.log.close()
    assert frames(owner.log) == at_once(owner)


def at_once(owner: Owner) -> list[bytes]:
    """Return the batches that stay, made from the original ones in one step."""
    left: dict[int, list[int]] = {}
    by_base: dict[int, list[Told]] = {}
    for one in owner.told:
        by_base.setdefault((one.time - 1) // 10, []).append(one)
    stays = {one.offset for one in expected(owner.told, owner.goal)}
    for base, told in by_base.items():
        left[base] = [at for at, one in enumerate(told) if one.offset in stays]
    found = []
    for base, told in sorted(by_base.items()):
        data = batch_of([(one.key, one.value) for one in told], base)
        batch = Batch.trusted(data)
        if batch.next_offset <= owner.log.start_offset or not left[base]:
            continue
        whole = len(left[base]) == len(told)
        found.append(bytes(data) if whole else bytes(batch.retain(left[base], codec=Codec.NONE)))
    return found
