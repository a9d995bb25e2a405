"""Writing an archive's files, on an executor: from the broker's batches to Parquet, by columns."""

from __future__ import annotations

import uuid
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from angarium.spark.lake import PARTITIONED_BY, SCHEMA, ArchivedFile, Lake, Stretch, day_of
from angarium.spark.link import link_for
from angarium.spark.losses import LossPolicy
from angarium.spark.options import read_options
from angarium.spark.range_batches import range_batches
from angarium.spark.ranges import OffsetRange
from angarium.spark.rows import RowShape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import Row

RECORDS_PER_FILE: Final = 1_000_000
BYTES_PER_FILE: Final = 128 << 20
"""At either bound a file is closed and the next one begun."""

FILES: Final = (
    "topic string, topic_id long, partition int, begins long, stop long, path string, "
    "bytes long, records long, day string, first long, last long"
)
"""What the driver is told: a row for each file, and one without a path for each range."""

_STORED: Final = [field for field in SCHEMA if field.name not in PARTITIONED_BY]
_WHOLE: Final = [field for field in SCHEMA if field.name in PARTITIONED_BY]
"""Columns that are in the path of a file and, in some forms of an archive, in the file as well."""
_SHAPE: Final = [(field.name, field.type) for field in _STORED if field.name != "topic_id"]
_REPORT: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_id", pa.int64()),
        ("partition", pa.int32()),
        ("begins", pa.int64()),
        ("stop", pa.int64()),
        ("path", pa.string()),
        ("bytes", pa.int64()),
        ("records", pa.int64()),
        ("day", pa.string()),
        ("first", pa.int64()),
        ("last", pa.int64()),
    ]
)


def writes_files(
    path: str, archived: Mapping[Stretch, int], options: Mapping[str, str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a task does: archive the ranges it is handed, as far as they are not there."""

    def archived_ranges(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                one = OffsetRange(**row)
                done = archived.get(Stretch(one.topic, one.topic_id, one.partition), 0)
                files = _files(path, one, max(one.start, done), options)
                yield _report(one, files)

    return archived_ranges


def file_of(row: Row) -> ArchivedFile:
    """Return the file that a row of a task's report describes."""
    return ArchivedFile(
        path=row.path,
        bytes=row.bytes,
        records=row.records,
        stretch=Stretch(row.topic, row.topic_id, row.partition),
        day=row.day,
        first=row["first"],
        last=row["last"],
    )


def _files(
    path: str, whole: OffsetRange, start: int, options: Mapping[str, str]
) -> list[ArchivedFile]:
    if start >= whole.stop:
        return []
    chosen = read_options(options, is_stream=True)
    wanted = OffsetRange(whole.topic, whole.partition, start, whole.stop, whole.topic_id)
    link = link_for(chosen)
    policy = LossPolicy(chosen.fail_on_data_loss)
    received = range_batches(link, wanted, policy=policy, from_nearest=chosen.from_nearest)
    writing = _Writing(Lake(path), Stretch(whole.topic, whole.topic_id, whole.partition))
    try:
        for rows in RowShape(_SHAPE).batches(whole.topic, whole.partition, received):
            writing.add(rows)
    finally:
        writing.close()
    return writing.files


class _Writing:
    """The files of one range, one open at a time."""

    def __init__(self, lake: Lake, stretch: Stretch) -> None:
        self.files: list[ArchivedFile] = []
        self._root = lake.path
        self._prefix = lake.files_begin_with
        self._schema = pa.schema(_STORED + (_WHOLE if lake.writes_whole_rows else []))
        self._stretch = stretch
        self._writer: Any = None
        self._same: dict[str, Any] = {}
        """What is the same in all rows of the open file."""
        self._path = ""
        self._day = ""
        self._records = self._first = self._last = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Write rows; their times ascend, so that each day is a slice of them."""
        times = rows.column("timestamp").cast(pa.int64()).to_numpy()
        start = 0
        while start < rows.num_rows:
            day = day_of(int(times[start]))
            midnight = (int(times[start]) // 86_400_000_000 + 1) * 86_400_000_000
            stop = int(times.searchsorted(midnight))
            self._write(day, rows.slice(start, stop - start))
            start = stop

    def close(self) -> None:
        """Finish the open file and note it."""
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        self.files.append(
            ArchivedFile(
                path=self._path,
                bytes=(self._root / self._path).stat().st_size,
                records=self._records,
                stretch=self._stretch,
                day=self._day,
                first=self._first,
                last=self._last,
            )
        )

    def _write(self, day: str, rows: pa.RecordBatch) -> None:
        if self._writer is None or day != self._day or self._is_full():
            self.close()
            self._begin(day, int(rows.column("offset")[0].as_py()))
        count = rows.num_rows
        columns = [
            *rows.columns,
            *(
                pa.repeat(self._same[field.name], count)
                for field in self._schema
                if field.name in self._same
            ),
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        self._records += rows.num_rows
        self._last = int(rows.column("offset")[-1].as_py())

    def _is_full(self) -> bool:
        return (
            self._records >= RECORDS_PER_FILE
            or (self._root / self._path).stat().st_size >= BYTES_PER_FILE
        )

    def _begin(self, day: str, first: int) -> None:
        # A name that nobody has used: what a failed attempt left behind is never part of the table.
        where = f"{self._prefix}topic={self._stretch.topic}/date={day}"
        self._path = f"{where}/{uuid.uuid4().hex}.parquet"
        self._same = {
            "topic_id": pa.scalar(self._stretch.topic_id, pa.int64()),
            "topic": pa.scalar(self._stretch.topic, pa.string()),
            "date": pa.scalar(date.fromisoformat(day), pa.date32()),
        }
        target = self._root / self._path
        target.parent.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(target, self._schema, compression="zstd")
        self._day, self._records, self._first = day, 0, first


def _report(one: OffsetRange, files: list[ArchivedFile]) -> pa.RecordBatch:
    stretch = {
        "topic": one.topic,
        "topic_id": one.topic_id,
        "partition": one.partition,
        "begins": one.start,
        "stop": one.stop,
    }
    nothing = {"path": "", "bytes": 0, "records": 0, "day": "", "first": 0, "last": 0}
    rows = [{**stretch, **nothing}]
    rows += [{**stretch, **{name: getattr(file, name) for name in nothing}} for file in files]
    return pa.RecordBatch.from_pylist(rows, schema=_REPORT)
