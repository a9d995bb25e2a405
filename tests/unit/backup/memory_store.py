"""Backups in memory."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from angarium.errors import AlreadyExists, NotFound

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class MemoryStore:
    """Implements `BackupStore`."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def names(self, folder: str) -> list[str]:
        return sorted(one for one in self.files if one.startswith(f"{folder}/"))

    def read(self, name: str) -> bytes:
        if name not in self.files:
            raise NotFound(f"{name} is not there")
        return self.files[name]

    def write(self, name: str, data: bytes) -> None:
        self.files[name] = data

    def create(self, name: str, data: bytes) -> None:
        if self.files.setdefault(name, data) != data:
            raise AlreadyExists(f"{name} is there already")

    def delete(self, *names: str) -> None:
        for name in names:
            self.files.pop(name, None)

    def locked(self) -> AbstractContextManager[None]:
        return nullcontext()
