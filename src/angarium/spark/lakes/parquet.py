"""An archive as plain Parquet files: any program reads it by its file names alone.

    topic=orders/date=2026-11-15/….parquet        what counts, and nothing else
    _angarium/                                    the manifest, and files on their way

Tasks write files aside. A commit writes the manifest's entry first, which decides, and then moves
the files to their paths; the next writer finishes what a crash left undone. A program that reads by
file names may see the newest records a moment later, but never a record twice.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from angarium.spark.lakes.contents import file_row
from angarium.spark.lakes.joining import check_listed, compacted
from angarium.spark.lakes.manifest import Entry, Manifest, ends_among, ends_of, file_entry
from angarium.spark.lakes.marks import check_marks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from angarium.spark.lakes.contents import ArchivedFile, FileRow, Stretch
    from angarium.spark.lakes.joining import Joined
    from angarium.spark.lakes.manifest import State

OWN: Final = "_angarium"
"""The folder by which such an archive is recognised; Spark passes over names like this."""

NEW: Final = f"{OWN}/new/"
OLD: Final = f"{OWN}/old/"

LEFTOVER_SECONDS: Final = 24 * 3600.0
"""How long files of failed attempts are kept before compaction removes them."""


class ParquetTable:
    """An archive of plain files."""

    writes_whole_rows = False
    files_begin_with = NEW

    def __init__(self, path: Path) -> None:
        self._path = path
        self._manifest = Manifest(path / OWN)

    def create(self) -> None:
        """Make the table unless there is one; finish what a crash left undone."""
        self._manifest.create()
        self._settle(self._manifest.state())

    def archived_to(self, stretches: Iterable[Stretch]) -> dict[Stretch, int]:
        """Return the first offset that is not archived, for those that are archived at all."""
        return ends_among(self._manifest.state(), stretches)

    def add(
        self,
        files: Sequence[ArchivedFile],
        ends: Mapping[Stretch, int],
        *,
        since: Mapping[Stretch, int],
    ) -> None:
        """Make files part of the table and note up to where partitions are archived, at once."""
        state = self._manifest.state()
        self._settle(state)
        # The entry that is written below is the one behind this very state, or none.
        check_marks(self._path, ends, since=since, now=ends_among(state, ends))
        added = [file_entry(file_row(one), one.path.removeprefix(NEW)) for one in files]
        self._commit(state, Entry(added=added, ends=ends_of(ends)))

    def compact(self, *, file_bytes: int | None) -> dict[str, Any]:
        """Join small files into larger ones.

        The old ones leave their paths, so nobody should be reading by file names meanwhile; they
        are kept aside until the next time.
        """
        state = self._manifest.state()
        self._settle(state)
        self._remove_leftovers()
        rows = [one.to_row() for one in state.files.values()]
        return compacted(self, self._path, rows, file_bytes=file_bytes)

    def exchange(self, joined: Sequence[Joined]) -> None:
        """Replace files by those that have their rows, at once."""
        state = self._manifest.state()
        self._settle(state)
        check_listed(self._path, joined, state.files)
        added = [file_entry(one.new, one.new["path"].removeprefix(NEW)) for one in joined]
        self._commit(
            state, Entry(added=added, removed=[path for one in joined for path in one.old])
        )

    def _commit(self, state: State, entry: Entry) -> None:
        self._manifest.append(state, entry)
        self._settle(state)
        self._manifest.condense(state)

    def listed(self) -> list[FileRow]:
        """Return the files that count, wherever they are just now."""
        state = self._manifest.state()
        fresh = {one.path for entry in state.recent for one in entry.added}
        rows = []
        for path, one in state.files.items():
            row = one.to_row()
            if path in fresh and not (self._path / path).exists():
                row["path"] = NEW + path
            rows.append(row)
        return rows

    def _settle(self, state: State) -> None:
        """Do what the entries say: files that count are at their paths, others leave them."""
        for entry in state.recent:
            for path in entry.removed:
                self._move(path, OLD + path)
            for one in entry.added:
                if one.path in state.files:
                    self._move(NEW + one.path, one.path)

    def _move(self, source: str, target: str) -> None:
        (self._path / target).parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # it was moved before
            (self._path / source).rename(self._path / target)

    def _remove_leftovers(self) -> None:
        now = time.time()
        for folder, age_s in ((NEW, LEFTOVER_SECONDS), (OLD, 0.0)):
            for path in (self._path / folder).rglob("*.parquet"):
                with suppress(FileNotFoundError):
                    if now - path.stat().st_mtime >= age_s:
                        path.unlink()
