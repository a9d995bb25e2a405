"""An archive of topics as a Delta table: Parquet files, and a log that says which of them count.

The log also says, atomically with the files, up to which offset each partition is archived (an *app
transaction* per partition, as Delta calls it). So no record is in the table twice, whatever is
repeated by whomever, and a reader knows where the table ends and the topic goes on.

It is written and read through delta-rs, without Spark's help and without a jar. Needs the extra
`angarium[lake]`.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from angarium.errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


@dataclass(frozen=True, slots=True, order=True)
class Stretch:
    """Which partition of which topic; one made anew under its name has another id."""

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


class Lake:
    """One table."""

    def __init__(self, path: str) -> None:
        """Open the table in the folder `path`, or be ready to make it."""
        self.path = folder(path)
        self._table: Any = None

    def exists(self) -> bool:
        """Tell whether there is a table."""
        return bool(_delta().DeltaTable.is_deltatable(str(self.path)))

    def create(self) -> None:
        """Make the table unless there is one."""
        if not self.exists():
            self._table = _delta().DeltaTable.create(
                str(self.path),
                schema=SCHEMA,
                mode="ignore",
                partition_by=list(PARTITIONED_BY),
                name="angarium archive",
                description="records of Angarium topics",
            )

    @property
    def table(self) -> Any:
        """The newest state of the table; `NotFound` if there is none."""
        if self._table is None:
            if not self.exists():
                raise NotFound(f"there is no archive in {self.path}")
            self._table = _delta().DeltaTable(str(self.path))
        else:
            self._table.update_incremental()
        return self._table

    def archived_to(self, stretches: Iterable[Stretch]) -> dict[Stretch, int]:
        """Return the first offset that is not archived, for those that are archived at all."""
        table = self.table
        found = {one: table.transaction_version(one.transaction) for one in stretches}
        return {one: int(version) for one, version in found.items() if version is not None}

    def add(self, files: Iterable[ArchivedFile], ends: Mapping[Stretch, int]) -> None:
        """Make files part of the table and note up to where partitions are archived, at once."""
        delta = _delta()
        from deltalake.transaction import AddAction  # noqa: PLC0415 (an extra)

        actions = [
            AddAction(
                path=one.path,
                size=one.bytes,
                partition_values={"topic": one.stretch.topic, "date": one.day},
                modification_time=time.time_ns() // 1_000_000,
                data_change=True,
                stats=_stats(one),
            )
            for one in files
        ]
        marks = [
            delta.Transaction(app_id=one.transaction, version=end)
            for one, end in sorted(ends.items())
        ]
        table = self.table
        table.create_write_transaction(
            actions,
            mode="append",
            schema=table.schema(),
            partition_by=list(PARTITIONED_BY),
            commit_properties=delta.CommitProperties(app_transactions=marks),
        )

    def compact(self, *, file_bytes: int | None = None) -> dict[str, Any]:
        """Join small files into larger ones; return what that did. The old ones stay readable."""
        done: dict[str, Any] = self.table.optimize.compact(target_size=file_bytes)
        return done

    def listed(self) -> list[dict[str, Any]]:
        """Return the files that count, with the lowest and highest value of their columns."""
        rows: list[dict[str, Any]] = pa.table(self.table.get_add_actions(flatten=True)).to_pylist()
        return rows

    def files(self, *, topic: str | None = None) -> list[str]:
        """Return the files that count, as paths, of one topic or of all."""
        filters = None if topic is None else [("topic", "=", topic)]
        return [str(uri) for uri in self.table.file_uris(partition_filters=filters)]


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


def _stats(one: ArchivedFile) -> str:
    place = {"partition": one.stretch.partition, "topic_id": one.stretch.topic_id}
    return json.dumps(
        {
            "numRecords": one.records,
            "minValues": {**place, "offset": one.first},
            "maxValues": {**place, "offset": one.last},
            "nullCount": {"partition": 0, "topic_id": 0, "offset": 0},
        }
    )


def _delta() -> Any:
    try:
        import deltalake  # noqa: PLC0415 (an extra)
    except ImportError:
        raise InvalidArgument("archives need the extra: pip install 'angarium[lake]'") from None
    return deltalake
