"""Every replica of one node over one write-ahead log.

Inputs are method calls: a message came, a tick passed, a sync is done. Nothing here waits, reads a
clock or starts a thread. Whoever drives the host does three things after each input: send what
the outbox holds, write the sync that `begin_sync` gives (that may run in a thread), and call
`finish_sync` when it is done. The node's event loop drives it in production, the simulator in
tests; both run the same code from here down.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.errors import CorruptData, DiskFull
from angarium.ids import node_of
from angarium.raft.messages import Message, MessageKind
from angarium.replica.fullness import MARK_TICKS
from angarium.replica.hastening import Hastening
from angarium.replica.peers import EntriesReply, EntriesRequest, PeerMessage, Rest, Vouch
from angarium.replica.roster import Roster
from angarium.replica.round_trips import RoundTrips
from angarium.replica.scrutiny import Objection, objection_to

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from angarium.ids import Incarnation, NodeId, RaftGroupId, ReplicaId
    from angarium.log.disk import Disk
    from angarium.log.wal import SyncRound
    from angarium.raft.messages import Snapshot
    from angarium.replica.config import HostConfig
    from angarium.replica.listener import HostListener
    from angarium.replica.replica import Replica
    from angarium.replica.work import Work

_LOOKS_FOR_A_LEADER: Final = (MessageKind.PRE_VOTE, MessageKind.VOTE)

SHORTENED_MAX: Final = 32
"""Groups that save their state for the sake of the WAL in one round of housekeeping; the others
follow in the next."""

SNAPSHOT_ROOM_BYTES: Final = 64 << 10
"""Room on disk, beside its own, that a snapshot from a leader needs to be let in. Without it the
snapshot counts as lost on the way."""


@dataclass(slots=True)
class Sync:
    """A sync under way, and the answers it will let out."""

    round: SyncRound | None
    answers: list[tuple[Replica, tuple[Message, ...]]]
    leaving: list[RaftGroupId]
    """Groups whose files may go when this is done."""

    def write(self) -> None:
        """Write and fsync; blocks, and may run in a thread.

        Raises `SyncFailed`, after which the host must stop.
        """
        if self.round is not None:
            self.round.write()


class Host(Roster):
    """The replicas of one node, driven."""

    def __init__(
        self,
        disk: Disk,
        *,
        node: NodeId,
        incarnation: Incarnation,
        config: HostConfig,
        jitter: Callable[[int], int],
        listener: HostListener | None = None,
        name_of: Callable[[RaftGroupId], str] = "group {}".format,
    ) -> None:
        super().__init__(
            disk,
            node=node,
            incarnation=incarnation,
            config=config,
            jitter=jitter,
            listener=listener,
            name_of=name_of,
        )
        self._wal_config = config.wal
        self._hastening = Hastening(
            election_ticks=config.replica.election_ticks,
            heartbeat_ticks=config.replica.heartbeat_ticks,
        )
        self._sync: Sync | None = None
        self.round_trips = RoundTrips()
        """How far the other nodes are, as whoever drives the host has measured it."""
        self._ticks = 0

    # --- inputs -----------------------------------------------------------------------------

    def tick(self) -> None:
        """Let one tick pass for every group that does not rest.

        While not even a vote could be remembered any more no time passes, and no message arrives:
        to the others this node seems to be paused, and they go on without it. Housekeeping finds
        out when there is room again.
        """
        # A vote or a term that cannot be written down must not be given, and pausing the whole
        # node is the one way that needs no rule in Raft.
        if self.wal.is_exhausted:
            return
        self._stop_damaged()
        self._wake()
        self.outbox.release_commit_news()
        self._allow_for_distances()
        if self._hastening:
            self._hastening.tick()
        self._tick_awake()
        self._sleepers.tick()
        self._wake()
        if self._sync is None:
            # Idle: write down that the last sync round is synced, so that later damage to it can
            # be told from a write that never finished.
            self.wal.mark()
        self._mend_resting()
        self._bury()
        self._go_on_with_repairs()
        self._go_on_with_copies()

    def _stop_damaged(self) -> None:
        """Stop replicas that met damage when they were called by others than this host."""
        broken, self.outbox.broken = self.outbox.broken, []
        for replica, damage in broken:
            if self._replica(replica.group) is replica:
                self._stop(replica.group, damage)
        # Reads that ended in front of damage raised nothing.
        for group in self.wal.take_hurt():
            found = self._replica(group)
            is_hurt = self.wal.log(group).damaged is not None
            if is_hurt and found is not None and not found.halted:
                self._stop(group, CorruptData("entries of its log cannot be read"))

    def _allow_for_distances(self) -> None:
        """Let elections wait as long as votes are under way; now and then is often enough."""
        self._ticks += 1
        if self._ticks % MARK_TICKS or not self.round_trips:
            return
        for replica in self._awake.values():
            raft = replica.raft
            raft.allow_for(self.round_trips.allowed_ticks(raft.id, raft.conf_state.voters))

    def _tick_awake(self) -> None:
        rested = []
        for group, replica in list(self._awake.items()):
            if self.wal.is_exhausted:
                break
            try:
                replica.tick()
                replica.process()
            # One replica stops, and only that one: the others on this node have their own logs.
            except CorruptData as damaged:
                self._stop(group, damaged)
                continue
            if self._sleepers.consider(replica):
                rested.append(group)
        for group in rested:
            del self._awake[group]

    def _go_on_with_copies(self) -> None:
        """Let those copies go on that waited for their share of the pace."""
        for group, request in self.pace.due():
            replica = self.replicas.get(group)
            if replica is None or replica.halted:
                continue
            try:
                replica.go_on_copying(request)
                replica.process()
            except CorruptData as damaged:
                self._stop(group, damaged)

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
        count = len(self.replicas) + len(self.witnesses) + (self.catalog is not None)
        if len(self._awake) + len(self._sleepers) < count:
            for replica in self._all():
                if not replica.is_resting:
                    self._awake.setdefault(replica.group, replica)

    def link_changed(self, node: NodeId) -> None:
        """Hear that the way to a node was lost, or is there again."""
        # If it left, its silence need not show first; if it came back, it knows of no leader.
        self._sleepers.wake_shared_with(node)
        self._wake()
        for replica in self._all():
            # Behind the link may be another process by now, on a disk that was put back. What it
            # acknowledged before must not be counted until it has confirmed it anew. Planted as
            # part of groups-at-rest-are-not-steered.
            replica.doubt(node)

    def silent_ticks(self, group: RaftGroupId) -> int:
        """Return how many ticks ago a replica last heard from its leader; 0 if it leads.

        While it rests, the leader's node vouches for it.
        """
        replica = self.replicas.get(group)
        if replica is None or replica.may_serve:
            return 0
        return replica.silent_ticks + self._sleepers.silent_ticks(group)

    def hasten_elections(self, gone: NodeId) -> int:
        """Hear that a node is gone: whatever it leads looks for another leader within a few ticks.

        Returns how many replicas here do. See `hastening` for why this is safe if it is not true.
        """
        self._sleepers.wake_shared_with(gone)
        self._wake()
        begun = 0
        for replica in list(self._all()):
            if replica.halted:
                continue
            begun += self._hastening.begin(replica, gone)
            try:
                replica.process()
            except CorruptData as damaged:
                self._stop(replica.group, damaged)
        return begun

    def deliver(self, group: RaftGroupId, message: Message, *, via: ReplicaId) -> None:
        """Take a Raft message that came from the node known as `via`; see `scrutiny`."""
        if not self._is_for_us(group, message, via) or self.wal.is_exhausted:
            return
        # In this order: who speaks, whether there is somebody here to hear it, whether a peer that
        # keeps the rules can have said it, and only then whether there is room.
        replica = self._replica(group)
        if replica is None:
            if group in self.repairs:
                self.repairs[group].heard_from(message.sender)
            return
        # It has contradicted its leader. Answering anything could make a majority with it. Planted
        # as halt-forgotten-by-a-restart.
        if replica.halted:
            return
        objection = objection_to(message, replica.raft)
        if objection is not None:
            self._refuse(objection, group, message)
            return
        # Whoever looks for a leader is told by the next heartbeat, and a group at rest has none.
        # The core alone would not wake: a vote is not even considered while the leader is known.
        if replica.is_resting and message.kind in _LOOKS_FOR_A_LEADER:
            self.outbox.woken.append(group)
        if not self._can_take(replica, message):
            return  # as if it had been lost on the way: it is sent again, or given up
        try:
            replica.receive(message)
            replica.process()
        except CorruptData as damaged:
            self._stop(group, damaged)

    def _can_take(self, replica: Replica, message: Message) -> bool:
        """Tell whether this node is in a state to do what a message asks for."""
        if message.kind is MessageKind.TIMEOUT_NOW:
            return self.may_take_over
        if message.kind is MessageKind.APPEND and message.entries:
            return replica.has_room
        # Refused before the core hears of it: a core that has accepted a snapshot waits until it
        # is installed, and does nothing else meanwhile.
        return message.snapshot is None or self._has_room_for(message.snapshot)

    def _has_room_for(self, snapshot: Snapshot) -> bool:
        # Twice: what it replaces stays until the new one is on disk, and files have headers.
        return self._disk.free_bytes() >= 2 * len(snapshot.data) + SNAPSHOT_ROOM_BYTES

    def _is_for_us(
        self, group: RaftGroupId, message: Message | PeerMessage, via: ReplicaId
    ) -> bool:
        """Tell whether somebody speaks for themselves, and to us.

        A node has another incarnation in groups whose replica it lost to damage.
        """
        # `via` is who greeted on this connection. Raft believes whatever a voter says, so nobody
        # may speak for another node. Planted as sender-not-compared.
        is_honest = node_of(message.sender) == node_of(via)
        # The whole replica id, incarnation included: after a wipe this node is another replica,
        # and an acknowledgement or a vote asked of the earlier one must not be given by it.
        # Planted as messages-to-an-older-incarnation-accepted.
        if is_honest and message.to == self.own_ids.in_group(group):
            return True
        if is_honest and isinstance(message, Vouch) and self.own_ids.is_own(message.to):
            return True
        # What was meant for an earlier incarnation of this node is late, and no lie.
        if not is_honest or node_of(message.to) != node_of(self.id):
            self._refuse(Objection.SENDER, group, message, via)
        return False

    def _refuse(
        self,
        objection: Objection,
        group: RaftGroupId | None,
        message: Message | PeerMessage,
        via: ReplicaId | None = None,
    ) -> None:
        kind = message.kind.name if isinstance(message, Message) else type(message).__name__
        where = "" if group is None else f" about {self.name_of(group)}"
        what = f"{kind}{where} from node {node_of(message.sender)}"
        if via is not None:
            what += f" to node {node_of(message.to)}, said by node {node_of(via)}"
        elif isinstance(message, Message):
            what += f", term {message.term}, index {message.index}, commit {message.commit}"
        self.outbox.refusals.note(objection, what)

    def deliver_from_peer(self, message: PeerMessage, *, via: ReplicaId) -> None:
        """Take a message outside of Raft that came from the node known as `via`."""
        if not self._is_for_us(message.group, message, via) or self.wal.is_exhausted:
            return
        if isinstance(message, Vouch):
            self._sleepers.hear_vouch(message)
            return
        repair = self.repairs.get(message.group)
        if repair is not None and isinstance(message, EntriesReply):
            self._take_repair(message, repair)
            return
        if repair is not None or message.group in self.lost:
            if isinstance(message, EntriesRequest):
                self._give_while_damaged(message)
            return
        replica = self._replica(message.group)
        if replica is None or replica.halted:
            return
        if isinstance(message, Rest):
            self._sleepers.hear_rest(message, replica)
            if replica.is_resting:
                self._awake.pop(message.group, None)
            return
        try:
            replica.receive_from_peer(message)
            replica.process()
        except CorruptData as damaged:
            self._stop(message.group, damaged)

    # --- what the driver does after each input ----------------------------------------------

    @property
    def is_syncing(self) -> bool:
        """True while a sync is under way."""
        return self._sync is not None

    def begin_sync(self) -> Sync | None:
        """Return the next sync to carry out, or None if one is under way or none is wanted."""
        # One sync at a time. What comes in meanwhile shares the next one, which is what makes
        # syncs cheap under load.
        if self._sync is not None or not (self.outbox.waiting_for_sync or self._leaving):
            return None
        leaving, self._leaving = self._leaving, []
        self._deleting.update(leaving)
        # Sealed and taken in one step: every answer in this list was given for something that is
        # in this round or an earlier one.
        self._sync = Sync(self.wal.seal(), self.outbox.take_waiting(), leaving)
        return self._sync

    def finish_sync(self, sync: Sync) -> None:
        """Let out the answers that waited for this sync."""
        assert sync is self._sync, "syncs finish in the order they began, one at a time"
        self._sync = None
        # Before the answers: they may ask for the next sync.
        self.outbox.sync_done()
        if sync.round is not None:
            self.wal.synced(sync.round)
        if sync.leaving:
            self.outbox.chores.append(self._delete_files(sync.leaving))
        # First all answers, then the work: a replica may have several lists of answers in one
        # sync, and one Ready covers what they bring about.
        for step in (0, 1):
            for replica, responses in sync.answers:
                if self._replica(replica.group) is not replica:
                    continue  # it was removed, or lost: nothing of it is said any more
                try:
                    if step == 0:
                        replica.persisted(responses)
                    else:
                        replica.process()
                except CorruptData as damaged:
                    self._stop(replica.group, damaged)

    # --- housekeeping -----------------------------------------------------------------------

    def maintain(self, *, urgent_only: bool = False) -> Generator[Work, None, None]:
        """Do what may wait: write segments behind, take snapshots, free WAL files.

        With `urgent_only`, what can wait longer is left for later: writing a little of each of
        many partitions costs as much as writing a lot.
        """
        touched, self.outbox.touched = self.outbox.touched, set()
        for group in sorted(touched):
            replica = self._replica(group)
            if replica is None or replica.halted or not replica.needs_care():
                continue
            self.outbox.touched.add(group)  # look again: it may not have been all
            if not urgent_only or replica.is_care_urgent():
                try:
                    yield from replica.maintain()
                except CorruptData as damaged:
                    if self._replica(group) is replica:
                        self._lose(group, damaged)
        if self._halts.are_unsaved:
            # A halt must outlive the process: restarted, the replica would take part again.
            # Planted as halt-forgotten-by-a-restart.
            yield self._halts.save
        if self.wal.wants_mark:
            with suppress(DiskFull):
                yield self.wal.mark_begun
        # Behind the snapshots of this turn, which may have unpinned the oldest files.
        self.wal.release()
        yield from self._shorten_logs()

    def _shorten_logs(self) -> Generator[Work, None, None]:
        """Have those save their state whose old entries alone keep the WAL from shrinking.

        A group in which nothing happens never comes to save it by itself.
        """
        config = self._wal_config
        if self.wal.file_count <= config.files_kept:
            return
        # Above `files_max` the disk counts for more than a member that is slow to catch up.
        is_patient = self.wal.file_count <= config.files_max
        for group in self.wal.pinning_groups()[:SHORTENED_MAX]:
            replica = self._replica(group)
            if replica is not None:
                yield from replica.shorten_log(is_patient=is_patient)
