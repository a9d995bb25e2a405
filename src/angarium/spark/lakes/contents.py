"""What an archive holds: its columns, its files, and the stretches of offsets they come from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from angarium.errors import InvalidArgument

SCHEMA: Final = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("headers", pa.map_(pa.string(), pa.binary())),
        ("producer_timestamp", pa.timestamp("us", tz="UTC")),
        ("topic_id", pa.int64()),
        ("date", pa.date32()),
    ]
)
"""The columns of an archive. `topic_id` tells namesakes apart; `date` is that of `timestamp`."""

PARTITIONED_BY: Final = ("topic", "date")

BOUNDED: Final = ("topic_id", "partition", "offset")
"""The columns whose lowest and highest value in each file every listing has."""

FileRow: TypeAlias = dict[str, Any]
"""A file in a listing: `path`, `size_bytes`, `num_records`, `partition.topic`, `partition.date`,
and `min.…` and `max.…` of the columns in `BOUNDED`."""


@dataclass(frozen=True, slots=True, order=True)
class Stretch:
    """A partition of a topic. A topic that was deleted and created again has another id."""

    topic: str
    topic_id: int
    partition: int

    @property
    def transaction(self) -> str:
        """The name under which the table's log keeps how far it is archived."""
        return f"angarium:{self.topic}:{self.topic_id}:{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedFile:
    """One Parquet file, of one partition and one day."""

    path: str
    """Below the table's folder."""
    bytes: int
    records: int
    stretch: Stretch
    day: str
    first: int
    last: int
    """Offsets."""


def folder(path: str) -> Path:
    """Return the folder that a path or a file: address names; other addresses are refused."""
    if path.startswith("file:"):
        return Path(path.removeprefix("file:").removeprefix("//"))
    if "://" in path:
        raise InvalidArgument(f"an archive is a folder that all machines see, not {path!r}")
    return Path(path)


def day_of(micros: int) -> str:
    """Return the day of a time, in UTC."""
    return date.fromordinal(719_163 + micros // 86_400_000_000).isoformat()


def offsets_in(file: Path) -> list[tuple[int, int]]:
    """Return the partition and the offset of each row of an archive's file."""
    rows = pq.ParquetFile(file).read(["partition", "offset"])
    columns = (rows.column(name).to_pylist() for name in ("partition", "offset"))
    return list(zip(*columns, strict=True))


def file_row(one: ArchivedFile) -> FileRow:
    """Return a file as listings have it."""
    columns = {"topic_id": one.stretch.topic_id, "partition": one.stretch.partition}
    return {
        "path": one.path,
        "size_bytes": one.bytes,
        "num_records": one.records,
        "partition.topic": one.stretch.topic,
        "partition.date": date.fromisoformat(one.day),
        **{f"min.{name}": value for name, value in {**columns, "offset": one.first}.items()},
        **{f"max.{name}": value for name, value in {**columns, "offset": one.last}.items()},
    }
