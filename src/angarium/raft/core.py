"""The state of one replica in one group, and the roles it takes.

Everything a replica knows is in a `Core`. The modules beside this one are what it does with it:
`election` (campaigning and voting), `replication` (a leader's sending and committing), `leading`
and `following` (what each role does with a message), `read_index`, `reconfiguration`,
`persistence`, and `stepping`, which decides which of them a message meets. None of them does I/O:
what should leave the replica is put into `messages` or `after_append`, and the driver takes it from
there.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from angarium.errors import InvalidArgument
from angarium.ids import NO_REPLICA, Index, ReplicaId, Term
from angarium.raft.log import RaftLog
from angarium.raft.membership import restored
from angarium.raft.messages import HardState
from angarium.raft.progress import REPLICATE
from angarium.raft.read_only import PendingReads, ReadState
from angarium.raft.tracker import Tracker

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.raft.config import Config
    from angarium.raft.messages import Message
    from angarium.raft.storage import Storage


class Role(IntEnum):
    """What a replica is at the moment."""

    FOLLOWER = 0
    CANDIDATE = 1
    LEADER = 2
    PRE_CANDIDATE = 3
    """Asking whether it could win an election before it starts one."""


FOLLOWER: Final = Role.FOLLOWER
CANDIDATE: Final = Role.CANDIDATE
LEADER: Final = Role.LEADER
PRE_CANDIDATE: Final = Role.PRE_CANDIDATE


class Core:
    """One replica. Its fields are open to the modules of this package and to nobody else."""

    __slots__ = (
        "after_append",
        "config",
        "election_elapsed",
        "election_timeout",
        "forgotten_index",
        "heartbeat_elapsed",
        "held_from",
        "id",
        "is_transferee_called",
        "jitter",
        "leader",
        "log",
        "messages",
        "patience",
        "pending_conf_index",
        "postponed_reads",
        "read_states",
        "reads",
        "role",
        "round_trip_ticks",
        "term",
        "tracker",
        "transferee",
        "uncommitted_bytes",
        "vote",
    )

    def __init__(self, config: Config, storage: Storage, *, jitter: Callable[[int], int]) -> None:
        self.config = config
        self.id = config.id
        self.jitter = jitter
        self.log = RaftLog(
            storage,
            applying_bytes_max=config.applying_bytes_max,
            # A synchronous driver writes before it applies, so what it is about to write counts.
            apply_unwritten=not config.async_storage_writes,
        )
        self.tracker = Tracker(
            inflight_messages_max=config.inflight_messages_max,
            inflight_bytes_max=config.inflight_bytes_max,
        )

        self.term = Term(0)
        # Persistent with the term (Raft, figure 2): a voter that forgets its vote may grant
        # another one in the same term, and two leaders of one term follow. Planted as
        # vote-not-persisted.
        self.vote = NO_REPLICA
        self.role = FOLLOWER
        self.leader = NO_REPLICA

        self.messages: list[Message] = []
        """To be sent at once; all of them to other replicas."""
        self.after_append: list[Message] = []
        """To be sent once everything appended and voted so far is on disk: they promise it to
        somebody, perhaps to ourselves (paper, section 5: persistent state before RPCs)."""
        self.read_states: list[ReadState] = []
        """Reads that may go ahead."""

        self.election_elapsed = 0
        """Ticks since we heard from a leader or started an election; as a leader, since we last
        checked the quorum."""
        self.heartbeat_elapsed = 0
        self.election_timeout = 0
        """`election_ticks` and this term's jitter."""
        self.round_trip_ticks = 0
        """By how much elections and leases last longer than configured: voters are far away."""
        self.patience = 1
        """How many election timeouts without a leader pass before we campaign."""

        # What only a leader uses; `_reset` clears it.
        self.transferee = NO_REPLICA
        """Who should become leader in our place (thesis, section 3.10)."""
        self.is_transferee_called = False
        """Whether it has our whole log and was told to campaign; each transfer begins anew."""
        self.pending_conf_index = Index(0)
        """No membership change may be proposed before the entry at this index is applied."""
        self.forgotten_index = Index(0)
        """Up to here witnesses may have forgotten the log: no more was said to any, by us or by
        those who led before. Whoever is to vote has to have it."""
        self.uncommitted_bytes = 0
        self.held_from = Index(0)
        """Entries from here on wait to be sent with others; 0 if none do."""
        self.reads = PendingReads()
        self.postponed_reads: list[Message] = []
        """Reads that came before an entry of our own term was committed."""

        hard_state, conf_state = storage.initial_state()
        self.tracker.adopt(restored(conf_state), last_index=self.log.last_index)
        if hard_state != HardState():
            # An empty hard state is a replica that never voted; there is nothing to check against
            # the log then.
            self._load(hard_state)
        if config.applied > 0:
            self.log.applied_to(config.applied)
        # Whatever we were before the restart, we come back as a follower that knows of no leader:
        # leadership is not persistent, and the lease of an earlier life has ended.
        self.become_follower(self.term, NO_REPLICA)

    @property
    def is_promotable(self) -> bool:
        """Whether this replica may campaign: a voter whose log is not being replaced."""
        own = self.tracker.progress.get(self.id)
        # While a snapshot is being installed our log claims entries that the storage does not hold
        # yet, and the machine is not at the state that goes with them.
        return own is not None and not own.is_learner and self.log.pending_snapshot is None

    # --- roles ----------------------------------------------------------------------------

    def become_follower(self, term: Term, leader: ReplicaId) -> None:
        """Follow `leader`, or nobody yet, in `term`."""
        self._reset(term)
        self.role = FOLLOWER
        self.leader = leader

    def become_pre_candidate(self) -> None:
        """Ask around before an election. Neither term nor vote change (thesis, section 9.6)."""
        assert self.role is not LEADER, "a leader does not campaign"
        # No `_reset`: a pre-candidate that loses must be as if it had never asked, or a replica
        # behind a broken link would raise the term of a healthy group (thesis §9.6).
        self.role = PRE_CANDIDATE
        self.leader = NO_REPLICA
        self.tracker.votes.clear()

    def become_candidate(self) -> None:
        """Start an election in the next term with a vote for ourselves (paper, section 5.2)."""
        assert self.role is not LEADER, "a leader does not campaign"
        # The vote for ourselves is part of the hard state of the new term; it counts only when it
        # comes back through `after_append`.
        self._reset(Term(self.term + 1))
        self.role = CANDIDATE
        self.vote = self.id

    def become_leader(self) -> None:
        """Lead the current term, knowing nothing yet about anybody's log but our own."""
        assert self.role is not FOLLOWER, "nobody leads without an election"
        # The term stays: it was entered when the election began, and a majority has voted in it.
        self._reset(self.term)
        self.role = LEADER
        self.leader = self.id
        own = self.tracker.progress[self.id]
        # We are a follower of our own log: our acknowledgement arrives like any other, when the
        # entries are on disk, and nothing is ever sent to us.
        own.state = REPLICATE
        own.recently_active = True
        # There may be a membership change somewhere in the tail we inherited. Rather than look
        # for it, hold new ones back until all of the tail is applied.
        self.pending_conf_index = self.log.last_index
        # Earlier leaders told witnesses of nothing that we do not have: we were one of those that
        # they counted, or were given at least as much before we could vote; and what they let one
        # pass over was committed (Raft §5.4).
        self.forgotten_index = self.log.last_index

    @property
    def election_ticks(self) -> int:
        """How long a leader may be silent, as configured and as far as its voters are away."""
        return self.config.election_ticks + self.round_trip_ticks

    def allow_for(self, round_trip_ticks: int) -> None:
        """Wait for votes and leaders by so much longer than is configured, from now on."""
        # Leases trust that everybody waits equally long, and everybody measures for themselves.
        if self.config.lease_reads:
            return
        self.election_timeout += round_trip_ticks - self.round_trip_ticks
        self.round_trip_ticks = round_trip_ticks

    def _reset(self, term: Term) -> None:
        # One vote per term (Raft §5.2): it is given back only by entering another term, never by
        # becoming a follower again within the same one.
        if term != self.term:
            self.term = term
            self.vote = NO_REPLICA
        self.leader = NO_REPLICA
        self.election_elapsed = self.heartbeat_elapsed = 0
        ticks = self.election_ticks
        # Drawn anew for every term: with fixed timeouts two replicas that once split the votes
        # would split them again and again (Raft §5.2).
        self.election_timeout = ticks + self.jitter(ticks)
        self.transferee = NO_REPLICA
        self.tracker.votes.clear()
        # What was known of the others' logs was true for the log of an earlier term. A new leader
        # must not count acknowledgements that were given to somebody else's entries.
        self.tracker.reset_progress(last_index=self.log.last_index, own_id=self.id)
        self.pending_conf_index = self.forgotten_index = Index(0)
        self.uncommitted_bytes = 0
        self.held_from = Index(0)
        # Reads that wait were to be confirmed by heartbeats of the term that has ended. Whoever
        # asked asks again; answering them now could miss what the next leader commits.
        self.reads = PendingReads()
        self.postponed_reads = []

    def _load(self, hard_state: HardState) -> None:
        # A commit index above the log means that entries which this replica acknowledged are gone.
        # Going on would let it vote, or be elected, without them.
        if not self.log.committed <= hard_state.commit <= self.log.last_index:
            raise InvalidArgument(
                f"the stored commit index {hard_state.commit} lies outside the stored log, which "
                f"spans [{self.log.committed}, {self.log.last_index}]"
            )
        if hard_state.term < self.log.last_term:
            raise InvalidArgument(
                f"the stored term {hard_state.term} is older than that of the last entry, "
                f"{self.log.last_term}"
            )
        self.log.committed = hard_state.commit
        self.term = hard_state.term
        self.vote = hard_state.vote
