"""A disk that stops the process before its n-th change, to try every place a crash may hit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import Buffer
    from angarium.log.disk import Disk, DiskLock, File


class Cut(Exception):
    """The process ended here."""


class CuttingDisk:
    """Passes everything on to another disk, and counts what changes it."""

    def __init__(self, disk: Disk, *, changes_max: int | None = None) -> None:
        self._disk = disk
        self._changes_max = changes_max
        self.changes = 0

    def change(self) -> None:
        """Count one change, or end the process instead."""
        if self.changes == self._changes_max:
            raise Cut
        self.changes += 1

    def lock(self) -> DiskLock:
        return self._disk.lock()

    def create(self, name: str) -> File:
        self.change()
        return CuttingFile(self, self._disk.create(name))

    def open(self, name: str) -> File:
        return CuttingFile(self, self._disk.open(name))

    def exists(self, name: str) -> bool:
        return self._disk.exists(name)

    def list(self, folder: str) -> list[str]:
        return self._disk.list(folder)

    def make_folder(self, folder: str) -> None:
        self._disk.make_folder(folder)

    def rename(self, old: str, new: str) -> None:
        self.change()
        self._disk.rename(old, new)

    def remove(self, name: str) -> None:
        self.change()
        self._disk.remove(name)

    def remove_folder(self, folder: str) -> None:
        self.change()
        self._disk.remove_folder(folder)

    def sync_directory(self, folder: str) -> None:
        self.change()
        self._disk.sync_directory(folder)

    def free_bytes(self) -> int:
        return self._disk.free_bytes()


class CuttingFile:
    """A file of a `CuttingDisk`."""

    def __init__(self, disk: CuttingDisk, file: File) -> None:
        self._disk = disk
        self._file = file

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> None:
        self._disk.change()
        self._file.pwrite(buffers, position)

    def pread(self, length: int, position: int) -> bytes:
        return self._file.pread(length, position)

    def size(self) -> int:
        return self._file.size()

    def preallocate(self, length: int) -> None:
        self._disk.change()
        self._file.preallocate(length)

    def truncate(self, length: int) -> None:
        self._disk.change()
        self._file.truncate(length)

    def datasync(self) -> None:
        self._disk.change()
        self._file.datasync()

    def close(self) -> None:
        self._file.close()
