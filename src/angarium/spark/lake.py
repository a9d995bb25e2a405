"""An archive of topics: Parquet files, and something that says which of them count.

It says as well, atomically with the files, up to which offset each partition is archived. So no
record is in the archive twice, even if a batch is repeated, and a reader knows where the archive
ends and the topic goes on.

`lakes` has its forms: Delta unless asked otherwise, plain Parquet, and Iceberg. An archive that
exists keeps its form, and a reader need not know which one it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from angarium.errors import ArchiveAdvanced, InvalidArgument, NotFound, PreconditionFailed
from angarium.spark.lakes.contents import (
    PARTITIONED_BY,
    SCHEMA,
    ArchivedFile,
    FileRow,
    Stretch,
    day_of,
    folder,
)
from angarium.spark.lakes.delta import LOG, DeltaTable
from angarium.spark.lakes.form import LakeForm
from angarium.spark.lakes.iceberg import CATALOG, IcebergTable
from angarium.spark.lakes.joining import drop
from angarium.spark.lakes.marks import until_committed
from angarium.spark.lakes.parquet import OWN, ParquetTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from angarium.spark.lakes.form import Table

__all__ = [
    "PARTITIONED_BY",
    "SCHEMA",
    "ArchivedFile",
    "FileRow",
    "Lake",
    "LakeForm",
    "Stretch",
    "day_of",
    "folder",
]

_SIGNS: Final = {LOG: LakeForm.DELTA, OWN: LakeForm.PARQUET, CATALOG: LakeForm.ICEBERG}
_TABLES: Final[dict[LakeForm, Callable[[Path], Table]]] = {
    LakeForm.DELTA: DeltaTable,
    LakeForm.PARQUET: ParquetTable,
    LakeForm.ICEBERG: IcebergTable,
}


class Lake:
    """One archive."""

    def __init__(self, path: str, form: LakeForm | None = None) -> None:
        """Open the archive in the folder `path`, or be ready to make it.

        `form` is for one that is to be made; `InvalidArgument` if there is one of another form.
        """
        self.path = folder(path)
        there = next((kind for sign, kind in _SIGNS.items() if (self.path / sign).exists()), None)
        if form is not None and there is not None and form is not there:
            raise InvalidArgument(
                f"the archive in {self.path} is of the form {there.value}, not {form.value}"
            )
        self.form = there or form or LakeForm.DELTA
        self._is_there = there is not None
        self._table: Table = _TABLES[self.form](self.path)

    def exists(self) -> bool:
        """Tell whether there is an archive."""
        return self._is_there

    def create(self) -> None:
        """Make the archive unless there is one."""
        self._table.create()
        self._is_there = True

    @property
    def table(self) -> Table:
        """The archive in its form; `NotFound` if there is none."""
        if not self._is_there:
            raise NotFound(f"there is no archive in {self.path}")
        return self._table

    @property
    def writes_whole_rows(self) -> bool:
        """Whether topic and date are columns of its files."""
        return self._table.writes_whole_rows

    @property
    def files_begin_with(self) -> str:
        """Where, below the folder, a task writes a file that is not part of it yet."""
        return self._table.files_begin_with

    def archived_to(self, stretches: Iterable[Stretch]) -> dict[Stretch, int]:
        """Return the first offset that is not archived, for those that are archived at all."""
        return self.table.archived_to(stretches)

    def add(
        self,
        files: Iterable[ArchivedFile],
        ends: Mapping[Stretch, int],
        *,
        since: Mapping[Stretch, int],
    ) -> None:
        """Make files part of it and note up to where partitions are archived, at once.

        `since` are the marks that the files begin at, as `archived_to` said them. If the archive
        has others at the moment of the commit, nothing is added: `ArchiveAdvanced`, and the files
        are removed. If only its files have changed, the commit is repeated.
        """
        added = list(files)
        if gone := [one.path for one in added if not (self.path / one.path).exists()]:
            raise PreconditionFailed(
                f"{gone[0]} was removed from {self.path} before it became part of the archive, as "
                "a leftover of a query that has ended: archive its records again"
            )
        try:
            until_committed(lambda: self.table.add(added, ends, since=since))
        except ArchiveAdvanced:
            if drop(self.path, self.table, [one.path for one in added]):
                raise

    def compact(self, *, file_bytes: int | None = None) -> dict[str, Any]:
        """Join small files into larger ones; return what that did.

        `PreconditionFailed` if another compaction joins the same files at the same time.
        """
        return self.table.compact(file_bytes=file_bytes)

    def listed(self) -> list[FileRow]:
        """Return the files that count, with the lowest and highest value of their columns."""
        return self.table.listed()

    def files(self, *, topic: str | None = None) -> list[str]:
        """Return the files that count, as paths, of one topic or of all."""
        return [
            str(self.path / row["path"])
            for row in self.listed()
            if topic is None or row["partition.topic"] == topic
        ]
