"""An archive as an Iceberg table, its catalog a small database file in the same folder.

One commit of the catalog adds files and notes in the table's properties up to which offset each
partition is archived. Of two commits at the same time at most one succeeds. Written
through pyiceberg, without Spark and without a jar. Needs the extra `angarium[iceberg]`.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, Final

from angarium.errors import InvalidArgument, PreconditionFailed
from angarium.spark.lakes.contents import BOUNDED, PARTITIONED_BY, SCHEMA
from angarium.spark.lakes.joining import counted, joined_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from angarium.spark.lakes.contents import ArchivedFile, FileRow, Stretch
    from angarium.spark.lakes.joining import Joined

CATALOG: Final = "catalog.db"
"""The file by which such an archive is recognised."""

NAME: Final = "angarium.archive"
"""How the catalog calls the table."""

_EPOCH: Final = date(1970, 1, 1).toordinal()


class IcebergTable:
    """An archive in Iceberg's form."""

    writes_whole_rows = True
    files_begin_with = "data/"

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._opened: Any = None

    def create(self) -> None:
        """Make the table unless there is one."""
        self._path.mkdir(parents=True, exist_ok=True)
        catalog = self._catalog()
        catalog.create_namespace_if_not_exists(NAME.partition(".")[0])
        if catalog.table_exists(NAME):
            return
        with (
            catalog.create_table_transaction(
                NAME, schema=SCHEMA, location=str(self._path / "table")
            ) as making,
            making.update_spec() as spec,
        ):
            for column in PARTITIONED_BY:
                spec.add_identity(column)

    @property
    def table(self) -> Any:
        """The newest state of the table."""
        if self._opened is None:
            self._opened = self._catalog().load_table(NAME)
        else:
            self._opened.refresh()
        return self._opened

    def archived_to(self, stretches: Iterable[Stretch]) -> dict[Stretch, int]:
        """Return the first offset that is not archived, for those that are archived at all."""
        said = self.table.properties
        return {one: int(said[one.transaction]) for one in stretches if one.transaction in said}

    def add(self, files: Iterable[ArchivedFile], ends: Mapping[Stretch, int]) -> None:
        """Make files part of the table and note up to where partitions are archived, at once."""
        paths = [str(self._path / one.path) for one in files]
        marks = {one.transaction: str(end) for one, end in sorted(ends.items())}
        from pyiceberg.exceptions import CommitFailedException  # noqa: PLC0415 (an extra)

        try:
            with self.table.transaction() as change:
                change.set_properties(marks)
                if paths:
                    # Names are new ones, so that nobody needs to look for duplicates.
                    change.add_files(paths, check_duplicate_files=False)
        except CommitFailedException as error:
            raise PreconditionFailed(
                f"somebody else has added to the archive in {self._path} meanwhile: {error}"
            ) from None

    def compact(self, *, file_bytes: int | None) -> dict[str, Any]:
        """Join small files into larger ones; the old ones stay for the table's older snapshots."""
        from pyiceberg.exceptions import CommitFailedException  # noqa: PLC0415 (an extra)

        table = self.table
        there = {task.file.file_path: task.file for task in table.scan().plan_files()}
        joined = joined_files(
            self._path, self.listed(), file_bytes=file_bytes, prefix=self.files_begin_with
        )
        if joined:
            try:
                self._exchange(table, there, joined)
            except CommitFailedException as error:
                raise PreconditionFailed(f"{self._path} changed meanwhile: {error}") from None
        return counted(joined)

    def _exchange(self, table: Any, there: Mapping[str, Any], joined: Sequence[Joined]) -> None:
        from pyiceberg.io.pyarrow import parquet_file_to_data_file  # noqa: PLC0415 (an extra)

        with table.transaction() as change, change.update_snapshot().overwrite() as snapshot:
            for one in joined:
                for path in one.old:
                    snapshot.delete_data_file(there[path])
                new = str(self._path / one.new["path"])
                snapshot.append_data_file(
                    parquet_file_to_data_file(table.io, change.table_metadata, new)
                )

    def listed(self) -> list[FileRow]:
        """Return the files that count, with the lowest and highest value of their columns."""
        from pyiceberg.conversions import from_bytes  # noqa: PLC0415 (an extra)

        table = self.table
        fields = {name: table.schema().find_field(name) for name in BOUNDED}
        rows = []
        for task in table.scan().plan_files():
            file = task.file
            topic, day = file.partition[0], file.partition[1]
            row = {
                "path": file.file_path,
                "size_bytes": file.file_size_in_bytes,
                "num_records": file.record_count,
                "partition.topic": topic,
                "partition.date": day if isinstance(day, date) else date.fromordinal(_EPOCH + day),
            }
            for name, field in fields.items():
                for word, bounds in (("min", file.lower_bounds), ("max", file.upper_bounds)):
                    row[f"{word}.{name}"] = from_bytes(field.field_type, bounds[field.field_id])
            rows.append(row)
        return rows

    def _catalog(self) -> Any:
        try:
            from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 (an extra)
        except ImportError:
            raise InvalidArgument(
                "Iceberg tables need the extra: pip install 'angarium[iceberg]'"
            ) from None
        return SqlCatalog(
            "angarium", uri=f"sqlite:///{self._path / CATALOG}", warehouse=str(self._path)
        )
