"""A file of a node, opened to be looked at and nothing else: a running node notices nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

from angarium.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from angarium.ids import Buffer


class ReadOnlyFile:
    """The reading half of `angarium.log.disk.File`; whatever would write raises `StorageError`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __enter__(self) -> ReadOnlyFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.close()

    def pread(self, length: int, position: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer only at the end of the file."""
        parts = []
        while length > 0 and (part := os.pread(self._descriptor, length, position)):
            parts.append(part)
            length -= len(part)
            position += len(part)
        return b"".join(parts)

    def size(self) -> int:
        """Return the file's length."""
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        """Release the file. Closing twice is allowed."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> None:
        """Refuse."""
        del buffers, position
        self._refuse()

    def preallocate(self, length: int) -> None:
        """Refuse."""
        del length
        self._refuse()

    def truncate(self, length: int) -> None:
        """Refuse."""
        del length
        self._refuse()

    def datasync(self) -> None:
        """Refuse."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise StorageError(f"{self._path} is open for reading only")
