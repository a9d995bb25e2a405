"""A data folder goes on in another cluster than before: the catalog's majority is lost for good.

What has to change lies in several files, and a power cut may fall between any two of them. So a
file is written first that says all of it. Until that says that everything is done no node starts on
the folder, and whoever is asked again carries out the same once more: each step may be repeated.

The id of the cluster changes before who votes in it. Under its old id a replica that takes itself
for the catalog's only voter would be a second catalog beside the lost ones, should they come back;
under the new one they are strangers to it. Planted as alone-before-the-cluster-is-another.

A node that was refused because its cluster went on without it leaves another file, which says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.batch.checksum import crc32c_of_bytes
from angarium.errors import CorruptData
from angarium.ids import CATALOG_GROUP, Incarnation, Index, RaftGroupId, Term
from angarium.log import folder_identity, level_mark, renewals
from angarium.log.disk import read_file, replace_file
from angarium.log.halts import Halts
from angarium.log.renewals import NEVER_ALONE, Renewal
from angarium.log.snapshots import SnapshotStore
from angarium.log.wal import Wal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from angarium.log.disk import Disk

NAME: Final = "succession"
LEFT_NAME: Final = "succeeded"
"""Says that the cluster went on without this folder."""

_TITLE: Final = b"angarium succession 1\n"


class Succession(msgspec.Struct, frozen=True, kw_only=True):
    """What is to become of a folder."""

    cluster: str
    previous: str
    incarnation: Incarnation
    """Who the node is among the catalog's voters from now on."""
    alone_from: Index = NEVER_ALONE
    """Where the catalog ends that the cluster goes on with; 0: this node follows another one, and
    gets its catalog from there."""
    last_term: Term = Term(0)
    level: int = level_mark.FIRST_LEVEL
    """The feature level from which on the catalog knows of this."""
    by: str = ""
    """Who confirmed it."""
    code: str = ""
    """With which code."""
    is_done: bool = False

    @property
    def follows(self) -> bool:
        """Whether another node's catalog is gone on with."""
        return not self.alone_from


# Made on import: msgspec crashes where two threads are the first to decode a type.
_decoded: Final = msgspec.json.Decoder(Succession).decode


def load(disk: Disk) -> Succession | None:
    """Return what was begun or done here; raises `CorruptData`."""
    content = read_file(disk, NAME)
    if content is None:
        return None
    body = content.removeprefix(_TITLE)[:-_CRC_BYTES]
    try:
        if content != _written(body):
            raise ValueError
        return _decoded(body)
    except (ValueError, msgspec.MsgspecError):
        raise CorruptData(
            f"the file {NAME!r} is damaged: remove it, and run the recovery of the catalog again"
        ) from None


def begin(disk: Disk, succession: Succession) -> None:
    """Write down, durably, what is to be done. Blocks."""
    replace_file(disk, NAME, _written(msgspec.json.encode(succession)))


def carry_out(disk: Disk, succession: Succession, *, group: RaftGroupId = CATALOG_GROUP) -> None:
    """Do what was begun; raises `StorageError`, after which it may be done again. Blocks.

    The simulator has another group stand for the catalog.
    """
    for step in steps(disk, succession, group):
        step()


def steps(disk: Disk, succession: Succession, group: RaftGroupId) -> Iterator[Callable[[], None]]:
    """Return all that has to be done, in order. Each is durable when it returns."""
    known = folder_identity.load(disk)
    assert known is not None, "nobody goes on with an empty folder"
    incarnation = known.incarnation
    if level_mark.load(disk) < succession.level:
        # Older releases do not know the entry by which the catalog hears of this.
        yield lambda: level_mark.save(disk, succession.level)
    yield lambda: folder_identity.change_cluster(disk, int(succession.cluster, 16))
    renewal = Renewal(succession.incarnation, succession.alone_from)
    yield lambda: renewals.save(disk, group, renewal)
    if succession.follows:
        # Somebody else from here on, who votes nowhere: what it had of the catalog may go.
        yield lambda: _drop_log(disk, incarnation, group)
        yield lambda: _drop_files(disk, group)
    yield lambda: renewals.forget_lost(disk, group)
    yield lambda: _remove(disk, LEFT_NAME)
    yield lambda: begin(disk, msgspec.structs.replace(succession, is_done=True))


def forget(disk: Disk) -> None:
    """Forget what was done: the catalog knows it. Blocks."""
    _remove(disk, NAME)


def note_left(disk: Disk, why: str) -> None:
    """Write down, durably, that the cluster went on without this folder. Blocks."""
    replace_file(disk, LEFT_NAME, f"{why}\n".encode())


def left(disk: Disk) -> str | None:
    """Return why this folder is no member's any more, or None. Blocks."""
    content = read_file(disk, LEFT_NAME)
    return None if content is None else content.decode("utf-8", "replace").strip()


def _drop_log(disk: Disk, incarnation: Incarnation, group: RaftGroupId) -> None:
    wal = Wal.open(disk, incarnation=incarnation)
    try:
        if group in wal.groups:
            wal.remove_group(group)
            wal.sync()
    finally:
        wal.close()


def _drop_files(disk: Disk, group: RaftGroupId) -> None:
    # Behind the log: one that knows a group without files would report it as damaged.
    SnapshotStore(disk).remove(group)
    Halts(disk).forget(group)
    disk.remove_folder(f"groups/{group}")


def _remove(disk: Disk, name: str) -> None:
    if disk.exists(name):
        disk.remove(name)
        disk.sync_directory("")


_CRC_BYTES: Final = len(b"\ncrc32c 00000000\n")


def _written(body: bytes) -> bytes:
    return b"%b%b\ncrc32c %08x\n" % (_TITLE, body, crc32c_of_bytes(_TITLE + body))
