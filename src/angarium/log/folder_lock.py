"""One process per data folder, for as long as it lives.

Two nodes on one folder would both write its log, and each would acknowledge what the other then
overwrites. So a process locks a folder before it opens it. The kernel keeps the lock, not the file:
it goes with its process, however that ends, and a file that is left behind locks nothing. It holds
between containers too, as long as one kernel has the folder.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.errors import Fault, StorageError
from angarium.log.folder_modes import FILE_MODE

if TYPE_CHECKING:
    from pathlib import Path

LOCK_NAME: Final = "lock"

_HOLDER_BYTES_MAX: Final = 512
_TAKEN: Final = frozenset({errno.EWOULDBLOCK, errno.EACCES})
_NO_LOCKS: Final = frozenset(
    {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF}
)
"""What file systems say that have no locks, or none on folders."""


class FolderInUse(StorageError):
    """Another process works with this data folder."""

    code = "FOLDER_IN_USE"
    fault = Fault.CALLER


class FolderLock:
    """A folder that this process has to itself; `release` it, or end."""

    __slots__ = ("_descriptors", "is_kept")

    def __init__(self, *descriptors: int, is_kept: bool) -> None:
        self._descriptors = descriptors
        self.is_kept = is_kept
        """False on a file system without locks: nobody is kept out then."""

    def release(self) -> None:
        """Let others have the folder."""
        for descriptor in self._descriptors:
            # Closing alone would leave it to a child that is between its fork and its exec.
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)
        self._descriptors = ()


def lock_folder(folder: Path) -> FolderLock:
    """Take `folder` for this process; raises `FolderInUse`, which names the process that has it.

    The folder itself is locked as well as a file in it: whoever takes that file for a left-over
    removes it, and so does whoever empties the folder of a process that lives. The file is what
    works on file systems that lock files alone.
    """
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        file, is_kept = _locked_file(folder / LOCK_NAME, directory)
    except BlockingIOError:
        os.close(directory)
        raise FolderInUse(
            f"{folder} is in use by {_holder(folder / LOCK_NAME)}; two nodes on one folder would "
            "destroy each other's data: end that process, or choose another folder"
        ) from None
    except OSError:
        os.close(directory)
        raise
    _introduce(file)
    return FolderLock(file, directory, is_kept=is_kept)


def _locked_file(path: Path, directory: int) -> tuple[int, bool]:
    """Lock the folder and the file; return the file's descriptor, and whether it is locked."""
    is_folder_kept = _locked(directory)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            is_kept = _locked(descriptor)
            if not is_kept or _is_at(descriptor, path):
                return descriptor, is_kept or is_folder_kept
        except OSError:
            os.close(descriptor)
            raise
        # Somebody emptied the folder in between: what we locked is not what is there.
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            raise BlockingIOError from error
        if error.errno in _NO_LOCKS:
            return False
        raise
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)


def _introduce(descriptor: int) -> None:
    """Write down who we are, for a second process that finds the lock; not synced."""
    told = f"process {os.getpid()} on {os.uname().nodename}\n".encode()
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, told, 0)
    except OSError:
        return  # a full disk keeps nobody from starting


def _holder(path: Path) -> str:
    try:
        with path.open("rb") as file:
            told = file.read(_HOLDER_BYTES_MAX).decode("utf-8", "replace")
    except FileNotFoundError:  # somebody removed it
        told = ""
    line = told.partition("\n")[0]
    return line if line.isprintable() and line else "another process"
