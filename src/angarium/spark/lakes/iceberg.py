"""An archive as an Iceberg table, its catalog a small database file in the same folder.

One commit of the catalog adds files and notes in the table's properties up to which offset each
partition is archived. Of two commits at the same time at most one succeeds. Written
through pyiceberg, without Spark and without a jar. Needs the extra `angarium[iceberg]`.

pyiceberg repeats a commit that met another one, on the newest snapshot and without the requirement
that it began with; that is switched off (`RETRIES`). The marks are a requirement of our own, which
the catalog checks against the state that its compare-and-set replaces.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from angarium.errors import FilesChanged, InvalidArgument
from angarium.spark.lakes.contents import BOUNDED, PARTITIONED_BY, SCHEMA
from angarium.spark.lakes.joining import check_listed, compacted
from angarium.spark.lakes.marks import check_marks, until_committed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from angarium.spark.lakes.contents import ArchivedFile, FileRow, Stretch
    from angarium.spark.lakes.joining import Joined

CATALOG: Final = "catalog.db"
"""The file by which such an archive is recognised."""

NAME: Final = "angarium.archive"
"""How the catalog calls the table."""

RETRIES: Final = "commit.retry.num-retries"
"""The property of the table that says how often pyiceberg repeats a commit by itself."""

_NO_EXTRA: Final = "Iceberg tables need the extra: pip install 'angarium[iceberg]'"

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
        until_committed(self._create)

    def _create(self) -> None:
        with self._conflicts_told():
            catalog = self._catalog()
            catalog.create_namespace_if_not_exists(NAME.partition(".")[0])
            if catalog.table_exists(NAME):
                return
            location = str(self._path / "table")
            with (
                catalog.create_table_transaction(
                    NAME, schema=SCHEMA, location=location, properties={RETRIES: "0"}
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
        return _marks(self.table.properties, stretches)

    def add(
        self,
        files: Sequence[ArchivedFile],
        ends: Mapping[Stretch, int],
        *,
        since: Mapping[Stretch, int],
    ) -> None:
        """Make files part of the table and note up to where partitions are archived, at once."""
        paths = [str(self._path / one.path) for one in files]
        with self._conflicts_told():
            table = self._unrepeated()
            now = _marks(table.properties, ends)
            check_marks(self._path, ends, since=since, now=now)
            with table.transaction() as change:
                # Before the new marks: a requirement is checked once where it is made, too.
                change._apply((), (_SameMarks(now, tuple(ends)),))
                change.set_properties({one.transaction: str(ends[one]) for one in sorted(ends)})
                if paths:
                    # Names are new ones, so that nobody needs to look for duplicates.
                    change.add_files(paths, check_duplicate_files=False)

    def compact(self, *, file_bytes: int | None) -> dict[str, Any]:
        """Join small files into larger ones; the old ones stay for the table's older snapshots."""
        return compacted(self, self._path, self.listed(), file_bytes=file_bytes)

    def exchange(self, joined: Sequence[Joined]) -> None:
        """Replace files by those that have their rows, at once."""
        with self._conflicts_told():
            table = self._unrepeated()
            there = {task.file.file_path: task.file for task in table.scan().plan_files()}
            check_listed(self._path, joined, there)
            self._exchange(table, there, joined)

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

    def _unrepeated(self) -> Any:
        """Return the newest state of the table, whose commits pyiceberg does not repeat."""
        table = self.table
        if table.properties.get(RETRIES) != "0":  # made by an earlier version of ours
            with table.transaction() as change:
                change.set_properties({RETRIES: "0"})
            table = self.table
        return table

    @contextmanager
    def _conflicts_told(self) -> Iterator[None]:
        """Raise `FilesChanged` for what may succeed if it is begun again."""
        try:
            from pyiceberg import exceptions as meant  # noqa: PLC0415 (an extra)
            from sqlalchemy.exc import IntegrityError, OperationalError  # noqa: PLC0415
        except ImportError:
            raise InvalidArgument(_NO_EXTRA) from None
        conflicts = (
            meant.CommitFailedException,
            meant.NamespaceAlreadyExistsError,
            meant.TableAlreadyExistsError,
            # SQLite is locked, or both made the tables of the catalog.
            IntegrityError,
            OperationalError,
        )
        try:
            yield
        except conflicts as error:
            raise FilesChanged(f"{self._path} changed during a commit: {error}") from None

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
            raise InvalidArgument(_NO_EXTRA) from None
        return SqlCatalog(
            "angarium", uri=f"sqlite:///{self._path / CATALOG}", warehouse=str(self._path)
        )


def _marks(properties: Mapping[str, str], stretches: Iterable[Stretch]) -> dict[Stretch, int]:
    return {
        one: int(properties[one.transaction]) for one in stretches if one.transaction in properties
    }


@dataclass(frozen=True, slots=True)
class _SameMarks:
    """A requirement of a commit: the marks are still those that it began from.

    The one on the snapshot does not see a commit of marks alone, nor does a commit of marks alone
    have that one.
    """

    since: Mapping[Stretch, int]
    stretches: tuple[Stretch, ...]

    def validate(self, base_metadata: Any) -> None:
        """Raise pyiceberg's `CommitFailedException` if they differ."""
        from pyiceberg.exceptions import CommitFailedException  # noqa: PLC0415 (an extra)

        if _marks(base_metadata.properties, self.stretches) != self.since:
            raise CommitFailedException("Requirement failed: the archive's marks have changed")
