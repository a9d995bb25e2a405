"""Replicas that have stopped for good, in small files that outlive their process.

Where the committed entries of a replica and those of its group contradict each other, one of their
disks went back in time. Such a replica says and takes nothing more. A process that had forgotten
this would let it vote, and be counted, until the next entry showed it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.batch.checksum import crc32c_of_bytes
from angarium.errors import DiskFull
from angarium.ids import RaftGroupId
from angarium.log.disk import replace_file

if TYPE_CHECKING:
    from angarium.log.disk import Disk

FOLDER: Final = "halted"

_TITLE: Final = "angarium halted replica 1"
_UNREADABLE: Final = "has stopped in an earlier life, and why cannot be read any more"


class Halts:
    """Which replicas of one disk have stopped, and why, in words."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.why: dict[RaftGroupId, str] = {
            RaftGroupId(int(name)): _read(disk, f"{FOLDER}/{name}")
            for name in disk.list(FOLDER)
            if name.isdecimal()
        }
        self._unsaved: set[RaftGroupId] = set()

    @property
    def are_unsaved(self) -> bool:
        """True while a restart would forget one of them, for want of room on the disk."""
        return bool(self._unsaved)

    def note(self, group: RaftGroupId, why: str) -> None:
        """Write down, durably, that a replica has stopped. Blocks, which is rare enough here."""
        self.why[group] = why
        self._unsaved.add(group)
        # At once: the process may be restarted before the next round of housekeeping. Planted as
        # halt-forgotten-by-a-restart.
        self.save()

    def save(self) -> None:
        """Write down what there was no room for before. Blocks if there is anything."""
        for group in list(self._unsaved):
            try:
                self._disk.make_folder(FOLDER)
                replace_file(self._disk, f"{FOLDER}/{group}", _written(self.why[group]))
            except DiskFull:
                return  # until there is room it holds in this process alone
            self._unsaved.discard(group)

    def forget(self, group: RaftGroupId) -> None:
        """Take it back, durably: what the replica had is gone, or given up. Blocks."""
        self._unsaved.discard(group)
        if self.why.pop(group, None) is not None:
            self._disk.remove(f"{FOLDER}/{group}")
            self._disk.sync_directory(FOLDER)


def _read(disk: Disk, name: str) -> str:
    file = disk.open(name)
    try:
        content = file.pread(file.size(), 0)
    finally:
        file.close()
    body = content.decode("utf-8", "replace").splitlines()
    # A damaged one still says that it has stopped: its name alone does.
    return body[1] if len(body) == 3 and _written(body[1]) == content else _UNREADABLE


def _written(why: str) -> bytes:
    body = f"{_TITLE}\n{' '.join(why.split())}\n".encode()
    return body + f"crc32c {crc32c_of_bytes(body):08x}\n".encode()
