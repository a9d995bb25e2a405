"""The real disk: a folder of the operating system, reached through explicit positions.

It adds nothing to the port but a translation of errors. No room becomes `DiskFull`, a failed
sync becomes `SyncFailed` (the kernel may have dropped the dirty pages, so a second attempt that
succeeds would prove nothing), every other input/output error becomes `StorageError`.
"""

from __future__ import annotations

import errno
import os
import shutil
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from angarium.errors import DiskFull, StorageError, SyncFailed
from angarium.log.folder_lock import lock_folder
from angarium.log.folder_modes import FILE_MODE, FOLDER_MODE, make_private

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.ids import Buffer
    from angarium.log.folder_lock import FolderLock

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""A full file system, a used-up quota, a limit on the size of files: all need somebody's room."""

_BUFFERS_MAX: Final = os.sysconf("SC_IOV_MAX")
"""Buffers one system call takes; a longer gather is written in several."""

SHRINK_BYTES: Final = 8 << 20
SHRINK_STEPS_MAX: Final = 200
SHRINK_PAUSE_S: Final = 0.02
"""By how much a file of a folder that goes becomes shorter at a time, in how many steps all of them
together at most, and how long the disk is left to others in between."""


class OsFile:
    """An open file of the operating system."""

    __slots__ = ("_descriptor", "_name")

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> None:
        total = sum(map(len, buffers))
        try:
            written = os.pwritev(self._descriptor, buffers[:_BUFFERS_MAX], position)
            if written != total:
                self._write_rest(buffers, written, position)
        except OSError as error:
            raise _translated(error, "write", self._name) from error

    def _write_rest(self, buffers: Sequence[Buffer], written: int, position: int) -> None:
        """Go on after a short write, from the byte after the last one written."""
        rest = _after(buffers, written)
        while rest:
            step = os.pwritev(self._descriptor, rest[:_BUFFERS_MAX], position + written)
            written += step
            rest = _after(rest, step)

    def pread(self, length: int, position: int) -> bytes:
        try:
            found = os.pread(self._descriptor, length, position)
            if 0 < len(found) < length:
                found = self._read_rest(found, length, position)
        except OSError as error:
            raise _translated(error, "read", self._name) from error
        return found

    def _read_rest(self, found: bytes, length: int, position: int) -> bytes:
        """Read on until `length` or the end of the file: a read may stop early in between."""
        parts, size = [found], len(found)
        while size < length:
            part = os.pread(self._descriptor, length - size, position + size)
            if not part:
                break
            parts.append(part)
            size += len(part)
        return b"".join(parts)

    def size(self) -> int:
        try:
            return os.fstat(self._descriptor).st_size
        except OSError as error:
            raise _translated(error, "size of", self._name) from error

    def preallocate(self, length: int) -> None:
        try:
            os.posix_fallocate(self._descriptor, 0, length)
        except OSError as error:
            raise _translated(error, "preallocate", self._name) from error

    def truncate(self, length: int) -> None:
        try:
            os.ftruncate(self._descriptor, length)
        except OSError as error:
            raise _translated(error, "truncate", self._name) from error

    def datasync(self) -> None:
        if self._descriptor < 0:
            raise StorageError(f"{self._name} is closed")
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise SyncFailed(f"fdatasync of {self._name}: {error.strerror}") from error

    def close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


class OsDisk:
    """Everything under one folder, which is created with mode 0700 if it is missing."""

    def __init__(
        self, root: str | os.PathLike[str], *, pause: Callable[[float], None] = lambda _: None
    ) -> None:
        """Use a folder; `pause` lets seconds pass in the thread that deletes large files."""
        self.root: Final = Path(root)
        make_private(self.root)
        self._pause = pause

    def lock(self) -> FolderLock:
        return lock_folder(self.root)

    def create(self, name: str) -> OsFile:
        return self._opened(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def open(self, name: str) -> OsFile:
        return self._opened(name, os.O_RDWR)

    def _opened(self, name: str, flags: int) -> OsFile:
        path = self._path(name)
        try:
            descriptor = os.open(path, flags | os.O_CLOEXEC, FILE_MODE)
        except (FileExistsError, FileNotFoundError):
            raise
        except OSError as error:
            raise _translated(error, "open", name) from error
        return OsFile(descriptor, name)

    def exists(self, name: str) -> bool:
        return self._path(name).exists()

    def list(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(self._path(folder)))  # noqa: PTH208 (names, not paths)
        except FileNotFoundError:
            return []

    def make_folder(self, folder: str) -> None:
        missing = self._path(folder)
        made = []
        while not missing.exists():
            made.append(missing)
            missing = missing.parent
        for path in reversed(made):
            path.mkdir(mode=FOLDER_MODE, exist_ok=True)
            _sync_folder(path.parent)

    def rename(self, old: str, new: str) -> None:
        self._path(old).replace(self._path(new))

    def remove(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def remove_folder(self, folder: str) -> None:
        path = self._path(folder)
        if path.exists():
            self._shrink_files(path)
            shutil.rmtree(path)

    def _shrink_files(self, folder: Path) -> None:
        """Give the room of large files back little by little.

        A file system writes down the end of a large file as a whole, and every sync on the same
        disk, of the log above all, waits for that (`benchmarks.micro.deleting`).
        """
        sizes = {one: one.stat().st_size for one in folder.rglob("*") if one.is_file()}
        step = max(SHRINK_BYTES, sum(sizes.values()) // SHRINK_STEPS_MAX)
        for path, size in sizes.items():
            for length in range(size - step, 0, -step):
                os.truncate(path, length)
                self._pause(SHRINK_PAUSE_S)

    def sync_directory(self, folder: str) -> None:
        _sync_folder(self._path(folder))

    def free_bytes(self) -> int:
        room = os.statvfs(self.root)
        return room.f_bavail * room.f_frsize

    def _path(self, name: str) -> Path:
        """Return where `name` lies; nothing outside the root has a name."""
        relative = PurePosixPath(name)
        assert not relative.is_absolute(), name
        assert ".." not in relative.parts, name
        return self.root / relative


def _after(buffers: Sequence[Buffer], count: int) -> list[Buffer]:
    """Return what is left of `buffers` after their first `count` bytes."""
    for at, buffer in enumerate(buffers):
        if count < len(buffer):
            return [memoryview(buffer)[count:], *islice(buffers, at + 1, None)]
        count -= len(buffer)
    return []


def _sync_folder(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SyncFailed(f"fsync of folder {path.name}: {error.strerror}") from error


def _translated(error: OSError, action: str, name: str) -> StorageError:
    kind = DiskFull if error.errno in _NO_ROOM else StorageError
    return kind(f"{action} {name}: {error.strerror}")
