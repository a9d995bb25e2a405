"""The port to a disk: the few operations everything under `log` is made of.

Files have explicit positions and no cursor, so a reader and the writer never disturb each other.
What survives a power cut is exactly what this page says: bytes of a file after its `datasync`
returned; a created, renamed or removed name after `sync_directory` on its folder returned; a
folder after `make_folder` returned. Everything else may be there, in part or whole, in any order,
or not at all. A buffer is any object of bytes whose `len` is its number of bytes.

`OsDisk` is the real one, `MemoryDisk` keeps everything in dictionaries, and the simulated disk of
`angarium.testing` loses, tears and flips what it may. One contract suite runs against all three.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.ids import Buffer

SECTOR_BYTES: Final = 512
"""The unit of a torn write: after a power cut a sector holds all of a write or none of it."""


class File(Protocol):
    """An open file. Using it after `close` raises `StorageError`."""

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write all `buffers`, one after the other, from `position` on.

        Raises `DiskFull` when there is no room; part of the bytes may have been written then.
        """

    def pread(self, length: int, position: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer only at the end of the file."""

    def size(self) -> int:
        """Return the file's length, preallocated bytes included."""

    def preallocate(self, length: int) -> None:
        """Make the file at least `length` bytes long, reading as zeros; raises `DiskFull`."""

    def truncate(self, length: int) -> None:
        """Cut the file to `length` bytes."""

    def datasync(self) -> None:
        """Make every byte written so far survive a power cut; raises `SyncFailed`, fatally."""

    def close(self) -> None:
        """Release the file. Closing twice is allowed."""


class DiskLock(Protocol):
    """A disk that one process has to itself, until it releases it or ends."""

    @property
    def is_kept(self) -> bool:
        """False where there are no locks: nobody is kept out then."""

    def release(self) -> None:
        """Let others have the disk."""


class Disk(Protocol):
    """One tree of folders and files. Names are relative, with `/` between folders."""

    def lock(self) -> DiskLock:
        """Have the disk to this process alone; `FolderInUse` while another one has it.

        To be asked for before anything on it is looked at: two nodes on one disk would both write
        its log, and each would acknowledge what the other then overwrites.
        """

    def create(self, name: str) -> File:
        """Create a file for reading and writing; `FileExistsError` if the name is taken."""

    def open(self, name: str) -> File:
        """Open an existing file for reading and writing; `FileNotFoundError` otherwise."""

    def exists(self, name: str) -> bool:
        """Tell whether a file or folder has this name."""

    def list(self, folder: str) -> list[str]:
        """Return the names inside `folder`, sorted; nothing for a folder that is not there."""

    def make_folder(self, folder: str) -> None:
        """Create `folder` and its parents so that they survive a power cut.

        Folders are made seldom, so this one syncs by itself; one that is there already is fine.
        """

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, replacing what had it, atomically."""

    def remove(self, name: str) -> None:
        """Remove a file; one that is not there is fine."""

    def remove_folder(self, folder: str) -> None:
        """Remove `folder` with everything in it; one that is not there is fine."""

    def sync_directory(self, folder: str) -> None:
        """Make names created, renamed or removed in `folder` survive a power cut."""

    def free_bytes(self) -> int:
        """Return how much more could be written."""


def read_file(disk: Disk, name: str) -> bytes | None:
    """Return the content of a small file, or None if there is none."""
    try:
        file = disk.open(name)
    except FileNotFoundError:
        return None
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


def replace_file(disk: Disk, name: str, content: Buffer) -> None:
    """Put `content` under `name` so that after a power cut the old or the new one is whole."""
    with replacing(disk, name) as file:
        file.pwrite([content], 0)


@contextmanager
def replacing(disk: Disk, name: str) -> Iterator[File]:
    """Yield a file to write, which takes the place of the one called `name` when it is done.

    After a power cut the old or the new one is whole. If writing fails, the old one stays.
    """
    folder = name.rpartition("/")[0]
    draft = f"{name}.draft"
    disk.remove(draft)
    file = disk.create(draft)
    try:
        yield file
        # Content before name. A rename that overtakes the data leaves, after a power cut, an empty
        # file under the good name.
        file.datasync()
    finally:
        file.close()
    disk.rename(draft, name)
    # Until then a power cut may bring the old file back, whole.
    disk.sync_directory(folder)
