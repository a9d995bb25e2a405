"""Replicas that have another identity than the rest of their node.

A replica whose files no longer tell what it promised must not go on as itself. It comes back
empty, under an incarnation of its own, while its neighbours on the disk stay who they are. That
incarnation is durable, in a small file by its group's number, before the replica says its first
word under it. Until then another small file says that the replica is nobody, where a log that was
begun anew would not show any more that something was lost.

A replica that its partition goes on with, after a majority was lost for good, becomes somebody else
as well, and keeps its log. Up to which entry that log was written under another membership is in
the same file: both are true from the same moment on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.batch.checksum import crc32c_of_bytes
from angarium.ids import Incarnation, Index, RaftGroupId
from angarium.log.disk import replace_file

if TYPE_CHECKING:
    from angarium.log.disk import Disk

FOLDER: Final = "renewed"

NEVER_ALONE: Final = Index(0)
"""Of a replica that began empty, or was never anybody else."""

_TITLE: Final = "angarium replica 1"
_LOST: Final = ".lost"


class Renewal(NamedTuple):
    """Who a node is in a group."""

    incarnation: Incarnation
    alone_from: Index = NEVER_ALONE
    """The last entry of its log when it became its group's only voter."""


def load(disk: Disk) -> dict[RaftGroupId, Renewal | None]:
    """Return who renewed replicas are, by group; None for one that cannot be read."""
    found = {}
    for name in disk.list(FOLDER):
        if name.isdecimal():
            group = RaftGroupId(int(name))
            found[group] = _parsed(group, _content(disk, f"{FOLDER}/{name}"))
    return found


def save(disk: Disk, group: RaftGroupId, renewal: Renewal) -> None:
    """Write down, durably, who this node is in `group` from now on. Blocks."""
    disk.make_folder(FOLDER)
    replace_file(disk, f"{FOLDER}/{group}", _written(group, renewal))


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


def _written(group: RaftGroupId, renewal: Renewal) -> bytes:
    body = f"{_TITLE}\ngroup {group}\nincarnation {renewal.incarnation:012x}\n".encode()
    if renewal.alone_from:
        body += f"alone from {renewal.alone_from}\n".encode()
    return body + f"crc32c {crc32c_of_bytes(body):08x}\n".encode()


def _parsed(group: RaftGroupId, content: bytes) -> Renewal | None:
    """Return what `content` says, which must be exactly what `_written` wrote."""
    try:
        _, _, line, *alone, _ = content.decode("ascii").splitlines()
        incarnation = Incarnation(int(line.removeprefix("incarnation "), 16))
        alone_from = Index(int(alone[0].removeprefix("alone from "))) if alone else NEVER_ALONE
    except ValueError:
        return None
    renewal = Renewal(incarnation, alone_from)
    return renewal if _written(group, renewal) == content else None
