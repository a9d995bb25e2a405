"""Backups in memory."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from angarium.errors import NotFound

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class MemoryStore:
    """Implements `BackupStore`."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def names(self, folder: str) -> list[str]:
        return sorted(one for one in self.files if one.startswith(f"{folder}/"))

    def size(self, name: str) -> int:
        return len(self.read(name))

    def read(self, name: str) -> bytes:
        if name not in self.files:
            raise NotFound(f"{name} is not there")
        return self.files[name]

    def write(self, name: str, data: bytes) -> None:
        self.files[name] = data

    def delete(self, name: str) -> None:
        self.files.pop(name, None)

    def locked(self) -> AbstractContextManager[None]:
        return nullcontext()
