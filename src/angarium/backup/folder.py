"""Backups in a folder of this machine, or of one that is mounted."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from angarium.errors import AlreadyExists, NotFound, PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTIAL: Final = ".partial"
"""What the name of a file ends with that is being written. It is no part of any backup."""

LOCK: Final = "lock"

_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})
"""What a file system says that gives no file a second name."""


class FolderStore:
    """Implements `BackupStore`. Nobody but the owner of the folder can read it."""

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

    def read(self, name: str) -> bytes:
        """Return the bytes of a file."""
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            raise NotFound(f"{self._folder / name} is not there") from None

    def write(self, name: str, data: bytes) -> None:
        """Write a file beside its name, sync it, and give it its name."""
        path = self._folder / name
        self._written(path, data).replace(path)
        _sync_folder(path.parent)

    def create(self, name: str, data: bytes) -> None:
        """Do the same for a name that is not taken."""
        path = self._folder / name
        partial = self._written(path, data)
        try:
            path.hardlink_to(partial)
        except FileExistsError:
            pass  # looked at below
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if not path.exists():  # nothing better is to be had there than the lock
                partial.replace(path)
        partial.unlink(missing_ok=True)
        if path.read_bytes() != data:
            raise AlreadyExists(f"{path} is there already")
        _sync_folder(path.parent)

    def delete(self, *names: str) -> None:
        """Remove files."""
        for name in names:
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
            # Of a process that was killed: nobody else is writing now.
            for left in self._folder.rglob(f"*{PARTIAL}"):
                left.unlink(missing_ok=True)
            yield
        finally:
            os.close(descriptor)

    def _written(self, path: Path, data: bytes) -> Path:
        """Return a file beside `path` that holds the bytes, durably."""
        self._make(path.parent)
        partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PARTIAL}")
        # From the first byte on nobody else's: hashes of passwords may be in it.
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            partial.unlink(missing_ok=True)  # on a full disk it would be in the way
            raise
        return partial

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
