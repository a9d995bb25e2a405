"""Two drivers and one archive: each record is in it once, in each form, whatever the order."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from tests.component.spark.test_spark_lakes import FIRST, SECOND, add, offsets, written

from angarium.errors import (
    AngariumError,
    ArchiveAdvanced,
    FilesChanged,
    InvalidArgument,
    PreconditionFailed,
)
from angarium.spark.history import ArchivedCluster
from angarium.spark.lake import Lake, LakeForm
from angarium.spark.lakes import delta, iceberg, manifest, marks, parquet
from angarium.spark.lakes.contents import file_row
from angarium.spark.ranges import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FORMS = {LakeForm.DELTA: delta, LakeForm.PARQUET: parquet, LakeForm.ICEBERG: iceberg}
DRIVERS = 4
"""Threads that archive the same at once."""


@pytest.fixture(params=[form.value for form in LakeForm])
def form(request: pytest.FixtureRequest) -> LakeForm:
    needs = {"delta": "deltalake", "iceberg": "pyiceberg"}
    if request.param in needs:
        pytest.importorskip(needs[request.param], reason="an extra is not installed")
    return LakeForm(request.param)


@pytest.fixture
def lake(form: LakeForm, tmp_path: Path) -> Lake:
    made = Lake(str(tmp_path / "lake"), form)
    made.create()
    return made


def between(
    monkeypatch: pytest.MonkeyPatch, lake: Lake, name: str, action: Callable[[], object]
) -> None:
    """Have another driver do something once, after the next comparison and before its commit."""
    module = FORMS[lake.form]
    compare = getattr(module, name)
    waiting = [action]

    def compared(*args: Any, **named: Any) -> None:
        compare(*args, **named)
        if waiting:
            waiting.pop()()

    monkeypatch.setattr(module, name, compared)


def left_over(lake: Lake) -> set[str]:
    """Return the data files in the folder that do not count."""
    found = {path.name for path in lake.path.rglob("*.parquet") if "_delta_log" not in path.parts}
    return found - {path.rpartition("/")[2] for path in lake.files()}


def test_a_driver_thought_dead_does_not_add_what_another_one_has_archived(lake: Lake) -> None:
    other = Lake(str(lake.path))
    since = lake.archived_to([FIRST, SECOND])
    late = [written(lake, FIRST, 0, 5), written(lake, SECOND, 0, 5)]
    add(other, [written(other, FIRST, 0, 7)], {FIRST: 7})
    with pytest.raises(
        ArchiveAdvanced, match=r"archived up to 7 in .*began from 0.*Read the marks"
    ):
        lake.add(late, {FIRST: 5, SECOND: 5}, since=since)
    assert offsets(lake) == [(0, offset) for offset in range(7)]
    assert lake.archived_to([FIRST, SECOND]) == {FIRST: 7}
    assert left_over(lake) == set()
    # It goes on from the marks that are there.
    add(lake, [written(lake, SECOND, 0, 5)], {SECOND: 5})
    assert len(offsets(lake)) == 12


@pytest.mark.parametrize("has_files", [True, False])
@pytest.mark.parametrize("other_has_files", [True, False])
def test_a_commit_between_comparison_and_commit_refuses_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, has_files: bool, other_has_files: bool
) -> None:
    other = Lake(str(lake.path))

    def files(of: Lake, *, wanted: bool) -> list[Any]:
        return [written(of, FIRST, 3, 5)] if wanted else []

    add(lake, [written(lake, FIRST, 0, 3)], {FIRST: 3})
    late, first = files(lake, wanted=has_files), files(other, wanted=other_has_files)
    between(
        monkeypatch, lake, "check_marks", lambda: other.add(first, {FIRST: 5}, since={FIRST: 3})
    )
    with pytest.raises(ArchiveAdvanced, match=r"archived up to 5 in .*began from 3"):
        lake.add(late, {FIRST: 5}, since={FIRST: 3})
    assert offsets(lake) == [(0, offset) for offset in range(5 if other_has_files else 3)]
    assert left_over(lake) == set()


def test_a_commit_is_repeated_if_only_files_changed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for start in range(0, 30, 10):
        add(lake, [written(lake, FIRST, start, start + 10)], {FIRST: start + 10})
    since = lake.archived_to([FIRST])
    late = [written(lake, FIRST, 30, 40)]
    other = Lake(str(lake.path))
    between(monkeypatch, lake, "check_marks", other.compact)
    lake.add(late, {FIRST: 40}, since=since)
    assert offsets(lake) == [(0, offset) for offset in range(40)]
    assert len(lake.files()) == 2
    # So it is by records of another partition.
    since = lake.archived_to([FIRST])
    between(
        monkeypatch,
        lake,
        "check_marks",
        lambda: add(other, [written(other, SECOND, 0, 1)], {SECOND: 1}),
    )
    lake.add([written(lake, FIRST, 40, 41)], {FIRST: 41}, since=since)
    assert len(offsets(lake)) == 42
    assert lake.archived_to([FIRST, SECOND]) == {FIRST: 41, SECOND: 1}


def test_of_two_compactions_at_once_one_is_refused(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for start in range(0, 30, 10):
        add(lake, [written(lake, FIRST, start, start + 10)], {FIRST: start + 10})
    other = Lake(str(lake.path))
    between(monkeypatch, lake, "check_listed", other.compact)
    with pytest.raises(PreconditionFailed, match="another compaction has replaced the same files"):
        lake.compact()
    assert offsets(lake) == [(0, offset) for offset in range(30)]
    assert len(lake.files()) == 1


def test_a_compaction_goes_on_if_files_were_added(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for start in range(0, 30, 10):
        add(lake, [written(lake, FIRST, start, start + 10)], {FIRST: start + 10})
    other = Lake(str(lake.path))
    late = [written(other, FIRST, 30, 40)]
    between(
        monkeypatch,
        lake,
        "check_listed",
        lambda: other.add(late, {FIRST: 40}, since={FIRST: 30}),
    )
    assert lake.compact() == {"numFilesAdded": 1, "numFilesRemoved": 3}
    assert offsets(lake) == [(0, offset) for offset in range(40)]
    assert len(lake.files()) == 2


def test_many_drivers_at_once_archive_each_record_once(form: LakeForm, tmp_path: Path) -> None:
    gate = threading.Barrier(DRIVERS, timeout=60)
    refused: list[AngariumError] = []

    def drive(number: int) -> None:
        gate.wait()
        lake = Lake(str(tmp_path / "lake"), form)
        lake.create()
        for stop in range(10, 60, 10):
            since = lake.archived_to([FIRST])
            gate.wait()
            files = [written(lake, FIRST, since.get(FIRST, 0), stop)]
            try:
                lake.add(files, {FIRST: stop}, since=since)
            except ArchiveAdvanced as error:
                refused.append(error)
            gate.wait()
            if number == 0 and stop == 30:
                lake.compact()

    with ThreadPoolExecutor(DRIVERS) as threads:
        list(threads.map(drive, range(DRIVERS)))
    lake = Lake(str(tmp_path / "lake"))
    assert offsets(lake) == [(0, offset) for offset in range(50)]
    assert len(refused) == 5 * (DRIVERS - 1)


def test_files_count_if_a_commit_was_carried_out_though_it_seemed_refused(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.table
    commit = type(table).add

    def lost(*args: Any, **named: Any) -> None:
        commit(*args, **named)
        monkeypatch.undo()
        raise FilesChanged("the answer was lost")

    monkeypatch.setattr(type(table), "add", lost)
    lake.add([written(lake, FIRST, 0, 5)], {FIRST: 5}, since={})
    assert offsets(lake) == [(0, offset) for offset in range(5)]


def test_files_that_were_removed_meanwhile_are_not_added(lake: Lake) -> None:
    file = written(lake, FIRST, 0, 5)
    (lake.path / file.path).unlink()
    with pytest.raises(PreconditionFailed, match="archive its records again"):
        lake.add([file], {FIRST: 5}, since={})
    assert lake.archived_to([FIRST]) == {}


def test_a_commit_gives_up_if_the_table_never_stands_still(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "_WAIT_S", 0.0)
    tries: list[int] = []

    def never(*_: Any, **__: Any) -> None:
        tries.append(1)
        raise FilesChanged("changed")

    monkeypatch.setattr(type(lake.table), "add", never)
    with pytest.raises(FilesChanged):
        lake.add([], {FIRST: 5}, since={})
    assert len(tries) == marks.COMMITS_TRIED


def test_a_plan_reads_what_was_archived_since_the_archive_was_opened(lake: Lake) -> None:
    add(lake, [written(lake, FIRST, 0, 5)], {FIRST: 5})
    cluster = ArchivedCluster(None, str(lake.path))  # type: ignore[arg-type]
    add(lake, [written(lake, FIRST, 5, 9)], {FIRST: 9})
    old, new = cluster.parted([OffsetRange("orders", 0, 0, 12, 7)])
    assert len(old) == 2
    assert [(one.start, one.stop) for one in new] == [(9, 12)]


# --- one form each ------------------------------------------------------------------------------


def test_a_number_of_the_manifest_that_is_free_again_is_not_taken(tmp_path: Path) -> None:
    """A driver suspended for hundreds of commits writes an entry that no reader follows."""
    lake = Lake(str(tmp_path), LakeForm.PARQUET)
    lake.create()
    entries = manifest.Manifest(tmp_path / parquet.OWN)
    stale = entries.state()
    for number in range(1, 2 * manifest.ENTRIES_PER_WHOLE + 2):
        add(lake, [], {SECOND: number})
    file = written(lake, FIRST, 0, 3)
    late = manifest.file_entry(file_row(file), file.path.removeprefix(parquet.NEW))
    entry = manifest.Entry(added=[late], ends=[("orders", 7, 0, 3)])
    with pytest.raises(FilesChanged):
        entries.append(stale, entry)
    assert lake.archived_to([FIRST]) == {}
    assert lake.files() == []
    lake.add([file], {FIRST: 3}, since={})
    assert len(offsets(lake)) == 3


def test_an_iceberg_table_of_an_earlier_version_repeats_no_commit_either(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg", reason="an extra is not installed")
    lake = Lake(str(tmp_path / "lake"), LakeForm.ICEBERG)
    lake.create()
    table: Any = lake.table
    with table.table.transaction() as change:
        change.remove_properties(iceberg.RETRIES)
    add(lake, [written(lake, FIRST, 0, 3)], {FIRST: 3})
    assert table.table.properties[iceberg.RETRIES] == "0"


@pytest.mark.parametrize(("form", "needs"), [("delta", "deltalake"), ("iceberg", "pyiceberg")])
def test_an_archive_without_its_extra_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, needs: str
) -> None:
    for name in [needs, *(name for name in sys.modules if name.startswith(f"{needs}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InvalidArgument, match="need the extra: pip install"):
        Lake(str(tmp_path / "lake"), LakeForm(form)).create()


def test_a_delta_table_of_another_protocol_is_not_compacted(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="an extra is not installed")
    lake = Lake(str(tmp_path / "lake"), LakeForm.DELTA)
    lake.create()
    for start in (0, 5):
        add(lake, [written(lake, FIRST, start, start + 5)], {FIRST: start + 5})
    changed = deltalake.DeltaTable(str(lake.path))
    changed.alter.add_feature(
        deltalake.TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
    )
    with pytest.raises(PreconditionFailed, match="has been given features of Delta"):
        lake.compact()
    assert len(offsets(lake)) == 10


def test_a_compacted_delta_table_is_one_for_delta_rs(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="an extra is not installed")
    lake = Lake(str(tmp_path / "lake"), LakeForm.DELTA)
    lake.create()
    for start in range(0, 30, 10):
        add(lake, [written(lake, FIRST, start, start + 10)], {FIRST: start + 10})
    # What delta-rs joined itself, as earlier versions had it do, is joined with the rest.
    deltalake.DeltaTable(str(lake.path)).optimize.compact()
    add(lake, [written(lake, FIRST, 30, 40)], {FIRST: 40})
    lake.compact()
    table = deltalake.DeltaTable(str(lake.path))
    rows = table.to_pyarrow_table()
    assert sorted(rows["offset"].to_pylist()) == list(range(40))
    assert rows["headers"].to_pylist() == [[("h", b"x")]] * 40
    assert table.history(1)[0]["operation"] == "OPTIMIZE"
    table.create_checkpoint()
    add(lake, [written(lake, FIRST, 40, 41)], {FIRST: 41})
    assert len(offsets(Lake(str(lake.path)))) == 41
    table.update_incremental()
    removed = table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=True)
    assert len(removed) == 5
