"""Delayed records are found by their time, wherever they lie, on all three disks."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.cutting_disk import Cut, CuttingDisk

from angarium.batch import Batch, encode, stamp
from angarium.ids import Micros, Offset, Term
from angarium.log.memory_disk import MemoryDisk
from angarium.log.os_disk import OsDisk
from angarium.log.segments import PartitionLog, SegmentConfig, SegmentImport, delay_file, delay_runs
from angarium.log.segments.names import DELAYS, SEGMENT, file_name, offsets_named
from angarium.testing.disk import SimulatedDisk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from angarium.log.disk import Disk

FOLDER = "partition"
SMALL = SegmentConfig(segment_bytes=1_500, index_bytes=300, preallocate_bytes=512)
LAST = 1 << 63
FOREVER = 1 << 60


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few records make a run and a block, so that small logs have many."""
    monkeypatch.setattr(delay_runs, "RUN_RECORDS", 4)
    monkeypatch.setattr(delay_file, "BLOCK_RECORDS", 3)


@pytest.fixture(params=["memory", "simulated", "real"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    if request.param == "memory":
        return MemoryDisk()
    if request.param == "simulated":
        return SimulatedDisk(random.Random(7))
    return OsDisk(tmp_path)


def opened(disk: Disk, *, durable_until: int = 0) -> PartitionLog:
    return PartitionLog.open(disk, FOLDER, SMALL, durable_until=Offset(durable_until))


class Model:
    """A log, and a plain list of what it should say."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.log = opened(disk)
        self.delayed: list[tuple[int, int]] = []
        self.batches: list[bytearray] = []

    def append(self, times: Sequence[int], *, kept: Sequence[int] | None = None) -> None:
        base = self.log.end_offset
        batch = encode([b"x" * 20] * len(times), deliver_at=times)
        stamp(batch, base_offset=base, term=Term(1), append_time=Micros(base + 1))
        if kept is not None:
            batch = Batch.trusted(batch).retain(kept)
        self.log.append([batch])
        self.batches.append(batch)
        places = range(len(times)) if kept is None else kept
        self.delayed += [(times[at], base + at) for at in places if times[at]]

    def due(
        self, after: tuple[int, int], until: int, floor: int, limit: int
    ) -> list[tuple[int, int]]:
        start = max(floor, self.log.start_offset)
        found = (one for one in self.delayed if after < one and one[0] <= until and one[1] >= start)
        return sorted(found)[:limit]

    def check(
        self, after: tuple[int, int] = (0, LAST), until: int = FOREVER, floor: int = 0
    ) -> None:
        floor = max(floor, self.log.start_offset)
        for limit in (1, 3, 10_000):
            found = self.log.delays.due(after, until, floor=floor, limit=limit)
            assert found == self.due(after, until, floor, limit)
        later = [one[0] for one in self.due((after[0], LAST), FOREVER, floor, 1)]
        assert self.log.delays.next_due(after[0], floor=floor) == (later[0] if later else None)

    def check_all(self) -> None:
        times = sorted({time for time, _ in self.delayed})
        for time in [0, *times]:
            for floor in (0, self.log.end_offset // 2):
                self.check((time, LAST), floor=floor)
                self.check((time, self.log.end_offset // 2), time + 5, floor)

    def reopen(self) -> None:
        self.log.close()
        self.log = opened(self.disk, durable_until=self.log.synced_offset)


@pytest.fixture
def model(disk: Disk) -> Model:
    return Model(disk)


def fill(model: Model, batches: int = 30, *, seed: int = 1) -> None:
    rng = random.Random(seed)
    for _ in range(batches):
        count = rng.randint(1, 4)
        kind = rng.randrange(4)
        if kind == 0:
            model.append([0] * count)
        elif kind == 1:
            model.append([rng.randint(1, 50)] * count)
        else:
            model.append([rng.choice((0, rng.randint(1, 50))) for _ in range(count)])


def test_they_are_found_in_memory_on_disk_and_after_opening_again(model: Model) -> None:
    fill(model)
    model.check_all()
    model.log.sync()
    assert offsets_named(model.disk, FOLDER, DELAYS), "sealed segments have files"
    model.check_all()
    model.reopen()
    model.check_all()
    fill(model, seed=2)
    model.check_all()


def test_records_of_a_compacted_batch_are_found_under_their_own_offsets(model: Model) -> None:
    model.append([9, 5, 0, 7], kept=[1, 2, 3])
    fill(model, 12)
    model.check_all()
    model.log.sync()
    model.check_all()


def test_a_segment_without_delays_has_no_file(disk: Disk) -> None:
    model = Model(disk)
    for _ in range(30):
        model.append([0, 0])
    model.log.sync()
    assert len(offsets_named(disk, FOLDER, SEGMENT)) > 1
    assert offsets_named(disk, FOLDER, DELAYS) == []
    assert model.log.delays.next_due(0, floor=0) is None


def test_files_that_are_missing_are_made_again(model: Model) -> None:
    fill(model)
    model.log.sync()
    names = offsets_named(model.disk, FOLDER, DELAYS)
    model.reopen()
    for base in names:
        model.disk.remove(file_name(FOLDER, base, DELAYS))
    lacking = model.log.delays.lacking()
    assert [one.base_offset for one in lacking] == names
    model.log.delays.make(lacking[0])  # as housekeeping does; the others when they are asked for
    model.check_all()
    assert offsets_named(model.disk, FOLDER, DELAYS) == names


def test_a_flipped_bit_in_a_file_is_noticed_and_the_file_made_again(model: Model) -> None:
    fill(model)
    model.log.sync()
    base = offsets_named(model.disk, FOLDER, DELAYS)[0]
    name = file_name(FOLDER, base, DELAYS)
    file = model.disk.open(name)
    size = file.size()
    for position in range(0, size, 5):
        byte = file.pread(1, position)
        file.pwrite([bytes([byte[0] ^ 16])], position)
        model.reopen()
        model.check_all()
        file.close()
        file = model.disk.open(name)
    file.close()


def test_a_file_of_other_bytes_is_not_believed(model: Model) -> None:
    fill(model)
    model.log.sync()
    first, second, *_ = offsets_named(model.disk, FOLDER, DELAYS)
    model.log.close()
    model.disk.rename(file_name(FOLDER, second, DELAYS), file_name(FOLDER, first, DELAYS))
    model.reopen()
    model.check_all()


def test_files_go_with_their_segments(model: Model) -> None:
    fill(model)
    model.log.sync()
    model.check_all()
    names = offsets_named(model.disk, FOLDER, DELAYS)
    model.log.trim(Offset(model.log.end_offset // 2))
    assert model.log.collect()
    assert len(offsets_named(model.disk, FOLDER, DELAYS)) < len(names)
    model.check_all()
    model.reopen()
    model.check_all()


def test_an_imported_log_knows_its_delays(model: Model) -> None:
    fill(model)
    model.log.sync()
    other = MemoryDisk()
    importing = SegmentImport.begin(other, FOLDER, model.log.manifest())
    while (wanted := importing.missing()) is not None:
        data = model.log.read_segment(wanted.segment, wanted.position, wanted.length)
        importing.write(wanted.segment, wanted.position, data)
    importing.finish()
    copy = Model(other)
    copy.log = opened(other, durable_until=model.log.end_offset)
    copy.delayed = model.delayed
    copy.check_all()


def test_files_whose_segment_is_gone_are_removed_at_opening(model: Model) -> None:
    fill(model)
    model.log.sync()
    stray = file_name(FOLDER, Offset(999_999), DELAYS)
    model.disk.create(stray).close()
    model.reopen()
    assert not model.disk.exists(stray)


def test_a_crash_at_any_moment_costs_no_delay() -> None:
    def story(disk: Disk) -> Model:
        model = Model(disk)
        fill(model, 14)
        model.log.sync()
        model.log.trim(Offset(10))
        model.log.collect()
        return model

    counting = CuttingDisk(MemoryDisk())
    whole = story(counting)
    for changes in range(counting.changes):
        below = SimulatedDisk(random.Random(changes))
        with suppress(Cut):
            story(CuttingDisk(below, changes_max=changes))
        below.power_loss()
        after = Model(below)
        for batch in whole.batches:  # the write-ahead log brings everything again
            if Batch.trusted(batch).base_offset >= after.log.start_offset:
                after.log.append([batch])
        after.delayed = whole.delayed
        after.check_all()


times = st.integers(0, 30)
steps = st.lists(
    st.one_of(
        st.lists(times, min_size=1, max_size=5),
        st.sampled_from(["sync", "write", "reopen", "trim", "lose a file"]),
    ),
    max_size=25,
)
questions = st.tuples(
    st.integers(0, 31),
    st.one_of(st.just(LAST), st.integers(0, 40)),
    st.integers(0, 31),
    st.integers(0, 40),
)


@settings(max_examples=150, deadline=None)
@given(steps, st.lists(questions, min_size=1, max_size=6))
def test_whatever_happened_the_answers_are_those_of_a_plain_list(
    steps: list[list[int] | str], questions: list[tuple[int, int, int, int]]
) -> None:
    model = Model(MemoryDisk())
    for step in steps:
        if isinstance(step, list):
            model.append(step)
        elif step == "sync":
            model.log.sync()
        elif step == "write":
            flush = model.log.take(sync=False)
            if flush is not None:
                model.log.write(flush)
                model.log.flushed(flush)
        elif step == "reopen":
            model.log.sync()
            model.reopen()
        elif step == "trim":
            model.log.trim(Offset(model.log.end_offset // 2))
            model.log.collect()
        else:
            for base in offsets_named(model.disk, FOLDER, DELAYS)[:1]:
                model.disk.remove(file_name(FOLDER, base, DELAYS))
                model.log.delays.forget(base)
        for time, offset, until, floor in questions:
            model.check((time, offset), max(time, until), floor)
