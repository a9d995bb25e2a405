"""Open files for reading, a bounded number of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angarium.log.disk import Disk, File


class OpenFiles:
    """Keeps the files read last open. Many partitions may share one."""

    __slots__ = ("_disk", "_files", "_files_max", "_last")

    def __init__(self, disk: Disk, *, files_max: int) -> None:
        self._disk = disk
        self._files: dict[str, File] = {}
        self._files_max = files_max
        self._last = ""
        """The name asked for last, which is at the end already."""

    def get(self, name: str) -> File:
        """Return the file called `name`, opened if need be; `FileNotFoundError` without one."""
        if name == self._last:
            return self._files[name]
        file = self._files.pop(name, None)
        if file is None:
            file = self._disk.open(name)
            if len(self._files) >= self._files_max:
                self._files.pop(next(iter(self._files))).close()
        # A dictionary keeps the order of insertion: the first is the one not used for longest.
        self._files[name] = file
        self._last = name
        return file

    def forget(self, name: str) -> None:
        """Close the file called `name`, because it is removed or replaced."""
        self._last = ""
        file = self._files.pop(name, None)
        if file is not None:
            file.close()

    def close(self, *, within: str = "") -> None:
        """Close every file whose name begins with `within`."""
        for name in [name for name in self._files if name.startswith(within)]:
            self.forget(name)
