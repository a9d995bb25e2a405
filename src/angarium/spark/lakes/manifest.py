"""The manifest of a plain Parquet archive: which files count, and up to which offsets they go.

It is a folder of numbered entries. Each adds files, removes some, and says how far partitions are
archived. An entry is there as a whole or not at all, and a number that is taken cannot be written
again, so of two writers one fails. Every hundredth entry is written out as a
whole state, from which reading begins. Entries before it are removed, which frees their numbers: a
writer that was suspended for that long is refused by the whole state instead.
"""

from __future__ import annotations

import os
import uuid
from datetime import date
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import FilesChanged
from angarium.spark.lakes.contents import BOUNDED, Stretch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from angarium.spark.lakes.contents import FileRow

ENTRIES_PER_WHOLE: Final = 100
"""The whole state is written every this many entries. Entries older than the one before are
removed, so that a manifest never has more than about two hundred files."""

_DIGITS: Final = 20


class FileEntry(msgspec.Struct, frozen=True):
    """A file that counts."""

    path: str
    size_bytes: int
    num_records: int
    topic: str
    date: str
    bounds: dict[str, tuple[int, int]]

    def to_row(self) -> FileRow:
        """Return it as listings have it."""
        return {
            "path": self.path,
            "size_bytes": self.size_bytes,
            "num_records": self.num_records,
            "partition.topic": self.topic,
            "partition.date": date.fromisoformat(self.date),
            **{f"min.{name}": low for name, (low, _) in self.bounds.items()},
            **{f"max.{name}": high for name, (_, high) in self.bounds.items()},
        }


def file_entry(row: FileRow, path: str) -> FileEntry:
    """Return the entry of a file in a listing, under the path where it will be."""
    return FileEntry(
        path,
        row["size_bytes"],
        row["num_records"],
        row["partition.topic"],
        row["partition.date"].isoformat(),
        {name: (row[f"min.{name}"], row[f"max.{name}"]) for name in BOUNDED},
    )


class Entry(msgspec.Struct, frozen=True):
    """One change, or a whole state."""

    added: list[FileEntry] = []
    removed: list[str] = []
    ends: list[tuple[str, int, int, int]] = []
    """Topic, its id, partition, and the first offset that is not archived."""


class State(msgspec.Struct):
    """What all entries up to one of them say together."""

    number: int = 0
    files: dict[str, FileEntry] = msgspec.field(default_factory=dict)
    ends: dict[Stretch, int] = msgspec.field(default_factory=dict)
    recent: list[Entry] = msgspec.field(default_factory=list)
    """The entries since the last whole state: what they say may still have to be done."""

    def follow(self, entry: Entry) -> None:
        """Take over one entry more."""
        for path in entry.removed:
            self.files.pop(path, None)
        self.files.update({one.path: one for one in entry.added})
        self.ends.update({Stretch(*stretch): end for *stretch, end in entry.ends})  # type: ignore[arg-type]

    def to_entry(self) -> Entry:
        """Return everything as one entry."""
        ends = [(one.topic, one.topic_id, one.partition, end) for one, end in self.ends.items()]
        return Entry(added=list(self.files.values()), ends=ends)


class Manifest:
    """The entries in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def exists(self) -> bool:
        """Tell whether there is one."""
        return self._folder.is_dir()

    def create(self) -> None:
        """Make an empty one unless there is one."""
        self._folder.mkdir(parents=True, exist_ok=True)

    def state(self) -> State:
        """Return what it says now."""
        while True:
            found = self._state()
            if found is not None:
                return found

    def append(self, state: State, entry: Entry) -> None:
        """Write the entry that follows `state`; `FilesChanged` if another writer has."""
        number = state.number + 1
        new = self._folder / f"{uuid.uuid4().hex}.tmp"
        with new.open("wb") as file:
            file.write(msgspec.json.encode(entry))
            file.flush()
            os.fsync(file.fileno())
        try:
            # A link, unlike a rename, never replaces what is there.
            os.link(new, self._path(number))
        except FileExistsError:
            raise self._changed() from None
        finally:
            new.unlink()
        self._sync()
        # The number may have been taken and free again, after a hundred entries and more. Then no
        # reader follows the entry: it counts only if what it adds is in the state.
        if self._newest_whole() >= number and not self._has(entry):
            raise self._changed()
        state.follow(entry)
        state.recent.append(entry)
        state.number = number

    def condense(self, state: State) -> None:
        """Write the whole state now and then, and remove entries that nobody reads any more.

        To be called when everything that the entries say has been done.
        """
        if state.number % ENTRIES_PER_WHOLE:
            return
        whole = self._folder / f"{state.number:0{_DIGITS}d}.whole"
        new = whole.with_suffix(".tmp")
        new.write_bytes(msgspec.json.encode(state.to_entry()))
        new.replace(whole)
        self._sync()
        # A reader that began at the whole state before finds its entries still there.
        oldest = state.number - ENTRIES_PER_WHOLE
        for path in self._folder.glob("*.json"):
            if int(path.stem) <= oldest:
                path.unlink(missing_ok=True)
        for path in self._folder.glob("*.whole"):
            if int(path.stem) < oldest:
                path.unlink(missing_ok=True)

    def _changed(self) -> FilesChanged:
        return FilesChanged(
            f"another writer has changed the archive in {self._folder.parent}: nothing was added"
        )

    def _newest_whole(self) -> int:
        return max((int(path.stem) for path in self._folder.glob("*.whole")), default=0)

    def _has(self, entry: Entry) -> bool:
        """Return whether the files of an entry count. One that adds none can be written again."""
        files = self.state().files
        return bool(entry.added) and all(one.path in files for one in entry.added)

    def _state(self) -> State | None:
        """Return the state, or None if entries were removed while they were read."""
        newest = self._newest_whole()
        state = State(newest)
        try:
            if newest:
                whole = self._folder / f"{newest:0{_DIGITS}d}.whole"
                state.follow(msgspec.json.decode(whole.read_bytes(), type=Entry))
            numbers = sorted(int(path.stem) for path in self._folder.glob("*.json"))
            for number in numbers:
                if number > state.number:
                    if number != state.number + 1:
                        return None
                    entry = msgspec.json.decode(self._path(number).read_bytes(), type=Entry)
                    state.follow(entry)
                    state.recent.append(entry)
                    state.number = number
        except FileNotFoundError:
            return None
        return state

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:0{_DIGITS}d}.json"

    def _sync(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def ends_of(ends: Mapping[Stretch, int]) -> list[tuple[str, int, int, int]]:
    """Return ends in the form in which an entry has them."""
    return [(one.topic, one.topic_id, one.partition, end) for one, end in sorted(ends.items())]


def ends_among(state: State, stretches: Iterable[Stretch]) -> dict[Stretch, int]:
    """Return how far those of `stretches` are archived that are archived at all."""
    return {one: state.ends[one] for one in stretches if one in state.ends}
