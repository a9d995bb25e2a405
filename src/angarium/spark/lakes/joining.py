"""Joining small Parquet files into larger ones, a batch of rows at a time."""

from __future__ import annotations

import uuid
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from angarium.errors import PreconditionFailed
from angarium.spark.lakes.contents import BOUNDED, SCHEMA
from angarium.spark.lakes.marks import until_committed

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence
    from pathlib import Path

    from angarium.spark.lakes.contents import FileRow
    from angarium.spark.lakes.form import Table

FILE_BYTES: Final = 128 << 20
"""How large a joined file is, about, unless told otherwise."""

ROWS: Final = 100_000
"""How many rows are in memory at once."""


class Joined(NamedTuple):
    """A new file and those whose rows it has."""

    new: FileRow
    old: tuple[str, ...]


def compacted(
    table: Table, root: Path, rows: Iterable[FileRow], *, file_bytes: int | None
) -> dict[str, int]:
    """Join small files of a table, and return what that did, in the words of Delta's own.

    Files that others add meanwhile do not matter. If they join the same ones, `PreconditionFailed`:
    then nothing was replaced, and what was written here is removed.
    """
    joined = joined_files(root, rows, file_bytes=file_bytes, prefix=table.files_begin_with)
    if joined:
        try:
            until_committed(lambda: table.exchange(joined))
        except PreconditionFailed:
            if drop(root, table, [one.new["path"] for one in joined]):
                raise
    return {
        "numFilesAdded": len(joined),
        "numFilesRemoved": sum(len(one.old) for one in joined),
    }


def drop(root: Path, table: Table, paths: Sequence[str]) -> bool:
    """Remove files that a refused commit was to add; return False if they do count after all.

    A commit can have been carried out although it was reported as refused.
    """
    names = {PurePath(row["path"]).name for row in table.listed()}
    if any(PurePath(path).name in names for path in paths):
        return False
    for path in paths:
        (root / path).unlink(missing_ok=True)
    return True


def check_listed(root: Path, joined: Iterable[Joined], listed: Container[str]) -> None:
    """Raise `PreconditionFailed` unless all files that were joined are among those that count."""
    if any(path not in listed for one in joined for path in one.old):
        raise PreconditionFailed(
            f"another compaction has replaced the same files of {root}: nothing was changed"
        )


def joined_files(
    root: Path, rows: Iterable[FileRow], *, file_bytes: int | None, prefix: str
) -> list[Joined]:
    """Write a new file for every lot of small ones of a topic and a day; the old ones stay.

    Rows keep the order of topic, partition and offset.
    """
    target = file_bytes or FILE_BYTES
    days: dict[tuple[str, str], list[FileRow]] = {}
    for row in rows:
        day = row["partition.date"].isoformat()
        days.setdefault((row["partition.topic"], day), []).append(row)
    return [
        _join(root, lot, f"{prefix}topic={topic}/date={day}")
        for (topic, day), of_day in sorted(days.items())
        for lot in _lots(of_day, target)
    ]


def _lots(rows: Sequence[FileRow], target: int) -> list[list[FileRow]]:
    """Return lots of at least two files that are about `target` together."""
    lots: list[list[FileRow]] = []
    lot: list[FileRow] = []
    size = 0
    for row in sorted(rows, key=lambda one: tuple(one[f"min.{name}"] for name in BOUNDED)):
        if row["size_bytes"] >= target:
            continue
        if lot and size + row["size_bytes"] > target:
            lots.append(lot)
            lot, size = [], 0
        lot.append(row)
        size += row["size_bytes"]
    lots.append(lot)
    return [lot for lot in lots if len(lot) > 1]


def _join(root: Path, lot: Sequence[FileRow], where: str) -> Joined:
    path = f"{where}/{uuid.uuid4().hex}.parquet"
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    there = set(pq.read_schema(root / lot[0]["path"]).names)
    # Another tool's files may name the parts of a map otherwise.
    schema = pa.schema([field for field in SCHEMA if field.name in there])
    bounds: dict[str, list[int]] = {name: [] for name in BOUNDED}
    with pq.ParquetWriter(root / path, schema, compression="zstd") as writer:
        for row in lot:
            with pq.ParquetFile(root / row["path"]) as file:
                for batch in file.iter_batches(batch_size=ROWS):
                    writer.write_batch(batch.select(schema.names).cast(schema))
                    for name in BOUNDED:
                        ends = pc.min_max(batch.column(name))
                        bounds[name] += [ends["min"].as_py(), ends["max"].as_py()]
    new = {
        "path": path,
        "size_bytes": (root / path).stat().st_size,
        "num_records": sum(row["num_records"] for row in lot),
        "partition.topic": lot[0]["partition.topic"],
        "partition.date": lot[0]["partition.date"],
        **{f"min.{name}": min(values) for name, values in bounds.items()},
        **{f"max.{name}": max(values) for name, values in bounds.items()},
    }
    return Joined(new, tuple(row["path"] for row in lot))
