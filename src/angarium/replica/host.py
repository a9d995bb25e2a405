"""Every replica of one node over one write-ahead log.

Inputs are method calls: a message came, a tick passed, a sync is done. Nothing here waits, reads a
clock or starts a thread. Whoever drives the host does three things after each input: send what
`take_messages` gives, start the sync that `begin_sync` gives (its `write` may run in a thread), and
call `finish_sync` when it is done. The node's event loop drives it in production, the simulator in
tests; both run the same code from here down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from angarium.errors import CorruptData, DiskFull, NotFound
from angarium.ids import CATALOG_GROUP, Index, Term, replica_id
from angarium.log.segments import SegmentConfig
from angarium.log.snapshots import SnapshotStore
from angarium.log.wal import Wal, WalConfig
from angarium.raft.messages import ConfState, MessageKind, Snapshot
from angarium.replica.catalog import empty_catalog
from angarium.replica.catalog_replica import CatalogReplica
from angarium.replica.config import ReplicaConfig
from angarium.replica.opening import Opener, partition_folder
from angarium.replica.outbox import Outbox
from angarium.replica.partition_files import folders_in
from angarium.replica.partition_snapshot import empty_partition
from angarium.replica.peers import EntriesReply, Rest, Vouch
from angarium.replica.repair import IdentityLost, Repair, entries_to_refetch
from angarium.replica.sleeping import Sleepers

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from angarium.ids import GroupId, Incarnation, NodeId, ReplicaId
    from angarium.log.disk import Disk
    from angarium.log.wal import SyncGroup
    from angarium.raft.messages import Message
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.replica.peers import PeerMessage
    from angarium.replica.replica import Replica
    from angarium.replica.work import Work


_LOOKS_FOR_A_LEADER: Final = (MessageKind.PRE_VOTE, MessageKind.VOTE)

ORIGIN: Final = Index(1)
"""Where the log of a new group begins: before its first leader's own entry."""

_ORIGIN_TERM: Final = Term(1)

SHORTENED_MAX: Final = 32
"""Groups that save their state for the sake of the WAL in one round of housekeeping; the others
follow in the next."""

SNAPSHOT_ROOM_BYTES: Final = 64 << 10
"""Room on disk, beside its own, that a snapshot from a leader needs to be let in. Without it the
snapshot counts as lost on the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConfig:
    """Settings of a host and of the files under it."""

    replica: ReplicaConfig = field(default_factory=ReplicaConfig)
    wal: WalConfig = field(default_factory=WalConfig)
    segments: SegmentConfig = field(default_factory=SegmentConfig)


@dataclass(slots=True)
class Sync:
    """A sync under way, and the answers it will let out."""

    group: SyncGroup | None
    answers: list[tuple[Replica, tuple[Message, ...]]]
    leaving: list[GroupId]
    """Groups whose files may go when this is done."""


class Host:
    """The replicas of one node."""

    def __init__(
        self,
        disk: Disk,
        *,
        node: NodeId,
        incarnation: Incarnation,
        config: HostConfig,
        jitter: Callable[[int], int],
    ) -> None:
        self.id: ReplicaId = replica_id(node, incarnation)
        self.replicas: dict[GroupId, PartitionReplica] = {}
        """Replicas of partitions."""
        self.catalog: CatalogReplica | None = None
        """The replica of group 0, on a node that has one."""
        self.repairs: dict[GroupId, Repair] = {}
        self.outbox = Outbox()
        self.wal = Wal.open(disk, incarnation=incarnation, config=config.wal)
        self._wal_config = config.wal
        self._disk = disk
        self._snapshots = SnapshotStore(disk)
        self._opener = Opener(
            disk=disk,
            replica=self.id,
            wal=self.wal,
            snapshots=self._snapshots,
            outbox=self.outbox,
            config=config.replica,
            segments=config.segments,
            jitter=jitter,
        )
        self.on_started: Callable[[GroupId], None] = _ignore
        """Told whenever a replica begins to work: at once, or after a repair."""
        self._awake: dict[GroupId, PartitionReplica | CatalogReplica] = {}
        self._sleepers = Sleepers(self.id, self.outbox, config.replica)
        self._sync: Sync | None = None
        self._leaving: list[GroupId] = []
        """Groups whose files go once the log has durably forgotten them."""
        self._deleting: set[GroupId] = set()
        """Groups that the log has forgotten and whose files are being deleted."""
        self._forget_unformed()
        for group in sorted(self.wal.recovered.groups):
            self._reopen(group)

    # --- groups -----------------------------------------------------------------------------

    def form_group(self, group: GroupId, voters: Sequence[ReplicaId]) -> None:
        """Create a replica of a new group whose first members are `voters`.

        Every first member forms the group alike, once; whoever comes later joins.
        """
        self.save_origin(group, voters)
        self.start_formed(group)

    def save_origin(self, group: GroupId, voters: Sequence[ReplicaId]) -> None:
        """Make the first membership of a new group durable. Blocks; may run in a thread."""
        # It is the content of a snapshot at index 1 that nobody has to send.
        conf_state = ConfState(voters=tuple(sorted(voters)))
        nothing = empty_catalog() if group == CATALOG_GROUP else empty_partition()
        self._snapshots.save(group, Snapshot(ORIGIN, _ORIGIN_TERM, conf_state, nothing))
        self.make_folders(group)

    def make_folders(self, group: GroupId) -> None:
        """Make the folders of a group, so that opening it need not. Blocks; may run in a thread."""
        if group != CATALOG_GROUP:
            for folder in folders_in(partition_folder(group)):
                self._disk.make_folder(folder)

    def start_formed(self, group: GroupId) -> None:
        """Begin to work in a new group whose origin is saved."""
        self.wal.add_group(group)
        self.wal.compact(group, ORIGIN, _ORIGIN_TERM)
        self._start(group)

    def join_group(self, group: GroupId) -> None:
        """Create an empty replica that waits to be added by the group's leader."""
        self.wal.add_group(group)
        self._start(group)

    def remove_group(self, group: GroupId) -> None:
        """Give up this node's replica of `group`, with everything it holds.

        Does nothing while its files are being written, or while there is no room to write down
        that it goes; ask again then.
        """
        replica = self.replicas.get(group)
        if self.wal.is_exhausted or (replica is not None and replica.is_in_use):
            return
        self.repairs.pop(group, None)
        if replica is not None:
            self._sleepers.wake(group)
            del self.replicas[group]
            self._awake.pop(group, None)  # one that rested is not there
            replica.close()
        if group in self.wal.groups:
            self.wal.remove_group(group)
            self._leaving.append(group)

    def is_leaving(self, group: GroupId) -> bool:
        """Tell whether files of a removed replica are still there; wait before it comes back."""
        under_way = self._sync.leaving if self._sync is not None else []
        return group in self._leaving or group in under_way or group in self._deleting

    @property
    def resting(self) -> int:
        """How many groups rest."""
        return len(self._sleepers)

    def close(self) -> None:
        """Let go of every file. What is not synced is lost, and nobody was told it was not."""
        for replica in self._all():
            replica.close()
        self.wal.close()

    def replica(self, group: GroupId) -> PartitionReplica:
        """Return this node's replica of `group`; raises `NotFound`."""
        try:
            return self.replicas[group]
        except KeyError:
            raise NotFound(f"this node has no replica of group {group}") from None

    def _forget_unformed(self) -> None:
        """Deal with snapshots whose group the log does not know."""
        for group in sorted(set(self._snapshots.list()) - set(self.wal.recovered.groups)):
            if self.wal.recovered.unknown_groups:
                raise IdentityLost(f"the log has lost all it knew about group {group}")
            # A crash fell into the forming of the group: nobody has heard of this replica yet.
            self._snapshots.remove(group)

    def _reopen(self, group: GroupId) -> None:
        try:
            snapshot = self._snapshots.load(group) or Snapshot()
        except CorruptData as damaged:
            raise IdentityLost(str(damaged)) from damaged
        log = self.wal.log(group)
        if log.damaged is not None:
            # Entries that the snapshot stands for need no repair.
            self.wal.compact(group, snapshot.index, snapshot.term)
        known_commit = Index(max(log.hard_state.commit, snapshot.index))
        missing = entries_to_refetch(log.damaged, known_commit=known_commit)
        if missing is None:
            self._start(group)
            return
        conf_state = snapshot.conf_state
        self.repairs[group] = Repair(
            group=group,
            replica=self.id,
            low=missing[0],
            high=missing[1],
            peers=(*conf_state.voters, *conf_state.voters_outgoing, *conf_state.learners),
        )

    def _start(self, group: GroupId) -> None:
        assert not self.is_leaving(group), "the old files go first"
        try:
            opened = self._opener.open(group)
        except CorruptData as damaged:
            raise IdentityLost(str(damaged)) from damaged
        self._awake[group] = opened
        if isinstance(opened, CatalogReplica):
            self.catalog = opened
        else:
            self.replicas[group] = opened
        self.on_started(group)

    def _replica(self, group: GroupId) -> PartitionReplica | CatalogReplica | None:
        return self.catalog if group == CATALOG_GROUP else self.replicas.get(group)

    def _all(self) -> Iterator[PartitionReplica | CatalogReplica]:
        if self.catalog is not None:
            yield self.catalog
        yield from list(self.replicas.values())

    # --- inputs -----------------------------------------------------------------------------

    def tick(self) -> None:
        """Let one tick pass for every group that does not rest.

        While not even a vote could be remembered any more no time passes, and no message arrives:
        to the others this node seems to be paused, and they go on without it. Housekeeping finds
        out when there is room again.
        """
        if self.wal.is_exhausted:
            return
        self._wake()
        self._tick_awake()
        self._sleepers.tick()
        self._wake()
        if self._sync is None:
            # Idle: write down that the last sync group is synced, so that later damage to it can
            # be told from a write that never finished.
            self.wal.mark()
        self._mend_resting()
        for group, repair in list(self.repairs.items()):
            if repair.is_complete:
                self._finish_repair(group, repair)
            elif (request := repair.request()) is not None:
                self.outbox.tell(request)

    def _tick_awake(self) -> None:
        rested = []
        for group, replica in list(self._awake.items()):
            if self.wal.is_exhausted:
                break
            replica.tick()
            replica.process()
            if self._sleepers.consider(replica):
                rested.append(group)
        for group in rested:
            del self._awake[group]

    def _mend_resting(self) -> None:
        """Let replicas mend their segments that are not ticked otherwise."""
        for group in list(self.outbox.hurt):
            replica = self.replicas.get(group)
            if replica is None or not replica.is_mending:
                self.outbox.hurt.discard(group)
            elif replica.is_resting:
                replica.mend()

    def _wake(self) -> None:
        """Tick again those to whom something happened, or for whom nobody vouches any more."""
        woken, self.outbox.woken = self.outbox.woken, []
        for group in woken:
            self._sleepers.wake(group)
        if len(self._awake) + len(self._sleepers) < len(self.replicas) + (self.catalog is not None):
            for replica in self._all():
                if not replica.is_resting:
                    self._awake.setdefault(replica.group, replica)

    def link_changed(self, node: NodeId) -> None:
        """Hear that the way to a node was lost, or is there again."""
        self._sleepers.wake_shared_with(node)
        self._wake()

    def deliver(self, group: GroupId, message: Message) -> None:
        """Take a Raft message from another node."""
        # A message to an earlier incarnation of this node is not for us.
        if message.to != self.id or self.wal.is_exhausted:
            return
        replica = self._replica(group)
        if replica is None:
            if group in self.repairs:
                self.repairs[group].heard_from(message.sender)
            return
        # Whoever looks for a leader is told by the next heartbeat, and a group at rest has none.
        # The core alone would not wake: a vote is not even considered while the leader is known.
        if replica.is_resting and message.kind in _LOOKS_FOR_A_LEADER:
            self.outbox.woken.append(group)
        # No room for it: as if it had been lost on the way. The leader will send it again.
        if message.kind is MessageKind.APPEND and message.entries and not replica.has_room:
            return
        if message.snapshot is not None and not self._has_room_for(message.snapshot):
            return
        replica.receive(message)
        replica.process()

    def _has_room_for(self, snapshot: Snapshot) -> bool:
        # Twice: what it replaces stays until the new one is on disk, and files have headers.
        return self._disk.free_bytes() >= 2 * len(snapshot.data) + SNAPSHOT_ROOM_BYTES

    def deliver_from_peer(self, message: PeerMessage) -> None:
        """Take a message outside of Raft from another node."""
        if message.to != self.id or self.wal.is_exhausted:
            return
        repair = self.repairs.get(message.group)
        if repair is not None:
            if isinstance(message, EntriesReply):
                self._take_repair(message, repair)
            return
        if isinstance(message, Vouch):
            self._sleepers.hear_vouch(message)
            return
        replica = self._replica(message.group)
        if replica is None:
            return
        if isinstance(message, Rest):
            self._sleepers.hear_rest(message, replica)
            if replica.is_resting:
                self._awake.pop(message.group, None)
            return
        replica.receive_from_peer(message)
        replica.process()

    def _take_repair(self, reply: EntriesReply, repair: Repair) -> None:
        repair.receive(reply)
        if repair.is_complete:
            self._finish_repair(reply.group, repair)
            return
        request = repair.request()
        if request is not None:
            self.outbox.tell(request)

    def _finish_repair(self, group: GroupId, repair: Repair) -> None:
        try:
            self.wal.repair(group, repair.entries)
        except DiskFull:
            return  # again with the next tick
        del self.repairs[group]
        # Whatever this replica promises from now on is synced after what it repaired.
        self._start(group)

    # --- what the driver does after each input ----------------------------------------------

    @property
    def is_syncing(self) -> bool:
        """True while a sync is under way."""
        return self._sync is not None

    def begin_sync(self) -> Sync | None:
        """Return the next sync to carry out, or None if one is under way or none is wanted."""
        if self._sync is not None or not (self.outbox.waiting_for_sync or self._leaving):
            return None
        leaving, self._leaving = self._leaving, []
        self._sync = Sync(self.wal.seal(), self.outbox.take_waiting(), leaving)
        return self._sync

    def write(self, sync: Sync) -> None:
        """Write and fsync; blocks. Raises `SyncFailed`, after which this host must stop."""
        if sync.group is not None:
            self.wal.write(sync.group)

    def finish_sync(self, sync: Sync) -> None:
        """Let out the answers that waited for this sync."""
        assert sync is self._sync, "syncs finish in the order they began, one at a time"
        self._sync = None
        self.outbox.sync_done()
        if sync.group is not None:
            self.wal.synced(sync.group)
        if sync.leaving:
            self._deleting.update(sync.leaving)
            self.outbox.chores.append(self._delete_files(sync.leaving))
        for replica, responses in sync.answers:
            replica.persisted(responses)
        for replica, _ in sync.answers:
            replica.process()

    def _delete_files(self, groups: Sequence[GroupId]) -> Generator[Work, None, None]:
        """Delete what groups have left behind; many files, so beside everything else."""
        for group in groups:
            yield partial(self._snapshots.remove, group)
            yield partial(self._disk.remove_folder, partition_folder(group))
            self._deleting.discard(group)

    # --- housekeeping -----------------------------------------------------------------------

    def maintain(self, *, urgent_only: bool = False) -> Generator[Work, None, None]:
        """Do what may wait: write segments behind, take snapshots, free WAL files.

        With `urgent_only`, what can wait longer is left for later: writing a little of each of
        many partitions costs as much as writing a lot.
        """
        touched, self.outbox.touched = self.outbox.touched, set()
        for group in sorted(touched):
            replica = self._replica(group)
            if replica is None or not replica.needs_care():
                continue
            self.outbox.touched.add(group)  # look again: it may not have been all
            if not urgent_only or replica.is_care_urgent():
                yield from replica.maintain()
        self.wal.release()
        yield from self._shorten_logs()

    def _shorten_logs(self) -> Generator[Work, None, None]:
        """Have those save their state whose old entries alone keep the WAL from shrinking.

        A group in which nothing happens never comes to save it by itself.
        """
        config = self._wal_config
        if self.wal.file_count <= config.files_kept:
            return
        is_patient = self.wal.file_count <= config.files_max
        for group in self.wal.pinning_groups()[:SHORTENED_MAX]:
            replica = self._replica(group)
            if replica is not None:
                yield from replica.shorten_log(is_patient=is_patient)


def _ignore(_: GroupId) -> None:
    """Nobody wants to know."""
