"""A disk in dictionaries: for tests, and for brokers that keep nothing.

It never loses a byte while the process lives. Its pieces are also what the simulated disk of
`angarium.testing` is made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.errors import DiskFull, StorageError
from angarium.log.folder_lock import FolderInUse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import Buffer

ROOMY: Final = 1 << 62
"""The capacity of a disk that nobody limits."""


class Content:
    """The bytes of one file.

    `data` may be shorter than `length`: what lies between them was preallocated and reads as
    zeros, without costing memory.
    """

    __slots__ = ("data", "length")

    def __init__(self) -> None:
        self.data = bytearray()
        self.length = 0

    def read(self, length: int, position: int) -> bytes:
        end = min(position + length, self.length)
        found = bytes(self.data[position:end])
        return found if len(found) >= end - position else found.ljust(end - position, b"\0")

    def write(self, buffer: Buffer, position: int) -> None:
        data = self.data
        gap = position - len(data)
        if gap > 0:
            data += bytes(gap)
        end = position + len(buffer)
        data[position:end] = buffer
        self.length = max(self.length, end)

    def resize(self, length: int) -> None:
        del self.data[length:]
        self.length = length


class MemoryFile:
    """An open file of a `MemoryDisk`."""

    __slots__ = ("_content", "_disk", "_name", "_open")

    def __init__(self, disk: MemoryDisk, content: Content, name: str) -> None:
        self._disk = disk
        self._content = content
        self._name = name
        self._open = True

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> None:
        self._check_open()
        for buffer in buffers:
            self._disk.claim(self._content, position + len(buffer))
            self._content.write(buffer, position)
            position += len(buffer)

    def pread(self, length: int, position: int) -> bytes:
        self._check_open()
        return self._content.read(length, position)

    def size(self) -> int:
        self._check_open()
        return self._content.length

    def preallocate(self, length: int) -> None:
        self._check_open()
        self._disk.claim(self._content, length)
        self._content.length = max(self._content.length, length)

    def truncate(self, length: int) -> None:
        self._check_open()
        self._content.resize(length)

    def datasync(self) -> None:
        self._check_open()

    def close(self) -> None:
        self._open = False

    def _check_open(self) -> None:
        if not self._open:
            raise StorageError(f"{self._name} is closed")


class MemoryLock:
    """Whether somebody has a disk to itself."""

    __slots__ = ("is_kept",)

    def __init__(self) -> None:
        self.is_kept = True

    def release(self) -> None:
        self.is_kept = False


class MemoryDisk:
    """Files by name, folders as a set of names."""

    def __init__(self, *, capacity_bytes: int = ROOMY) -> None:
        self.capacity_bytes = capacity_bytes
        """How many bytes all files together may have; `DiskFull` beyond. May change any time."""
        self._files: dict[str, Content] = {}
        self._folders: set[str] = {""}
        self._lock: MemoryLock | None = None

    def lock(self) -> MemoryLock:
        if self._lock is not None and self._lock.is_kept:
            raise FolderInUse("another process works with this disk")
        self._lock = MemoryLock()
        return self._lock

    def create(self, name: str) -> MemoryFile:
        self._check_new(name)
        content = self._files[name] = Content()
        return MemoryFile(self, content, name)

    def open(self, name: str) -> MemoryFile:
        return MemoryFile(self, self._existing(name), name)

    def exists(self, name: str) -> bool:
        return name in self._files or name in self._folders

    def list(self, folder: str) -> list[str]:
        within = f"{folder}/" if folder else ""
        size = len(within)
        names = {*self._files, *self._folders} - {""}
        return sorted(
            name[size:] for name in names if name.startswith(within) and "/" not in name[size:]
        )

    def make_folder(self, folder: str) -> None:
        while folder:
            if folder in self._files:
                raise FileExistsError(folder)
            self._folders.add(folder)
            folder = folder_of(folder)

    def rename(self, old: str, new: str) -> None:
        content = self._existing(old)
        self._check_folder(new)
        del self._files[old]
        self._files[new] = content

    def remove(self, name: str) -> None:
        self._files.pop(name, None)

    def remove_folder(self, folder: str) -> None:
        for name in self._within(folder):
            del self._files[name]
        self._folders = {
            name for name in self._folders if name != folder and not name.startswith(f"{folder}/")
        }

    def sync_directory(self, folder: str) -> None:
        if folder not in self._folders:
            raise StorageError(f"no folder {folder}")

    def free_bytes(self) -> int:
        return max(0, self.capacity_bytes - self._used())

    def claim(self, content: Content, length: int) -> None:
        """Make sure there is room for `content` to become `length` bytes long."""
        growth = length - content.length
        if growth > 0 and not self.has_room(growth):
            raise DiskFull(f"{growth} bytes more do not fit")

    def has_room(self, growth: int) -> bool:
        """Tell whether the files may grow by this many bytes; cheap while there is no limit."""
        return self.capacity_bytes >= ROOMY or growth <= self.free_bytes()

    def _used(self) -> int:
        return sum(content.length for content in self._files.values())

    def _within(self, folder: str) -> tuple[str, ...]:
        return tuple(name for name in self._files if name.startswith(f"{folder}/"))

    def _existing(self, name: str) -> Content:
        content = self._files.get(name)
        if content is None:
            raise FileNotFoundError(name)
        return content

    def _check_new(self, name: str) -> None:
        if self.exists(name):
            raise FileExistsError(name)
        self._check_folder(name)

    def _check_folder(self, name: str) -> None:
        if folder_of(name) not in self._folders:
            raise FileNotFoundError(folder_of(name))


def folder_of(name: str) -> str:
    """Return the folder in which `name` lies; the root is the empty name."""
    return name.rpartition("/")[0]
