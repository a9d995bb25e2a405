"""A replica that votes and keeps the end of the log, and no records: it breaks ties.

Its log is like everybody's: what it acknowledges is on its disk, and counts. But it applies nothing
and has no segments, so what it forgets it cannot give to anybody. Three rules make that safe:

- It forgets nothing that a full voter may lack. Its leader tells it how far all of them are
  (`raft.replication`); nobody comes to vote who has less (`raft.reconfiguration`). So with every
  full voter that is left it has all that was ever acknowledged.
- It does not jump over entries by a snapshot either, before all of them have these; or its leader
  says that both full voters have what was committed without it (`raft.forgetting`).
- It leads only where nobody else can be elected: when it alone of those that are left has the
  newest entries. Then it serves nobody, brings a full voter up to date out of its log, and hands
  over to that one at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from angarium.ids import Index, is_witness
from angarium.raft import SnapshotTemporarilyUnavailable
from angarium.raft.messages import MessageKind
from angarium.replica.peers import EntriesRequest
from angarium.replica.repair import IdentityLost
from angarium.replica.replica import Replica
from angarium.replica.serving import give_entries
from angarium.replica.storage import ReplicaStorage

if TYPE_CHECKING:
    from collections.abc import Generator

    from angarium.ids import Buffer, ReplicaId, Term
    from angarium.raft.messages import Entry, Message, Snapshot
    from angarium.replica.parts import Parts
    from angarium.replica.peers import PeerMessage
    from angarium.replica.work import Work

WITNESS_STATE: Final = b"angarium witness"
"""What its snapshots hold in place of a state."""

WITNESS_TIMEOUTS: Final = 3
"""How many election timeouts without a leader pass before a witness campaigns, as long as nobody
has shown to lack what it has: a full voter that can lead has done so by then."""

SNAPSHOT_SHARE: Final = 8
"""By how much sooner than a full replica it saves, which costs it next to nothing: so it keeps but
a small part of the log."""

_ASKS_FOR_A_VOTE: Final = frozenset((MessageKind.VOTE, MessageKind.PRE_VOTE))


class NoState:
    """What entries are for in a witness: nothing."""

    is_occupied = False
    is_concluded = True

    def understands(self, data: Buffer) -> bool:
        """Take whatever a leader has: it is for the others to understand."""
        del data
        return True

    def apply(self, entry: Entry) -> None:
        """Let an entry pass."""

    def lead(self, term: Term) -> None:
        """Serve nobody."""

    def follow(self) -> None:
        """Go on serving nobody."""

    def save(self) -> Generator[Work, None, bytes]:
        """Return what stands for no state."""
        yield from ()
        return WITNESS_STATE

    def saved(self, index: Index) -> None:
        """Let go of nothing."""

    def restore(self, data: Buffer, index: Index) -> None:
        """Become nothing else."""


class WitnessStorage(ReplicaStorage):
    """A log whose snapshots stand for nothing that anybody could be given."""

    __slots__ = ()

    def snapshot(self) -> Snapshot:
        """Refuse: only a full leader has one to offer."""
        raise SnapshotTemporarilyUnavailable("a witness has no state to give")


class WitnessReplica(Replica):
    """A replica without a partition. It is no `PartitionReplica`: nobody can be served by it."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, NoState())
        self._floor = Index(0)
        """Up to here every full voter has the log, as leaders have said in this life."""
        self._heirs_tried = 0
        self.raft.be_patient(WITNESS_TIMEOUTS)

    @property
    def forgets_to(self) -> Index:
        """How far its log may be forgotten. Planted as witness-forgets-what-others-lack."""
        return self._floor

    # --- inputs -----------------------------------------------------------------------------

    def tick(self) -> None:
        """Let one tick pass; as a leader, hand over."""
        super().tick()
        if self.halted:
            return
        if self.raft.is_leader:
            self._hand_over()
        elif self.silent_ticks == 1:
            self.raft.be_patient(WITNESS_TIMEOUTS)  # somebody leads, and has just been heard

    def receive(self, message: Message) -> None:
        """Take a Raft message; of a snapshot only where it ends."""
        snapshot = message.snapshot
        if snapshot is not None:
            if self.is_busy:
                return  # one of our own is being written: as if it had been lost on the way
            # Jumping there forgets all before it. The leader offers it again, and its message has
            # an index up to which nobody can need that. Planted as
            # witness-jumps-over-what-others-lack.
            if snapshot.index <= max(self.forgets_to, message.index):
                bare = structs.replace(snapshot, data=WITNESS_STATE)
                super().receive(structs.replace(message, snapshot=bare))
            return
        if message.kind in _ASKS_FOR_A_VOTE and self._is_ahead_of(message):
            # It cannot win without our vote, or needs what we have: no need to wait any longer
            # than others do.
            self.raft.be_patient(1)
        super().receive(message)
        # A deposed leader's word is dropped by the core: it may not know who votes by now.
        if message.kind is MessageKind.HEARTBEAT and message.term == self.raft.term:
            self._floor = max(self._floor, message.index)
            if self._has_spare_entries:
                self._outbox.touched.add(self.group)

    def receive_from_peer(self, message: PeerMessage) -> None:
        """Give entries that are here; others may have those that are not."""
        if isinstance(message, EntriesRequest):
            give_entries(self._parts, message, says_if_gone=False)

    def _is_ahead_of(self, candidate: Message) -> bool:
        raft = self.raft
        own = raft.last_term, raft.last_index
        return (candidate.log_term, candidate.index) < own and not is_witness(candidate.sender)

    # --- leading ----------------------------------------------------------------------------

    def _watch_leadership(self) -> None:
        """Do not serve, whoever leads: there is nothing here."""

    def _hand_over(self) -> None:
        """Let a full voter lead as soon as it has all that is here; one after the other is tried.

        Planted as witness-leads-for-ever.
        """
        if self.raft.transferee:
            return  # under way; the core gives it up after an election timeout
        heirs = self._heirs()
        if heirs:
            self.raft.transfer_leader(heirs[self._heirs_tried % len(heirs)])
            self._heirs_tried += 1

    def _heirs(self) -> list[ReplicaId]:
        """Return the full voters, who has most of the log first."""
        raft = self.raft
        full = [one for one in raft.conf_state.voters if not is_witness(one)]
        return sorted(full, key=lambda one: (-(raft.match(one) or 0), one))

    # --- snapshots --------------------------------------------------------------------------

    def wants_snapshot(self) -> bool:
        """Tell whether a part of the log could go: it is to stay small."""
        share = self._config.snapshot_bytes // SNAPSHOT_SHARE
        return super().wants_snapshot() or self.snapshots.unsaved_bytes >= max(share, 1)

    @property
    def _has_spare_entries(self) -> bool:
        """Whether many entries could go that had to stay when the last snapshot was taken."""
        kept = min(self.snapshot_index - self._config.snapshot_keep_entries, self.forgets_to)
        return kept - self._storage.first_index() >= self._config.snapshot_entries

    def needs_care(self) -> bool:
        """Tell whether a snapshot is due, or entries may go by now."""
        return self._has_spare_entries or super().needs_care()

    def maintain(self) -> Generator[Work, None, None]:
        """Save that there is nothing to save, and let the log forget what it may."""
        yield from super().maintain()
        if self._has_spare_entries:
            self.snapshots.forget_entries(
                self.snapshot_index, keep=self._config.snapshot_keep_entries
            )


def check_is_witness(snapshot: Snapshot, *, says_so: bool) -> None:
    """Raise `IdentityLost` if a replica's newest snapshot is not of the kind that it should be."""
    if snapshot.index and says_so is not (bytes(snapshot.data) == WITNESS_STATE):
        raise IdentityLost("its snapshot is a witness's and it is none, or the other way round")
