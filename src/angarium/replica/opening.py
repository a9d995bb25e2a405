"""Opening a replica: its files on disk become a core, a state, and a `Replica` that joins them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec import structs

from angarium.ids import CATALOG_GROUP, RaftGroupId
from angarium.raft import Config, RaftNode
from angarium.raft.messages import ConfState, HardState, Snapshot
from angarium.replica.catalog import Catalog
from angarium.replica.catalog_replica import CatalogReplica
from angarium.replica.partition import Partition
from angarium.replica.partition_replica import PartitionReplica
from angarium.replica.parts import Parts
from angarium.replica.repair import IdentityLost
from angarium.replica.storage import ReplicaStorage
from angarium.replica.witness import WitnessReplica, WitnessStorage, check_is_witness

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.ids import Index
    from angarium.log.disk import Disk
    from angarium.log.segments import SegmentConfig
    from angarium.log.snapshots import SnapshotStore
    from angarium.log.wal import Wal
    from angarium.replica.config import ReplicaConfig
    from angarium.replica.outbox import Outbox
    from angarium.replica.own_ids import OwnReplicaIds
    from angarium.replica.pacing import Pace

_FOLDERS: Final = "groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opener:
    """Opens the replicas of one host."""

    disk: Disk
    own_ids: OwnReplicaIds
    wal: Wal
    snapshots: SnapshotStore
    outbox: Outbox
    config: ReplicaConfig
    segments: SegmentConfig
    jitter: Callable[[int], int]
    pace: Pace

    def open(self, group: RaftGroupId) -> CatalogReplica | PartitionReplica | WitnessReplica:
        """Open `group`; what its log knows beyond the snapshot is applied again."""
        alone_from = self.own_ids.alone_from(group)
        snapshot = self._as_alone(group, self.snapshots.load(group) or Snapshot(), alone_from)
        is_witness = self.own_ids.is_witness(group)
        check_is_witness(snapshot, says_so=is_witness)
        storage = (WitnessStorage if is_witness else ReplicaStorage)(
            group=group,
            log=self.wal.log(group),
            store=self.snapshots,
            snapshot=snapshot,
            hard_state=_agreed_hard_state(self.wal, group, snapshot),
        )
        if is_witness:
            return WitnessReplica(self._parts(group, storage, alone_from))
        # Files first: what they show to be damaged is known before there is a core.
        if group == CATALOG_GROUP:
            catalog = Catalog(saved=snapshot.data, listener=self.outbox.listener)
            return CatalogReplica(self._parts(group, storage, alone_from), catalog)
        folder = partition_folder(group)
        partition = Partition(
            self.disk,
            folder,
            group=group,
            saved=snapshot.data,
            config=self.config,
            segments=self.segments,
            outbox=self.outbox,
        )
        parts = self._parts(group, storage, alone_from)
        return PartitionReplica(parts, partition, disk=self.disk, folder=folder)

    def _as_alone(self, group: RaftGroupId, snapshot: Snapshot, alone_from: Index) -> Snapshot:
        """Return a snapshot with this replica as the only voter, if it was taken before it was."""
        own = self.own_ids.in_group(group)
        state = snapshot.conf_state
        # One that is newer holds whoever was taken in since, and perhaps this replica no more.
        is_newer = not alone_from or snapshot.index > alone_from
        if is_newer or own in (*state.voters, *state.learners):
            return snapshot
        return structs.replace(snapshot, conf_state=ConfState(voters=(own,)))

    def _parts(self, group: RaftGroupId, storage: ReplicaStorage, alone_from: Index) -> Parts:
        return Parts(
            group=group,
            raft=self._core(group, storage),
            storage=storage,
            wal=self.wal,
            outbox=self.outbox,
            config=self.config,
            pace=self.pace,
            alone_from=alone_from,
        )

    def _core(self, group: RaftGroupId, storage: ReplicaStorage) -> RaftNode:
        config = self.config
        return RaftNode(
            Config(
                id=self.own_ids.in_group(group),
                election_ticks=config.election_ticks,
                heartbeat_ticks=config.heartbeat_ticks,
                applied=storage.newest.index,
                message_bytes_max=config.message_bytes_max,
                uncommitted_bytes_max=config.uncommitted_bytes_max,
                inflight_messages_max=config.inflight_messages_max,
                forward_proposals=False,
            ),
            storage,
            jitter=self.jitter,
        )


def partition_folder(group: RaftGroupId) -> str:
    """Return where a partition's files lie: under its id, which is never used again."""
    return f"{_FOLDERS}/{group}"


def groups_with_folders(disk: Disk) -> list[RaftGroupId]:
    """Return the groups that have a folder, whatever is in it."""
    return [RaftGroupId(int(name)) for name in disk.list(_FOLDERS) if name.isdecimal()]


def _agreed_hard_state(wal: Wal, group: RaftGroupId, snapshot: Snapshot) -> HardState:
    """Return the hard state of a log that may have to be brought up to its snapshot first.

    A snapshot is durable before the log learns of it, so after a crash the log may be behind.
    """
    log = wal.log(group)
    # Planted as older-snapshot-taken.
    if snapshot.index < log.first_index() - 1:
        # The log forgets nothing before a snapshot of it is durable: this one is an older copy.
        raise IdentityLost(
            f"its snapshot ends at entry {snapshot.index}, and its log goes on from "
            f"{log.first_index()}: what lies between is lost"
        )
    if snapshot.index > log.last_index():
        # A crash fell between the snapshot and the log's learning of it.
        wal.compact(group, snapshot.index, snapshot.term)
    remembered = log.hard_state
    term, vote = remembered.term, remembered.vote
    if snapshot.term > term:
        # The term of the snapshot's last entry is newer than the one we remember, so we have not
        # voted in it.
        term, vote = snapshot.term, HardState().vote
    return HardState(term, vote, max(remembered.commit, snapshot.index))
