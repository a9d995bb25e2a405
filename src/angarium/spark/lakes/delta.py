"""An archive as a Delta table: a log of transactions says which files count.

Up to which offset each partition is archived is an *app transaction* of that log, so that it is
true at the very moment at which the files are part of the table. Written and read through delta-rs,
without Spark's help and without a jar. Needs the extra `angarium[lake]`.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from angarium.errors import InvalidArgument, PreconditionFailed
from angarium.spark.lakes.contents import PARTITIONED_BY, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from angarium.spark.lakes.contents import ArchivedFile, FileRow, Stretch

LOG: Final = "_delta_log"
"""The folder by which a Delta table is recognised."""


class DeltaTable:
    """An archive in Delta's form."""

    writes_whole_rows = False
    files_begin_with = ""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: Any = None

    def create(self) -> None:
        """Make the table unless there is one."""
        self._opened = _delta().DeltaTable.create(
            str(self._path),
            schema=SCHEMA,
            mode="ignore",
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
        table = self.table
        found = {one: table.transaction_version(one.transaction) for one in stretches}
        return {one: int(version) for one, version in found.items() if version is not None}

    def add(self, files: Iterable[ArchivedFile], ends: Mapping[Stretch, int]) -> None:
        """Make files part of the table and note up to where partitions are archived, at once."""
        delta = _delta()
        from deltalake.exceptions import CommitFailedError  # noqa: PLC0415 (an extra)
        from deltalake.transaction import AddAction  # noqa: PLC0415

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
        try:
            table.create_write_transaction(
                actions,
                mode="append",
                schema=table.schema(),
                partition_by=list(PARTITIONED_BY),
                commit_properties=delta.CommitProperties(app_transactions=marks),
            )
        except CommitFailedError as error:
            raise PreconditionFailed(
                f"somebody else archives the same into {self._path}: {error}"
            ) from None

    def compact(self, *, file_bytes: int | None) -> dict[str, Any]:
        """Join small files into larger ones; the old ones stay readable until a vacuum."""
        from deltalake.exceptions import CommitFailedError  # noqa: PLC0415 (an extra)

        try:
            done: dict[str, Any] = self.table.optimize.compact(target_size=file_bytes)
        except CommitFailedError as error:
            raise PreconditionFailed(f"{self._path} changed meanwhile: {error}") from None
        return done

    def listed(self) -> list[FileRow]:
        """Return the files that count, with the lowest and highest value of their columns."""
        rows: list[FileRow] = pa.table(self.table.get_add_actions(flatten=True)).to_pylist()
        return rows


def _stats(one: ArchivedFile) -> str:
    columns = {"partition": one.stretch.partition, "topic_id": one.stretch.topic_id}
    return json.dumps(
        {
            "numRecords": one.records,
            "minValues": {**columns, "offset": one.first},
            "maxValues": {**columns, "offset": one.last},
            "nullCount": {"partition": 0, "topic_id": 0, "offset": 0},
        }
    )


def _delta() -> Any:
    try:
        import deltalake  # noqa: PLC0415 (an extra)
    except ImportError:
        raise InvalidArgument("archives need the extra: pip install 'angarium[lake]'") from None
    return deltalake
