"""Replicas that have another identity than the rest of their node.

A replica whose files no longer tell what it promised must not go on as itself. It comes back
empty, under an incarnation of its own, while its neighbours on the disk stay who they are. That
incarnation is durable, in a small file by its group's number, before the replica says its first
word under it. Until then another small file says that the replica is nobody, where a log that was
begun anew would not show any more that something was lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.batch.checksum import crc32c_of_bytes
from angarium.ids import Incarnation, RaftGroupId
from angarium.log.disk import replace_file

if TYPE_CHECKING:
    from angarium.log.disk import Disk

FOLDER: Final = "renewed"

_TITLE: Final = "angarium replica 1"
_LOST: Final = ".lost"


def load(disk: Disk) -> dict[RaftGroupId, Incarnation | None]:
    """Return the incarnations of renewed replicas by group; None for one that cannot be read."""
    found = {}
    for name in disk.list(FOLDER):
        if name.isdecimal():
            group = RaftGroupId(int(name))
            found[group] = _parsed(group, _content(disk, f"{FOLDER}/{name}"))
    return found


def save(disk: Disk, group: RaftGroupId, incarnation: Incarnation) -> None:
    """Write down, durably, who this node is in `group` from now on. Blocks."""
    disk.make_folder(FOLDER)
    replace_file(disk, f"{FOLDER}/{group}", _written(group, incarnation))


def load_lost(disk: Disk) -> set[RaftGroupId]:
    """Return the groups whose replica `save_lost` has declared lost."""
    names = (name.removesuffix(_LOST) for name in disk.list(FOLDER) if name.endswith(_LOST))
    return {RaftGroupId(int(name)) for name in names if name.isdecimal()}


def save_lost(disk: Disk, group: RaftGroupId) -> None:
    """Write down, durably, that this node is nobody in `group` until it is renewed. Blocks.

    It says nothing about a replica that the log knows: that one was renewed since, or its log was
    put back.
    """
    disk.make_folder(FOLDER)
    replace_file(disk, f"{FOLDER}/{group}{_LOST}", b"angarium lost replica 1\n")


def forget_lost(disk: Disk, group: RaftGroupId) -> None:
    """Take that back, durably: this node is somebody else in `group`. Blocks."""
    name = f"{FOLDER}/{group}{_LOST}"
    if disk.exists(name):
        disk.remove(name)
        disk.sync_directory(FOLDER)


def _content(disk: Disk, name: str) -> bytes:
    file = disk.open(name)
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


def _written(group: RaftGroupId, incarnation: Incarnation) -> bytes:
    body = f"{_TITLE}\ngroup {group}\nincarnation {incarnation:012x}\n".encode()
    return body + f"crc32c {crc32c_of_bytes(body):08x}\n".encode()


def _parsed(group: RaftGroupId, content: bytes) -> Incarnation | None:
    """Return what `content` says, which must be exactly what `_written` wrote."""
    try:
        _, _, line, _ = content.decode("ascii").splitlines()
        incarnation = Incarnation(int(line.removeprefix("incarnation "), 16))
    except ValueError:
        return None
    return incarnation if _written(group, incarnation) == content else None
