"""What a stopped node has of the catalog: where it ends, who votes on it, what it says.

Read with the node's own code, from a folder that nobody else works with. The log is opened and
closed as by a node that starts and stops at once; nothing is added to it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.errors import CorruptData, NewerRelease
from angarium.ids import CATALOG_GROUP, Index, node_of
from angarium.log.halts import Halts
from angarium.log.segments import SegmentConfig
from angarium.log.snapshots import SnapshotStore
from angarium.log.wal import Wal
from angarium.machine.catalog import CatalogMachine, knows
from angarium.raft import InvalidConfChange, decode_conf_change
from angarium.raft.messages import EntryKind
from angarium.replica.catalog_replica import CatalogReplica
from angarium.replica.config import ReplicaConfig
from angarium.replica.opening import Opener
from angarium.replica.outbox import Outbox
from angarium.replica.own_ids import OwnReplicaIds
from angarium.replica.pacing import Pace

if TYPE_CHECKING:
    from angarium.ids import NodeId, ReplicaId, Term
    from angarium.log.disk import Disk
    from angarium.log.folder_identity import FolderIdentity

_READ_BYTES: Final = 1 << 20
"""Entries read at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogCopy:
    """One node's copy of the catalog."""

    own: ReplicaId
    """Who the node is among its voters."""
    last_term: Term
    last_index: Index
    commit: Index
    """Up to where it knows that a majority has it. What lies behind may have been decided, too."""
    voters: tuple[ReplicaId, ...]
    """Who votes, in both halves of a membership that is changing."""
    machine: CatalogMachine
    """What it says with all that is in the log, known to be decided or not."""

    @property
    def voting_nodes(self) -> tuple[NodeId, ...]:
        """The nodes of the voters."""
        return tuple(sorted(set(map(node_of, self.voters))))


def read_copy(disk: Disk, identity: FolderIdentity) -> CatalogCopy:
    """Return the copy on `disk`, which is locked; raises `CorruptData` where there is none."""
    own_ids = OwnReplicaIds(disk, node=identity.node_id, incarnation=identity.incarnation)
    wal = Wal.open(disk, incarnation=identity.incarnation)
    try:
        if CATALOG_GROUP in own_ids.unreadable or CATALOG_GROUP not in wal.groups:
            raise CorruptData("this folder has no copy of the catalog, or only a damaged one")
        if CATALOG_GROUP in Halts(disk).why:
            raise CorruptData("the copy of the catalog contradicted its leader, and is not counted")
        if wal.log(CATALOG_GROUP).damaged is not None:
            raise CorruptData("the copy of the catalog is damaged: entries of its log are missing")
        opener = Opener(
            disk=disk,
            own_ids=own_ids,
            wal=wal,
            snapshots=SnapshotStore(disk),
            outbox=Outbox(),
            config=ReplicaConfig(),
            segments=SegmentConfig(),
            jitter=lambda _: 0,
            pace=Pace(),
        )
        replica = opener.open(CATALOG_GROUP)
        assert isinstance(replica, CatalogReplica)
        return _read(replica, own_ids.alone_from(CATALOG_GROUP))
    finally:
        wal.close()


def _read(replica: CatalogReplica, alone_from: Index) -> CatalogCopy:
    machine, raft, storage = replica.catalog.machine, replica.raft, replica.storage
    if not raft.last_index:
        raise CorruptData("the copy of the catalog is empty: this node waits for one of another")
    index = Index(max(storage.newest.index + 1, storage.first_index()))
    while index <= raft.last_index:
        for entry in storage.entries(index, Index(raft.last_index + 1), _READ_BYTES):
            if entry.kind is not EntryKind.NORMAL:
                if entry.index > alone_from:
                    with suppress(InvalidConfChange):
                        raft.apply_conf_change(decode_conf_change(entry))
            elif not knows(entry.data):
                raise NewerRelease("the catalog has entries of a newer release: use that one")
            else:
                machine.apply(entry.index, entry.term, entry.data)
            index = Index(entry.index + 1)
    state = raft.conf_state
    return CatalogCopy(
        own=raft.id,
        last_term=storage.term(raft.last_index),
        last_index=raft.last_index,
        commit=raft.commit,
        voters=tuple(dict.fromkeys((*state.voters, *state.voters_outgoing))),
        machine=machine,
    )
