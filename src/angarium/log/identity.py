"""Whose data these are: a small file at the root of a data directory.

It is written once, before anything else. The incarnation in it is part of every replica's name
among the voters, so a directory that was wiped, or is somebody else's, can never pass for the one
that made the promises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.batch.checksum import crc32c
from angarium.errors import AlreadyExists, CorruptData, StorageError
from angarium.ids import Incarnation, NodeId, ReplicaId, replica_id
from angarium.log.disk import replace_file

if TYPE_CHECKING:
    from angarium.log.disk import Disk

NAME: Final = "identity"
_MAGIC: Final = b"ANGIDEN1"


class Identity(msgspec.Struct, frozen=True):
    """Which cluster, which node, which incarnation of its data."""

    cluster: str
    node: NodeId
    incarnation: Incarnation

    @property
    def replica(self) -> ReplicaId:
        """Who this node is in every group it has a replica of."""
        return replica_id(self.node, self.incarnation)


def load_identity(disk: Disk) -> Identity | None:
    """Return whose data these are; None only for a directory with nothing in it.

    Data without an identity, or with a damaged one, are an error: whoever went on as somebody new
    would break what was promised under the old name.
    """
    if not disk.exists(NAME):
        others = [name for name in disk.list("") if not name.endswith(".draft")]
        if others:
            raise StorageError(
                f"the data directory holds {', '.join(others[:3])} but no identity file; "
                "restore it, or empty the directory to join as a new node"
            )
        return None
    file = disk.open(NAME)
    try:
        content = file.pread(file.size(), 0)
    finally:
        file.close()
    body = content[len(_MAGIC) + 4 :]
    stored = int.from_bytes(content[len(_MAGIC) : len(_MAGIC) + 4], "little")
    if not content.startswith(_MAGIC) or crc32c(body) != stored:
        raise CorruptData("the identity file is damaged; restore it, or empty the data directory")
    try:
        return msgspec.msgpack.decode(body, type=Identity)
    except msgspec.MsgspecError as error:
        raise CorruptData(f"the identity file cannot be read: {error}") from error


def write_identity(disk: Disk, identity: Identity) -> None:
    """Make an empty directory this node's; raises `AlreadyExists` if it is somebody's."""
    if disk.exists(NAME):
        raise AlreadyExists("the data directory has an identity already")
    body = msgspec.msgpack.encode(identity)
    replace_file(disk, NAME, _MAGIC + crc32c(body).to_bytes(4, "little") + body)
