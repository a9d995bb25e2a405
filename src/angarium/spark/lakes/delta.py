"""An archive as a Delta table: a log of transactions says which files count.

Up to which offset each partition is archived is an *app transaction* of that log, so that it is
true at the very moment at which the files are part of the table. Written and read through delta-rs,
without Spark's help and without a jar. Needs the extra `angarium[lake]`.

delta-rs compares the app transactions of a commit with those of the commits that are newer than the
snapshot it is made from. So a commit is made from the snapshot whose marks were compared, without a
refresh in between. Its own compaction compares nothing: two of them at once replace the same files
twice, and each row is in the table twice. So the entry of a compaction is written here.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from angarium.errors import FilesChanged, InvalidArgument, PreconditionFailed
from angarium.spark.lakes.contents import BOUNDED, PARTITIONED_BY, SCHEMA, file_row
from angarium.spark.lakes.joining import check_listed, compacted
from angarium.spark.lakes.marks import check_marks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from angarium.spark.lakes.contents import ArchivedFile, FileRow, Stretch
    from angarium.spark.lakes.joining import Joined

LOG: Final = "_delta_log"
"""The folder by which a Delta table is recognised."""

WRITER_VERSION: Final = 2
"""The version of Delta's protocol for writers that `exchange` fulfils, and new tables have."""


def opened(path: str, **made: Any) -> Any:
    """Return the newest state of a Delta table; it is made, empty, unless there is one.

    Apart from the first rows: of two drivers that make a table by writing to it, delta-rs lets both
    write.
    """
    delta = _delta()
    from deltalake.exceptions import CommitFailedError  # noqa: PLC0415 (an extra)

    with suppress(CommitFailedError):  # another driver makes it at this moment
        delta.DeltaTable.create(path, mode="ignore", **made)
    return delta.DeltaTable(path)


class DeltaTable:
    """An archive in Delta's form."""

    writes_whole_rows = False
    files_begin_with = ""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: Any = None

    def create(self) -> None:
        """Make the table unless there is one."""
        self._opened = opened(
            str(self._path),
            schema=SCHEMA,
            partition_by=list(PARTITIONED_BY),
            name="angarium archive",
            description="records of Angarium topics",
        )

    @property
    def table(self) -> Any:
        """The newest state of the table."""
        if self._opened is None:
            self._opened = _delta().DeltaTable(str(self._path))
        else:
            self._opened.update_incremental()
        return self._opened

    def archived_to(self, stretches: Iterable[Stretch]) -> dict[Stretch, int]:
        """Return the first offset that is not archived, for those that are archived at all."""
        return _marks(self.table, stretches)

    def add(
        self,
        files: Sequence[ArchivedFile],
        ends: Mapping[Stretch, int],
        *,
        since: Mapping[Stretch, int],
    ) -> None:
        """Make files part of the table and note up to where partitions are archived, at once."""
        delta = _delta()
        from deltalake.exceptions import CommitFailedError  # noqa: PLC0415 (an extra)
        from deltalake.transaction import AddAction  # noqa: PLC0415

        # Not refreshed below: delta-rs compares with what was committed behind this snapshot.
        table = self.table
        check_marks(self._path, ends, since=since, now=_marks(table, ends))
        actions = [
            AddAction(
                path=one.path,
                size=one.bytes,
                partition_values={"topic": one.stretch.topic, "date": one.day},
                modification_time=_now_ms(),
                data_change=True,
                stats=_stats(file_row(one)),
            )
            for one in files
        ]
        marks = [
            delta.Transaction(app_id=one.transaction, version=end)
            for one, end in sorted(ends.items())
        ]
        try:
            table.create_write_transaction(
                actions,
                mode="append",
                schema=table.schema(),
                partition_by=list(PARTITIONED_BY),
                commit_properties=delta.CommitProperties(app_transactions=marks),
            )
        except CommitFailedError as error:
            raise FilesChanged(f"{self._path} changed during a commit: {error}") from None

    def compact(self, *, file_bytes: int | None) -> dict[str, Any]:
        """Join small files into larger ones; the old ones stay readable until a vacuum."""
        return compacted(self, self._path, self.listed(), file_bytes=file_bytes)

    def exchange(self, joined: Sequence[Joined]) -> None:
        """Replace files by those that have their rows, at once.

        Of several writers of the entry of a version, delta-rs among them, one succeeds.
        """
        table = self.table
        if table.protocol().min_writer_version > WRITER_VERSION:
            raise PreconditionFailed(
                f"{self._path} has been given features of Delta that the archive does not know: "
                "compact it with the tool that did so, while no query archives into it"
            )
        rows = {
            row["path"]: row for row in pa.table(table.get_add_actions(flatten=True)).to_pylist()
        }
        check_listed(self._path, joined, rows)
        lines = [json.dumps(one) for one in _actions(joined, rows, read_version=table.version())]
        log = self._path / LOG
        new = log / f"_commit_{uuid.uuid4().hex}.json.tmp"
        with new.open("w", encoding="utf-8") as file:
            file.write("\n".join(lines))
            file.flush()
            os.fsync(file.fileno())
        try:
            # A link, unlike a rename, never replaces what is there.
            os.link(new, log / f"{table.version() + 1:020d}.json")
        except FileExistsError:
            raise FilesChanged(f"{self._path} changed during a compaction") from None
        finally:
            new.unlink()

    def listed(self) -> list[FileRow]:
        """Return the files that count, with the lowest and highest value of their columns."""
        rows: list[FileRow] = pa.table(self.table.get_add_actions(flatten=True)).to_pylist()
        return rows


def _marks(table: Any, stretches: Iterable[Stretch]) -> dict[Stretch, int]:
    found = {one: table.transaction_version(one.transaction) for one in stretches}
    return {one: int(version) for one, version in found.items() if version is not None}


def _actions(
    joined: Sequence[Joined], rows: Mapping[str, FileRow], *, read_version: int
) -> Iterator[dict[str, Any]]:
    """Yield the entry of a compaction: rows stay, files change."""
    now = _now_ms()
    parameters = {"by": "angarium"}
    yield {
        "commitInfo": {
            "timestamp": now,
            "operation": "OPTIMIZE",
            "operationParameters": parameters,
            "readVersion": read_version,
        }
    }
    for one in joined:
        for path in one.old:
            yield {"remove": {**_file(rows[path], path), "deletionTimestamp": now}}
        new = one.new
        yield {"add": {**_file(new, new["path"]), "modificationTime": now, "stats": _stats(new)}}


def _file(row: FileRow, path: str) -> dict[str, Any]:
    values = {"topic": row["partition.topic"], "date": row["partition.date"].isoformat()}
    size = row["size_bytes"]
    return {"path": path, "partitionValues": values, "size": size, "dataChange": False}


def _stats(row: FileRow) -> str:
    return json.dumps(
        {
            "numRecords": row["num_records"],
            "minValues": {name: row[f"min.{name}"] for name in BOUNDED},
            "maxValues": {name: row[f"max.{name}"] for name in BOUNDED},
            "nullCount": dict.fromkeys(BOUNDED, 0),
        }
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _delta() -> Any:
    try:
        import deltalake  # noqa: PLC0415 (an extra)
    except ImportError:
        raise InvalidArgument("archives need the extra: pip install 'angarium[lake]'") from None
    return deltalake
