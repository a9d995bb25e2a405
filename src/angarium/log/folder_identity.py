"""Who a data directory belongs to: cluster, node, and the incarnation of the data.

The identity is written once, before anything else, and changed by nobody but who goes on after the
catalog's majority was lost for good (`successions`): then the cluster is another one. It is what
stops a node from coming back with somebody else's data, or without its own: a replica that has lost
its log must not vote as if it had never voted. So an identity that is missing or damaged while
there is data beside it is an error for an operator; only an empty directory may be given a new
one.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.batch.checksum import crc32c_of_bytes
from angarium.errors import AlreadyExists, CorruptData, StorageError
from angarium.ids import Incarnation, NodeId
from angarium.log.disk import read_file, replace_file
from angarium.log.folder_lock import LOCK_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.log.disk import Disk

IDENTITY_NAME: Final = "identity"

_TITLE: Final = "angarium identity 1"
_INCARNATION_BITS: Final = 48
INVITATIONS_NAME: Final = "join-tokens"
INVITATIONS_DRAFT: Final = "join-tokens.draft"
"""Left by who runs several nodes, for one of them, which may be new itself, to let the others in.
"""

NO_DATA: Final = frozenset(
    {f"{IDENTITY_NAME}.draft", LOCK_NAME, INVITATIONS_NAME, INVITATIONS_DRAFT, "lost+found"}
)
"""Names that say nothing about data: a draft is left by a power cut during `create`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderIdentity:
    """Cluster, node and incarnation; one per data directory, for good."""

    cluster_id: int
    """Drawn at random when the cluster is formed; up to 128 bits."""
    node_id: NodeId
    incarnation: Incarnation
    """Drawn at random when the data directory is made; see `draw_incarnation`."""

    def __post_init__(self) -> None:
        assert 0 <= self.cluster_id < 1 << 128, "a cluster id fits 128 bits"
        assert 0 < self.node_id < 1 << 14, "a node id fits 14 bits"
        assert 0 <= self.incarnation < 1 << _INCARNATION_BITS, "an incarnation fits 48 bits"


def draw_incarnation(random_bits: Callable[[int], int]) -> Incarnation:
    """Return a new incarnation; `random_bits(n)` returns n random bits as a number."""
    return Incarnation(random_bits(_INCARNATION_BITS))


def load(disk: Disk) -> FolderIdentity | None:
    """Return the identity of the data on `disk`; None only if there is nothing at all.

    Raises `CorruptData` if the identity is damaged, or missing beside other data.
    """
    content = read_file(disk, IDENTITY_NAME)
    if content is None:
        _check_empty(disk)
        return None
    return _parsed(content)


def create(disk: Disk, identity: FolderIdentity) -> None:
    """Write the identity of a new data directory, durably.

    Raises `AlreadyExists` if there is one, `CorruptData` if there is data without one.
    """
    # Never a second one: whoever comes back under another identity has forgotten its votes.
    if disk.exists(IDENTITY_NAME):
        raise AlreadyExists("the data directory has an identity already")
    _check_empty(disk)
    put(disk, identity)


def put(disk: Disk, identity: FolderIdentity) -> None:
    """Write an identity, durably, whatever is there. Nobody does that but who must."""
    replace_file(disk, IDENTITY_NAME, _written(identity))


def change_cluster(disk: Disk, cluster_id: int) -> None:
    """Belong to another cluster, durably, as the same node with the same data."""
    known = load(disk)
    assert known is not None, "nobody goes on with an empty folder"
    if known.cluster_id != cluster_id:
        put(disk, dataclasses.replace(known, cluster_id=cluster_id))


def check(disk: Disk, expected: FolderIdentity) -> None:
    """Make sure that the data on `disk` is `expected`'s; `StorageError` says whose it is if not."""
    found = load(disk)
    if found != expected:
        raise StorageError(f"the data directory belongs to {found}, not to {expected}")


def _check_empty(disk: Disk) -> None:
    others = [name for name in disk.list("") if name not in NO_DATA and name != IDENTITY_NAME]
    if others:
        raise CorruptData(
            f"the file {IDENTITY_NAME!r} is missing beside {', '.join(others)}: "
            "put it back, or empty the data directory and let the node join anew"
        )


def _written(identity: FolderIdentity) -> bytes:
    body = (
        f"{_TITLE}\n"
        f"cluster {identity.cluster_id:032x}\n"
        f"node {identity.node_id}\n"
        f"incarnation {identity.incarnation:012x}\n"
    ).encode()
    return body + f"crc32c {crc32c_of_bytes(body):08x}\n".encode()


def _parsed(content: bytes) -> FolderIdentity:
    """Return what `content` says, which must be exactly what `_written` wrote."""
    try:
        title, cluster, node, incarnation, _ = content.decode("ascii").splitlines()
        identity = FolderIdentity(
            cluster_id=int(cluster.removeprefix("cluster "), 16),
            node_id=NodeId(int(node.removeprefix("node "))),
            incarnation=Incarnation(int(incarnation.removeprefix("incarnation "), 16)),
        )
    except (ValueError, AssertionError):
        identity = None
        title = ""
    # Byte for byte what was written. A wrong node id that happens to parse would vote in another's
    # name.
    if identity is None or title != _TITLE or _written(identity) != content:
        raise CorruptData(
            f"the file {IDENTITY_NAME!r} is damaged: put it back from a copy, "
            "or empty the data directory and let the node join anew"
        )
    return identity
