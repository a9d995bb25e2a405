"""Joining small Parquet files into larger ones, a batch of rows at a time."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from angarium.spark.lakes.contents import BOUNDED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from angarium.spark.lakes.contents import FileRow

FILE_BYTES: Final = 128 << 20
"""How large a joined file is, about, unless told otherwise."""

ROWS: Final = 100_000
"""How many rows are in memory at once."""


class Joined(NamedTuple):
    """A new file and those whose rows it has."""

    new: FileRow
    old: tuple[str, ...]


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
    schema = pq.read_schema(root / lot[0]["path"])
    bounds: dict[str, list[int]] = {name: [] for name in BOUNDED}
    with pq.ParquetWriter(root / path, schema, compression="zstd") as writer:
        for row in lot:
            with pq.ParquetFile(root / row["path"]) as file:
                for batch in file.iter_batches(batch_size=ROWS):
                    writer.write_batch(batch)
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


def counted(joined: Sequence[Joined]) -> dict[str, int]:
    """Return what joining did, in the words of Delta's own."""
    return {
        "numFilesAdded": len(joined),
        "numFilesRemoved": sum(len(one.old) for one in joined),
    }
