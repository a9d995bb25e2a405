"""One replica of a Raft group, as a driver sees it.

The driver calls `tick` at even intervals, `step` with every message that arrives, `propose` and
the like for its clients; then, while `has_ready`, it takes a `Ready` and does what that says (see
`angarium.raft.ready`). Nothing in here waits, writes, reads a clock or throws dice, so a group
that nobody ticks simply rests.

What is promised (paper, figure 3), as long as written means written:
at most one leader per term; a leader only appends; logs with a common entry are equal up to it; a
committed entry is in every later leader's log; no two replicas apply different entries at the same
index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.ids import NO_REPLICA, Index, Term, node_of
from angarium.raft import following, leading, stepping
from angarium.raft.conf_change import Change, ConfChange, encode_conf_change
from angarium.raft.config import NO_LIMIT
from angarium.raft.core import LEADER, Core
from angarium.raft.errors import LocalMessage, UnknownPeer
from angarium.raft.messages import (
    APPEND_THREAD,
    APPLY_THREAD,
    Entry,
    HardState,
    Message,
    MessageKind,
)
from angarium.raft.progress import REPLICATE, ProgressState
from angarium.raft.ready import Ready, SoftState, append_task, applied, apply_task, written
from angarium.raft.reconfiguration import apply_change
from angarium.raft.status import status_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.ids import Buffer, NodeId, ReplicaId
    from angarium.raft.config import Config
    from angarium.raft.core import Role
    from angarium.raft.messages import ConfState
    from angarium.raft.read_only import ReadState
    from angarium.raft.status import Status
    from angarium.raft.storage import Storage

_UNNUMBERED: Final = (Term(0), Index(0))
"""A proposed entry gets its term and index from the leader."""

_STORAGE_THREADS: Final = frozenset((APPEND_THREAD, APPLY_THREAD))

_LOCAL_KINDS: Final = frozenset(
    (
        MessageKind.HUP,
        MessageKind.BEAT,
        MessageKind.UNREACHABLE,
        MessageKind.SNAPSHOT_STATUS,
        MessageKind.CHECK_QUORUM,
        MessageKind.STORAGE_APPEND,
        MessageKind.STORAGE_APPEND_RESPONSE,
        MessageKind.STORAGE_APPLY,
        MessageKind.STORAGE_APPLY_RESPONSE,
    )
)
"""Never taken from a peer."""

_RESPONSE_KINDS: Final = frozenset(
    (
        MessageKind.APPEND_RESPONSE,
        MessageKind.VOTE_RESPONSE,
        MessageKind.PRE_VOTE_RESPONSE,
        MessageKind.HEARTBEAT_RESPONSE,
        MessageKind.READ_INDEX_RESPONSE,
    )
)
"""Taken from members only."""


class RaftNode:
    """A replica. Not safe to be used from several threads at once."""

    __slots__ = (
        "_async",
        "_core",
        "_hard_state",
        "_leader",
        "_on_advance",
        "_role",
        "id",
    )

    def __init__(self, config: Config, storage: Storage, *, jitter: Callable[[int], int]) -> None:
        """Start, or restart, from what `storage` holds.

        `jitter(n)` returns a number from 0 up to but without n; it spreads election timeouts, so
        replicas should not all draw the same.
        """
        self._core = core = Core(config, storage, jitter=jitter)
        self.id = config.id
        self._async = config.async_storage_writes
        self._leader, self._role = core.leader, core.role
        self._hard_state = HardState(core.term, core.vote, core.log.committed)
        self._on_advance: list[Message] | None = None

    # --- what happens to it ---------------------------------------------------------------

    def tick(self) -> None:
        """Count one tick of the driver's clock; heartbeats and elections become due by these."""
        stepping.tick(self._core)

    def step(self, message: Message) -> None:
        """Act upon a message from a peer, or a response from a storage thread.

        Raises a `RaftError` if it is refused: a driver may ignore that. Raises `LogContradiction`
        if this replica must not go on.
        """
        kind = message.kind
        # The core trusts its own kinds of messages blindly: a STORAGE_APPEND_RESPONSE counts as an
        # fsync. So nothing that came by the network may carry such a kind.
        if message.sender not in _STORAGE_THREADS:
            # An answer from a removed replica says nothing about the present configuration.
            # Requests are let through: a candidate that we have not heard of may have been added
            # by an entry that we do not have yet.
            if kind in _RESPONSE_KINDS and message.sender not in self._core.tracker.progress:
                raise UnknownPeer(f"replica {message.sender} is not in the group")
            if kind in _LOCAL_KINDS:
                raise LocalMessage(f"{kind.name} does not come from replica {message.sender}")
        stepping.step(self._core, message)

    def campaign(self) -> None:
        """Try to become leader now; nothing happens if this replica may not."""
        stepping.step(self._core, Message(kind=MessageKind.HUP))

    def be_patient(self, timeouts: int) -> None:
        """Campaign only after this many election timeouts: another replica should lead."""
        self._core.patience = timeouts

    def propose(self, data: Sequence[Buffer], *, at_once: bool = True) -> None:
        """Propose entries with these `data`, in this order and next to each other, all or none.

        A leader sends them `at_once`, or together with the next that it does, or by `send_held`, at
        its next heartbeat at the latest. Raises `ProposalDropped` if they were not taken, and its
        kind `UncommittedLimit` if too much waits already. Being taken is no promise: only their
        being committed is.
        """
        if not data:
            return
        # The short way for what is proposed most: no message is built only to be taken apart
        # again, and plain data needs no look for membership changes.
        if self._core.role is LEADER:
            leading.propose_data(self._core, data, at_once=at_once)
        else:
            entries = tuple([Entry(*_UNNUMBERED, item) for item in data])
            self._propose(entries)

    @property
    def holds_entries(self) -> bool:
        """Whether entries were proposed to be sent later, and have not been sent."""
        return self._core.held_from > 0

    def send_held(self) -> None:
        """Send what was proposed to be sent later."""
        if self._core.held_from:
            leading.send_held(self._core)

    def propose_conf_change(self, change: Change | ConfChange) -> None:
        """Propose a change of membership; raises `ProposalDropped`.

        If another one may still be under way, an empty entry is appended in its place.
        """
        kind, data = encode_conf_change(change)
        self._propose((Entry(*_UNNUMBERED, data, kind),))

    def apply_conf_change(self, change: Change | ConfChange) -> ConfState:
        """Put a committed change into force, when the machine applies its entry.

        Raises `InvalidConfChange`, with nothing changed, if it does not fit the membership.
        """
        if isinstance(change, Change):
            change = ConfChange(changes=(change,))
        return apply_change(self._core, change)

    def read_index(self, context: bytes) -> bool:
        """Ask up to where the machine must have applied for a read to be up to date.

        A `ReadState` with the same `context` comes with a later Ready, or never, if leaders
        change or messages are lost: ask again. Returns False if there is nobody to ask, or too
        many ask already.
        """
        core = self._core
        # Every waiting read holds its request until a majority answers. Without this bound a
        # leader that is cut off would collect them for a whole election timeout.
        if core.role is LEADER:
            waiting = len(core.reads) + len(core.postponed_reads)
            if waiting >= core.config.pending_reads_max:
                return False
        elif core.leader == NO_REPLICA:
            return False
        stepping.step(core, Message(kind=MessageKind.READ_INDEX, context=context))
        return True

    def allow_for(self, round_trip_ticks: int) -> None:
        """Wait for votes and leaders by so much longer than is configured: voters are far away.

        Every replica may be told something else. Does nothing with `lease_reads`.
        """
        self._core.allow_for(round_trip_ticks)

    def void_lease(self) -> None:
        """Distrust the lease until a majority has answered again: call it after any pause in
        which ticks may have been missed. Does nothing without `lease_reads`."""
        self._core.reads.void_lease()

    def transfer_leader(self, to: ReplicaId) -> None:
        """Hand leadership over to `to`, once it has our whole log; a follower asks its leader to.

        Proposals are refused meanwhile. After an election timeout the attempt is given up, and
        after another one if `to` has our log by then.
        """
        stepping.step(self._core, Message(kind=MessageKind.TRANSFER_LEADER, sender=to))

    def forget_leader(self) -> None:
        """Stop believing in the leader, so that another candidate can be voted for at once."""
        stepping.step(self._core, Message(kind=MessageKind.FORGET_LEADER))

    def hasten(self, ticks: int) -> None:
        """Campaign within `ticks`, if nobody is known to lead, instead of after a whole timeout."""
        following.hasten(self._core, ticks)

    def report_unreachable(self, replica: ReplicaId) -> None:
        """Say that messages to `replica` are being lost."""
        stepping.step(self._core, Message(kind=MessageKind.UNREACHABLE, sender=replica))

    def report_snapshot(self, replica: ReplicaId, *, ok: bool) -> None:
        """Say whether the snapshot for `replica` was delivered and installed."""
        stepping.step(
            self._core, Message(kind=MessageKind.SNAPSHOT_STATUS, sender=replica, reject=not ok)
        )

    # --- what it wants done ---------------------------------------------------------------

    def has_ready(self) -> bool:
        """Tell whether there is anything to do."""
        core = self._core
        if core.messages or core.after_append:
            return True
        log = core.log
        hard_state = self._hard_state
        return (
            log.committed != hard_state.commit
            or core.term != hard_state.term
            or core.vote != hard_state.vote
            or core.leader != self._leader
            or core.role is not self._role
            or log.has_next_unstable
            or log.has_next_committed
            or bool(core.read_states)
        )

    def ready(self) -> Ready:
        """Return what to do. The driver must do all of it; nothing is returned twice."""
        assert self._on_advance is None, "the last Ready has not been advanced over"
        core, log = self._core, self._core.log
        entries = log.next_unstable()
        committed = log.next_committed()
        snapshot = log.next_snapshot()
        soft_state = self._changed_soft_state()
        # To be read before `_changed_hard_state` replaces it.
        before = self._hard_state
        hard_state = self._changed_hard_state()
        # The commit index alone need not be durable: it is volatile in the paper (figure 2) and
        # learned again from the next leader. Term, vote and entries are promises to others.
        must_sync = bool(entries) or (
            hard_state is not None
            and (hard_state.term != before.term or hard_state.vote != before.vote)
        )

        messages, core.messages = core.messages, []
        after_append, core.after_append = core.after_append, []
        responses = after_append
        # Also without new entries: see `written` for why the end of the log is reported again.
        if log.has_unwritten or snapshot is not None:
            responses = [*after_append, written(core, snapshot)]
        if self._async:
            # `after_append` alone makes a task too. Its messages promise what earlier tasks write,
            # and tasks of one thread are done in order, so this one comes behind them.
            if entries or hard_state is not None or snapshot is not None or after_append:
                messages.append(append_task(core, entries, hard_state, snapshot, responses))
            if committed:
                messages.append(apply_task(core, committed))
        else:
            # A synchronous driver writes and syncs before it sends anything, so what had to wait
            # for the disk may go out with the rest.
            messages += [m for m in after_append if m.to != self.id]
            self._on_advance = [m for m in responses if m.to == self.id]
            if committed:
                self._on_advance.append(applied(core, committed))

        read_states: tuple[ReadState, ...] = ()
        if core.read_states:
            read_states = tuple(core.read_states)
            core.read_states = []
        # From here on these entries are in progress. Handing them out twice would write them
        # twice, and the second write could overtake a truncation.
        log.start_writing()
        return Ready(
            soft_state=soft_state,
            hard_state=hard_state,
            entries=entries,
            snapshot=snapshot,
            committed=committed,
            messages=tuple(messages),
            read_states=read_states,
            must_sync=must_sync,
        )

    def advance(self) -> None:
        """Say that everything in the last Ready was done. In synchronous mode only."""
        assert not self._async, "in asynchronous mode the responses say this"
        assert self._on_advance is not None, "there was no Ready to advance over"
        reports, self._on_advance = self._on_advance, None
        for report in reports:
            stepping.step(self._core, report)

    # --- what is known of it --------------------------------------------------------------

    @property
    def term(self) -> Term:
        """The current term."""
        return self._core.term

    @property
    def role(self) -> Role:
        """What this replica is at the moment."""
        return self._core.role

    @property
    def leader(self) -> ReplicaId:
        """Who leads the current term, as far as is known here; 0 if nobody."""
        return self._core.leader

    @property
    def is_leader(self) -> bool:
        """Whether this replica leads."""
        return self._core.role is LEADER

    @property
    def last_term(self) -> Term:
        """The term of the last entry, written or not."""
        return self._core.log.last_term

    @property
    def commit(self) -> Index:
        """The highest index known to be committed."""
        return self._core.log.committed

    @property
    def is_commit_current(self) -> bool:
        """Whether what is known to be committed ends with an entry of the current term."""
        log = self._core.log
        # Only then does a leader know that nothing committed by its predecessors is missing from
        # its commit index (Raft §8). Planted as serving-before-an-own-entry-is-committed.
        return log.term_at(log.committed) == self._core.term

    @property
    def applied(self) -> Index:
        """The highest index reported as applied."""
        return self._core.log.applied

    @property
    def last_index(self) -> Index:
        """The index of the last entry."""
        return self._core.log.last_index

    @property
    def conf_state(self) -> ConfState:
        """The membership in force."""
        return self._core.tracker.conf_state

    @property
    def is_changing_members(self) -> bool:
        """As a leader: whether a change of membership may be in its log that is not applied."""
        return self._core.pending_conf_index > self._core.log.applied

    @property
    def transferee(self) -> ReplicaId:
        """Who is to take over from this leader, or 0; it takes no proposals meanwhile."""
        return self._core.transferee

    def entries_after(self, index: Index) -> tuple[Entry, ...]:
        """Return every entry of the log above `index`, written, committed or neither."""
        log = self._core.log
        found: tuple[Entry, ...] = ()
        # A read may end early, in front of damage; half a tail would be another log.
        while (after := index + len(found)) < log.last_index:
            found += log.entries(Index(after + 1), Index(log.last_index + 1), NO_LIMIT)
        return found

    def match(self, replica: ReplicaId) -> Index | None:
        """Return up to where a member's log is known to equal ours; None if it is no member."""
        progress = self._core.tracker.progress.get(replica)
        return None if progress is None else progress.match

    def has_everything(self, replica: ReplicaId) -> bool:
        """As a leader, tell whether a member has confirmed the whole log and is not doubted."""
        progress = self._core.tracker.progress.get(replica)
        return (
            progress is not None
            and progress.state is REPLICATE
            and progress.match == self._core.log.last_index
        )

    def members_on(self, node: NodeId) -> list[ReplicaId]:
        """Return the other members that live on `node`: what it is, and what it was before."""
        own = self._core.id
        return [one for one in self._core.tracker.progress if one != own and node_of(one) == node]

    def doubt(self, replica: ReplicaId) -> None:
        """As a leader, let a member confirm anew what it has confirmed before.

        Always safe: entries that are committed stay so, and others wait for its answer.
        """
        progress = self._core.tracker.progress.get(replica)
        # The match index of a member whose disk went back in time is not true any more. Forgetting
        # it cannot uncommit anything, since the commit index never goes back; it only keeps new
        # entries from being counted on a replica that may lack their predecessors.
        if self._core.role is LEADER and progress is not None:
            progress.doubt()

    @property
    def forgotten_index(self) -> Index:
        """As a leader: what a replica has to have before it may vote, for witnesses may have
        forgotten it; 0 where there are none."""
        return self._core.forgotten_index if self._core.tracker.has_witness else Index(0)

    def snapshot_receivers(self) -> tuple[ReplicaId, ...]:
        """Return the members that this leader has sent a snapshot and not heard from since."""
        members = self._core.tracker.progress.items()
        return tuple(replica for replica, one in members if one.state is ProgressState.SNAPSHOT)

    def slowest_index(self) -> Index | None:
        """Return up to where every member that was heard of lately has, or is getting, the log.

        What a snapshot on its way brings counts. None where nobody else is known to listen: on a
        follower, and on a leader that hears of nobody.
        """
        core = self._core
        if core.role is not LEADER:
            return None
        reached = [
            # Entries below a snapshot that is under way are not going to be sent, so the log need
            # not be kept for them.
            max(one.match, one.pending_snapshot)
            for replica, one in core.tracker.progress.items()
            if replica != core.id and one.recently_active
        ]
        return min(reached, default=None)

    def status(self) -> Status:
        """Return everything that may be of interest, as a copy."""
        return status_of(self._core)

    # --- private --------------------------------------------------------------------------

    def _propose(self, entries: tuple[Entry, ...]) -> None:
        stepping.step(
            self._core, Message(kind=MessageKind.PROPOSE, sender=self.id, entries=entries)
        )

    def _changed_soft_state(self) -> SoftState | None:
        core = self._core
        if core.leader == self._leader and core.role is self._role:
            return None
        self._leader, self._role = core.leader, core.role
        return SoftState(core.leader, core.role)

    def _changed_hard_state(self) -> HardState | None:
        core, before = self._core, self._hard_state
        commit = core.log.committed
        if commit == before.commit and core.term == before.term and core.vote == before.vote:
            return None
        self._hard_state = HardState(core.term, core.vote, commit)
        return self._hard_state
