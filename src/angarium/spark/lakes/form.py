"""What every form of an archive can do."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from angarium.spark.lakes.contents import ArchivedFile, FileRow, Stretch
    from angarium.spark.lakes.joining import Joined


class LakeForm(Enum):
    """How an archive is kept."""

    DELTA = "delta"
    """A Delta table, through delta-rs."""
    PARQUET = "parquet"
    """Plain Parquet files, and a manifest of our own that says which of them count."""
    ICEBERG = "iceberg"
    """An Iceberg table, through pyiceberg, its catalog a file in the same folder."""


class Table(Protocol):
    """One archive, in one form."""

    writes_whole_rows: bool
    """Whether topic and date are columns of the files, too, or only part of their paths."""
    files_begin_with: str
    """Where, below the folder, a task writes a file that is not part of the table yet."""

    def create(self) -> None:
        """Make the table unless there is one."""

    def archived_to(self, stretches: Iterable[Stretch]) -> dict[Stretch, int]:
        """Return the first offset that is not archived, for those that are archived at all."""

    def add(
        self,
        files: Sequence[ArchivedFile],
        ends: Mapping[Stretch, int],
        *,
        since: Mapping[Stretch, int],
    ) -> None:
        """Make files part of the table and note up to where partitions are archived, at once.

        `since` are the marks that the files begin at. Raises `ArchiveAdvanced` if the table has
        others at the moment of the commit, and `FilesChanged` if it changed otherwise; nothing is
        added then.
        """

    def compact(self, *, file_bytes: int | None) -> dict[str, Any]:
        """Join small files into larger ones; return what that did."""

    def exchange(self, joined: Sequence[Joined]) -> None:
        """Replace files by those that have their rows, at once.

        Raises `PreconditionFailed` if some of the old ones are no part of the table any more, and
        `FilesChanged` if it changed otherwise; nothing is replaced then.
        """

    def listed(self) -> list[FileRow]:
        """Return the files that count."""
