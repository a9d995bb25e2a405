"""Where backups lie: one small port, and its adapter for a folder.

Whatever is written is there whole or not at all, under a name that nobody has written before or
that is meant to be replaced. Object stores promise the same, so that another adapter can be one.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from angarium.errors import InvalidArgument, NotFound, PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

PARTIAL: Final = ".partial"
"""What the name of a file ends with that is being written. It is no part of any backup."""

LOCK: Final = "lock"


class BackupStore(Protocol):
    """Named bytes. Names are paths with `/`; a name that is not there raises `NotFound`."""

    def names(self, folder: str) -> list[str]:
        """Return the names below a folder, sorted; none if there is no such folder."""

    def size(self, name: str) -> int:
        """Return how many bytes there are."""

    def read(self, name: str) -> bytes:
        """Return them."""

    def write(self, name: str, data: bytes) -> None:
        """Keep them: when this returns they are durable, before that there is nothing of them."""

    def delete(self, name: str) -> None:
        """Forget them; what is not there is forgotten already."""

    def locked(self) -> AbstractContextManager[None]:
        """Keep other writers out; raises `PreconditionFailed` while there is one."""


class FolderStore:
    """A folder of this machine, or of one that is mounted. Nobody but its owner can read it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __str__(self) -> str:
        return str(self._folder)

    def names(self, folder: str) -> list[str]:
        """Return the names below a folder, sorted."""
        root = self._folder / folder
        return sorted(
            str(one.relative_to(self._folder))
            for one in root.rglob("*")
            if one.is_file() and not one.name.endswith(PARTIAL)
        )

    def size(self, name: str) -> int:
        """Return how many bytes there are."""
        try:
            return (self._folder / name).stat().st_size
        except FileNotFoundError:
            raise NotFound(f"{self._folder / name} is not there") from None

    def read(self, name: str) -> bytes:
        """Return the bytes of a file."""
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            raise NotFound(f"{self._folder / name} is not there") from None

    def write(self, name: str, data: bytes) -> None:
        """Write a file beside its name, sync it, and give it its name."""
        path = self._folder / name
        self._make(path.parent)
        partial = path.with_name(path.name + PARTIAL)
        # From the first byte on nobody else's: hashes of passwords may be in it.
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        _sync_folder(path.parent)

    def delete(self, name: str) -> None:
        """Remove a file."""
        (self._folder / name).unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes of this machine out."""
        self._make(self._folder)
        descriptor = os.open(self._folder / LOCK, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise PreconditionFailed(
                    f"another process is writing a backup to {self._folder}"
                ) from None
            yield
        finally:
            os.close(descriptor)

    def _make(self, folder: Path) -> None:
        if folder.is_dir():
            return
        if folder != self._folder:
            self._make(folder.parent)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def store_at(where: str) -> FolderStore:
    """Return the store that somebody has named; raises `InvalidArgument`."""
    scheme, found, rest = where.partition("://")
    if not found:
        return FolderStore(Path(where))
    if scheme == "file" and rest.startswith("/"):
        return FolderStore(Path(rest))
    raise InvalidArgument(
        f"{where!r}: backups are kept in a folder; mount the object store, or copy the folder there"
    )
