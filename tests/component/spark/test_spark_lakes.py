"""The forms of an archive: files added once, ends noted with them, small files joined."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from angarium.errors import InvalidArgument, NotFound, PreconditionFailed
from angarium.spark.lake import PARTITIONED_BY, SCHEMA, ArchivedFile, Lake, LakeForm, Stretch
from angarium.spark.lakes import manifest, parquet
from angarium.spark.lakes.contents import offsets_in

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "pipelines.md"
DAY = "2026-11-15"
NOON = dt.datetime(2026, 11, 15, 12, tzinfo=dt.UTC)
FIRST = Stretch("orders", 7, 0)
SECOND = Stretch("orders", 7, 1)


@pytest.fixture(params=[form.value for form in LakeForm])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    needs = {"delta": "deltalake", "iceberg": "pyiceberg"}
    if request.param in needs:
        pytest.importorskip(needs[request.param], reason="an extra is not installed")
    made = Lake(str(tmp_path / "lake"), LakeForm(request.param))
    made.create()
    return made


def written(lake: Lake, stretch: Stretch, first: int, stop: int) -> ArchivedFile:
    """Write a file as a task would."""
    where = f"{lake.files_begin_with}topic={stretch.topic}/date={DAY}"
    path = f"{where}/{uuid.uuid4().hex}.parquet"
    rows = [
        {
            "key": b"k",
            "value": b"%d" % offset,
            "topic": stretch.topic,
            "partition": stretch.partition,
            "offset": offset,
            "timestamp": NOON,
            "headers": [("h", b"x")],
            "producer_timestamp": None,
            "topic_id": stretch.topic_id,
            "date": NOON.date(),
        }
        for offset in range(first, stop)
    ]
    kept = [field for field in SCHEMA if lake.writes_whole_rows or field.name not in PARTITIONED_BY]
    (lake.path / path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(kept)), lake.path / path)
    return ArchivedFile(
        path=path,
        bytes=(lake.path / path).stat().st_size,
        records=stop - first,
        stretch=stretch,
        day=DAY,
        first=first,
        last=stop - 1,
    )


def add(lake: Lake, files: list[ArchivedFile], ends: dict[Stretch, int]) -> None:
    """Add files as a driver that is alone."""
    lake.add(files, ends, since=lake.archived_to(ends))


def offsets(lake: Lake) -> list[tuple[int, int]]:
    """Return partition and offset of every row that counts."""
    return sorted(one for file in lake.files() for one in offsets_in(Path(file)))


def test_files_and_ends_are_there_together(lake: Lake) -> None:
    assert lake.archived_to([FIRST]) == {}
    assert lake.listed() == []
    add(lake, [written(lake, FIRST, 0, 5), written(lake, SECOND, 3, 4)], {FIRST: 5, SECOND: 4})
    again = Lake(str(lake.path))
    assert again.form is lake.form
    assert again.archived_to([FIRST, SECOND, Stretch("orders", 8, 0)]) == {FIRST: 5, SECOND: 4}
    assert offsets(again) == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 3)]
    (row,) = [one for one in again.listed() if one["min.partition"] == 0]
    assert (row["partition.topic"], row["partition.date"]) == ("orders", dt.date(2026, 11, 15))
    assert (row["min.offset"], row["max.offset"], row["num_records"]) == (0, 4, 5)
    assert (row["min.topic_id"], row["max.topic_id"]) == (7, 7)
    assert len(again.files(topic="orders")) == 2
    assert again.files(topic="others") == []


def test_a_stretch_without_a_record_has_an_end_all_the_same(lake: Lake) -> None:
    add(lake, [], {FIRST: 12})
    assert Lake(str(lake.path)).archived_to([FIRST]) == {FIRST: 12}
    assert lake.files() == []


def test_small_files_are_joined_and_nothing_is_lost(lake: Lake) -> None:
    for start in range(0, 30, 10):
        some = [written(lake, one, start, start + 10) for one in (FIRST, SECOND)]
        add(lake, some, {FIRST: start + 10, SECOND: start + 10})
    before = offsets(lake)
    assert len(lake.files()) == 6
    lake.compact()
    assert len(lake.files()) == 1
    assert offsets(lake) == offsets(Lake(str(lake.path))) == before
    (row,) = lake.listed()
    assert (row["min.partition"], row["max.partition"]) == (0, 1)
    assert (row["min.offset"], row["max.offset"]) == (0, 29)
    assert lake.archived_to([FIRST, SECOND]) == {FIRST: 30, SECOND: 30}
    lake.compact()
    assert offsets(lake) == before
    add(lake, [written(lake, FIRST, 30, 31)], {FIRST: 31})
    assert offsets(lake) == sorted([*before, (0, 30)])


def test_an_archive_keeps_its_form(lake: Lake) -> None:
    other = next(form for form in LakeForm if form is not lake.form)
    with pytest.raises(InvalidArgument, match=f"is of the form {lake.form.value}, not"):
        Lake(str(lake.path), other)


def test_there_is_nothing_where_nothing_was_made(tmp_path: Path) -> None:
    assert not Lake(str(tmp_path)).exists()
    with pytest.raises(NotFound, match="there is no archive in"):
        Lake(str(tmp_path)).listed()
    with pytest.raises(InvalidArgument, match="a folder that all machines see"):
        Lake("s3://bucket/lake")


# --- plain Parquet ----------------------------------------------------------------------------


@pytest.fixture
def plain(tmp_path: Path) -> Lake:
    made = Lake(str(tmp_path / "plain"), LakeForm.PARQUET)
    made.create()
    return made


def by_name(lake: Lake) -> list[int]:
    """Return the offsets that somebody finds who knows nothing but file names."""
    files = lake.path.glob("topic=*/date=*/*.parquet")
    return sorted(
        one for file in files for one in pq.ParquetFile(file).read(["offset"])["offset"].to_pylist()
    )


def test_who_reads_by_file_names_finds_what_counts_and_nothing_else(plain: Lake) -> None:
    written(plain, FIRST, 0, 3)  # an attempt that failed
    add(plain, [written(plain, FIRST, 0, 3)], {FIRST: 3})
    add(plain, [written(plain, FIRST, 3, 5)], {FIRST: 5})
    assert by_name(plain) == [0, 1, 2, 3, 4]
    plain.compact()
    assert by_name(plain) == [0, 1, 2, 3, 4]


def test_what_a_crash_left_undone_is_done_by_the_next(
    plain: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(_: object, __: str, ___: str) -> None:
        raise KeyboardInterrupt

    file = written(plain, FIRST, 0, 3)
    with monkeypatch.context() as patched:
        patched.setattr(parquet.ParquetTable, "_move", crash)
        with pytest.raises(KeyboardInterrupt):
            add(plain, [file], {FIRST: 3})
    # The entry has been written, and that decides: it counts, wherever the file is.
    again = Lake(str(plain.path))
    assert again.archived_to([FIRST]) == {FIRST: 3}
    assert offsets(again) == [(0, 0), (0, 1), (0, 2)]
    assert by_name(again) == []
    again.create()
    assert by_name(again) == [0, 1, 2]
    assert offsets(again) == [(0, 0), (0, 1), (0, 2)]


def test_of_two_who_add_at_once_one_is_refused(plain: Lake) -> None:
    entries = manifest.Manifest(plain.path / parquet.OWN)
    one, other = entries.state(), entries.state()
    entries.append(one, manifest.Entry(ends=[("orders", 7, 0, 3)]))
    with pytest.raises(PreconditionFailed, match="another writer has changed"):
        entries.append(other, manifest.Entry(ends=[("orders", 7, 0, 3)]))


def test_a_manifest_stays_small(plain: Lake) -> None:
    for number in range(1, 2 * manifest.ENTRIES_PER_WHOLE + 12):
        add(plain, [], {FIRST: number})
    assert plain.archived_to([FIRST]) == {FIRST: 2 * manifest.ENTRIES_PER_WHOLE + 11}
    left = [path.name for path in (plain.path / parquet.OWN).iterdir() if path.is_file()]
    assert len(left) <= manifest.ENTRIES_PER_WHOLE + 15
    assert sum(name.endswith(".whole") for name in left) == 2


def test_an_iceberg_table_is_found_as_the_guide_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = pytest.importorskip("pyiceberg.catalog.sql", reason="an extra is not installed")
    monkeypatch.chdir(tmp_path)
    lake = Lake("lake", LakeForm.ICEBERG)
    lake.create()
    add(lake, [written(lake, FIRST, 0, 3)], {FIRST: 3})
    printed = re.search(r"`(SqlCatalog\(.*?\)\.load_table\(.*?\))`", GUIDE.read_text("utf-8"))
    assert printed is not None
    table = eval(printed[1], {"SqlCatalog": sql.SqlCatalog})
    assert table.scan().to_arrow().num_rows == 3
