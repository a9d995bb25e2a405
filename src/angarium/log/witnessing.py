"""In which groups a node is a witness, in small files by their numbers.

Written before such a replica says its first word, and gone only when another one may begin in its
place: the file is part of who the replica is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.ids import RaftGroupId
from angarium.log.disk import replace_file

if TYPE_CHECKING:
    from angarium.log.disk import Disk

FOLDER: Final = "witnessing"


def load(disk: Disk) -> set[RaftGroupId]:
    """Return the groups."""
    return {RaftGroupId(int(name)) for name in disk.list(FOLDER) if name.isdecimal()}


def save(disk: Disk, group: RaftGroupId) -> None:
    """Write down, durably, that this node is a witness in `group`. Blocks."""
    disk.make_folder(FOLDER)
    # What is in it does not matter, so that a flipped bit does not either.
    replace_file(disk, f"{FOLDER}/{group}", b"angarium witness 1\n")


def forget(disk: Disk, group: RaftGroupId) -> None:
    """Take that back, durably. Blocks."""
    disk.remove(f"{FOLDER}/{group}")
    disk.sync_directory(FOLDER)
