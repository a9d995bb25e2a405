"""One replica of one group: its Raft core, its log and its state, joined.

The core decides, the replica carries out. What the core wants written goes into the node's WAL,
and the answers that depend on it leave only after the sync that covers it. What is committed goes
to the state (`Partition`), which is saved now and then so that the log may forget (`Snapshots`).

No clock and no threads here: the host calls, and looks into the outbox afterwards.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec import structs

from angarium.errors import (
    AngariumError,
    CorruptData,
    DiskFull,
    NewerRelease,
    NotLeader,
    StorageError,
)
from angarium.ids import CATALOG_GROUP, NO_REPLICA, Index
from angarium.raft import (
    Contradicted,
    InvalidConfChange,
    ProposalDropped,
    RaftError,
    decode_conf_change,
)
from angarium.raft.messages import (
    APPEND_THREAD,
    APPLY_THREAD,
    EntryKind,
    HardState,
    MessageKind,
)
from angarium.replica.damage import Fate
from angarium.replica.fullness import Fullness
from angarium.replica.peers import EntriesRequest
from angarium.replica.reads import Reads
from angarium.replica.scrutiny import Objection
from angarium.replica.serving import give_entries
from angarium.replica.snapshots import Snapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from angarium.ids import Buffer, NodeId, ReplicaId, Term
    from angarium.raft import ConfChange, LogContradiction
    from angarium.raft.messages import Entry, Message
    from angarium.replica.parts import Parts, State
    from angarium.replica.peers import PeerMessage
    from angarium.replica.storage import ReplicaStorage
    from angarium.replica.work import Work

_APPEND = MessageKind.APPEND
_APPEND_RESPONSE = MessageKind.APPEND_RESPONSE

READ_HERE: Final = b"r"
"""The context of a follower's acknowledgement while somebody waits for records at its node."""

WHAT_TO_DO: Final = (
    "a data folder of this partition was replaced by an older copy. Find out which; to keep what "
    "the others have, stop the node, empty its folder and start it with --join and its id"
)

HELD_BYTES_MAX: Final = 64 << 10
"""So much is worth a round of its own: entries that come to it are held back no longer."""

VITAL_ENTRY_BYTES_MAX: Final = 32 << 10
"""How large an entry may be that a leader with a full disk still takes, out of the reserve: trims,
positions and memberships are small. Anything larger is refused with `DiskFull`."""


class Replica:
    """Drives one Raft core. Every public method is an input; `process` carries out the result."""

    def __init__(self, parts: Parts, state: State) -> None:
        self.group = parts.group
        self.raft = parts.raft
        self.applied = parts.storage.newest.index
        self.applied_term = parts.storage.newest.term
        self._parts = parts
        self._storage = parts.storage
        self._state = state
        self._wal = parts.wal
        self._outbox = parts.outbox
        self._config = parts.config
        self.is_resting = False
        """True while nobody ticks it; see `sleeping`."""
        self.is_closed = False
        self._quiet_at = (Index(0), Index(0), 0)
        """The last index and the commit index since which nothing has happened."""
        self._quiet_ticks = 0
        self._fullness = Fullness(parts.raft, conf_heard_ticks=parts.config.conf_heard_ticks)
        self.halted = ""
        """Why this replica has stopped for good, in words: its log and its group's contradict each
        other. It says and takes nothing more, and its files stay as they are."""
        self._contradicted: set[int] = set()
        self._conf_ticks = 0
        """Ticks since the membership last changed here."""
        self.is_busy = False
        """True while files are written that nothing else may touch meanwhile."""
        self._leading: Term | None = None
        self._ballot = (parts.raft.term, NO_REPLICA)
        """The term and vote last handed to the WAL."""
        self._unwritten: HardState | None = None
        """The newest hard state, while the WAL has an older one: only the commit index differs."""
        # How the group began, or was repaired, may not be on disk yet.
        self._sync = parts.outbox.next_sync
        """The sync that covers all this replica has handed to the WAL, commit indexes apart."""
        self._held_bytes = 0
        """Bytes of the entries that the core holds, while it holds any."""
        self._reads = Reads()
        self._read_at: set[ReplicaId] = set()
        """Members at whose nodes somebody waits for records, as their last answers say."""
        self.snapshots = Snapshots(self, parts, state)
        self._unapplied: deque[tuple[Sequence[Entry], tuple[Message, ...]]] = deque()
        """Committed entries that the state has no time for yet, and what the core is told then."""

    @property
    def id(self) -> ReplicaId:
        """Who this replica is among the voters."""
        return self.raft.id

    @property
    def storage(self) -> ReplicaStorage:
        """What the core reads: the log, and the snapshot that a newcomer would be given."""
        return self._storage

    @property
    def snapshot_index(self) -> Index:
        """The index of the newest durable snapshot."""
        return self.snapshots.newest_index

    @property
    def forgets_to(self) -> Index | None:
        """How far its log may be forgotten, whatever is saved; None: as far as that."""
        return None

    @property
    def may_serve(self) -> bool:
        """True while this replica leads and an entry of its own term has been applied."""
        return self._leading is not None

    @property
    def told_commit(self) -> Index:
        """The highest commit index that a leader has told of in this life."""
        return self._fullness.told_commit

    @property
    def is_membership_heard(self) -> bool:
        """True when everybody has heard of the last change of membership that was applied here."""
        return self._conf_ticks >= self._config.conf_heard_ticks

    @property
    def settled_index(self) -> Index:
        """Up to here everything was committed a while ago: a member that lacks it lags behind."""
        return self._fullness.settled_index

    @property
    def silent_ticks(self) -> int:
        """Ticks since it last heard from its leader, those at rest left out."""
        return self._fullness.silent_ticks

    def shortfall(self) -> str:
        """Say in words why this replica cannot stand for its group's records; empty if it can."""
        if self.halted or self.may_serve:
            return self.halted
        if self._awaits_catalog:
            return "waits for the catalog to say whether it still counts"
        return self._fullness.shortfall(self.raft, self.seen_index)

    @property
    def is_in_use(self) -> bool:
        """True while a thread may be writing its files, so that they cannot be closed."""
        return self.is_busy

    # --- inputs -----------------------------------------------------------------------------

    def found(self) -> None:
        """Hear that its group has only just been formed."""
        self._fullness.found()

    def tick(self) -> None:
        """Let one tick pass."""
        if self.halted:
            return
        self.raft.tick()
        self._conf_ticks += 1
        self._fullness.tick(self.raft)
        # A commit breaks the quiet, too: far away it comes long after its entry, and whoever has
        # not heard of it when the leader rests stays awake, misses the heartbeats and campaigns.
        # So does what a member acknowledges: heartbeats tell it of no commit behind that, and a
        # learner, which never campaigns, would stay without the last one for good (seed 401045).
        seen = self.raft.last_index, self.raft.commit, self._acknowledged()
        if seen == self._quiet_at:
            self._quiet_ticks += 1
        else:
            self._quiet_at, self._quiet_ticks = seen, 0
            # Whoever was heard before the log grew may lack what came since.
            self._fullness.heard.clear()

    def _acknowledged(self) -> int:
        """Return a number that grows with whatever a member of the group that this leads has."""
        if not self.raft.is_leader:
            return 0
        state = self.raft.conf_state
        return sum(self.raft.match(one) or 0 for one in (*state.voters, *state.learners))

    def woken(self) -> None:
        """Hear that it does not rest any more: whoever was there before may be gone."""
        self.is_resting = False
        self._quiet_ticks = 0
        # What was known of the others before the rest is old. Planted as
        # groups-at-rest-are-not-steered.
        self._fullness.begin_anew(self.raft.commit)

    def may_rest(self) -> bool:
        """Tell whether this leader has nothing to do: everybody has everything, nobody waits.

        Everybody means: whoever has been heard in the same quiet. What a member acknowledged
        before says nothing about one that is gone, or came back with another disk.
        """
        raft = self.raft
        if self._quiet_ticks < self._config.rest_after_ticks or self._leading is None:
            return False
        # A group at rest sends no heartbeats, so nobody in it may still need something from this
        # leader: not an entry, a vote of a joint configuration, an answer or the end of a
        # handover.
        state = raft.conf_state
        last = raft.last_index
        return (
            raft.commit == last == self.applied
            and not state.voters_outgoing
            # No time passes for who rests: that everybody has heard would never come true, and
            # nobody would count as in sync.
            and self.is_membership_heard
            # Only the clock ends a handover that the other side never heard of.
            and not raft.transferee
            and not self._reads.are_waiting
            and not self.is_applying
            # A witness hears from a heartbeat that it may forget the log, and else would keep it.
            and raft.forgotten_index in {0, last}
            and all(
                raft.match(one) == last and (one == raft.id or one in self._fullness.heard)
                for one in (*state.voters, *state.learners)
            )
        )

    def step(self, message: Message) -> None:
        """Take a message from a peer; one that the core refuses has changed nothing."""
        try:  # rather than `suppress`, for this is done for every message
            self.raft.step(message)
        except Contradicted as contradiction:
            self._outbox.refusals.note(Objection.INDEX, str(contradiction))
            # Told once per member and life of this process: it repeats with every answer of that
            # member.
            if contradiction.replica not in self._contradicted:
                self._contradicted.add(contradiction.replica)
                said = f"{contradiction}; {WHAT_TO_DO}"
                self._outbox.damage.note(Fate.CONTRADICTED, self.group, said)
        except RaftError:
            return

    @property
    def _awaits_catalog(self) -> bool:
        """Whether it may be one of a majority that is void, for all that is known here."""
        # Planted as served-before-the-catalog-is-known.
        return self._outbox.awaits_catalog and self.group != CATALOG_GROUP

    def begin_to_serve(self) -> None:
        """Hear that what this replica leads may be served: nothing has to be waited for."""
        self._watch_leadership()

    def halt(self, contradiction: LogContradiction) -> str:
        """Stop for good: what this replica has and what its leader has cannot both be true.

        Returns why, in words, so that whoever opens its files again can say so.
        """
        self.halted = f"has stopped, for {contradiction}; {WHAT_TO_DO}"
        said = f"this node's replica {self.halted}"
        self._outbox.damage.note(Fate.CONTRADICTED, self.group, said)
        # It must not serve what the others may never have, nor wait for commits that cannot come.
        self._leading = None
        self._state.follow()
        self._reads.abandon(self.raft.leader)
        return self.halted

    def doubt(self, node: NodeId) -> None:
        """Let whoever lives on `node` confirm anew what it has: it may have been another process.

        A disk that went back in time would be counted for entries it has lost.
        """
        for member in self.raft.members_on(node):
            self.raft.doubt(member)

    def receive(self, message: Message) -> None:
        """Take a Raft message from another node."""
        self._fullness.hear(message, self.raft)
        self.step(message)
        if message.kind is _APPEND_RESPONSE:
            self._hear_answer(message)

    def _hear_answer(self, message: Message) -> None:
        """Note whether somebody waits for records where an answer came from."""
        raft, sender = self.raft, message.sender
        if message.context == READ_HERE and raft.match(sender) is not None:
            self._read_at.add(sender)
        else:
            self._read_at.discard(sender)
        news = self._outbox.commit_news
        if not news or (self.group, sender) not in news:
            return
        if self._is_told_at_once(sender):
            # What waits was written before it was known that somebody waits for it.
            self._outbox.is_news_awaited = True
        elif raft.has_everything(sender):
            # It waited for its turn only in case that this answer would not come.
            del news[self.group, sender]

    def _is_told_at_once(self, member: ReplicaId) -> bool:
        """Tell whether a member should not have to wait for a heartbeat to hear of a commit.

        To one that a change of membership removes no heartbeat goes once the change is applied: it
        would never hear of that, and go on standing for its group.
        """
        return member in self._read_at or self.raft.is_changing_members

    def receive_from_peer(self, message: PeerMessage) -> None:
        """Take a message outside of Raft: here, only a request for entries to mend a log with."""
        if isinstance(message, EntriesRequest):
            give_entries(self._parts, message)

    @property
    def has_room(self) -> bool:
        """Tell whether more entries may come."""
        return not self._wal.is_full

    @property
    def first_index(self) -> Index:
        """Where its log begins, which has forgotten what a snapshot covers."""
        return self._storage.first_index()

    @property
    def last_index(self) -> Index:
        """The index of the last entry in the log, committed or not."""
        return self.raft.last_index

    @property
    def has_uncommitted(self) -> bool:
        """True while its log goes on behind what it knows to be committed."""
        return self.raft.last_index > self.raft.commit

    def unapplied(self) -> Sequence[Entry]:
        """Return the entries of the log that are not applied yet, in order."""
        return self.raft.entries_after(self.applied)

    def propose(self, data: Buffer, *, may_wait: bool = False) -> Index:
        """Append `data` to the log of this leader and return its index.

        One that `may_wait` is held back, to be written and sent together with what comes behind
        it: with the next that may not wait, or by `send_held`.

        Raises `NotLeader` when it does not lead, or is handing leadership over, or holds too much
        uncommitted, and `DiskFull` for what is too large for a full disk's reserve; nothing has
        been appended then.
        """
        # Small entries get through on the reserve, because trims are what makes room again.
        if self._wal.is_full and (self._wal.is_exhausted or len(data) > VITAL_ENTRY_BYTES_MAX):
            raise DiskFull("the leader's disk is full")
        raft = self.raft
        held = len(data) + (self._held_bytes if raft.holds_entries else 0)
        holds = may_wait and held < HELD_BYTES_MAX
        try:
            raft.propose([data], at_once=not holds)
        except ProposalDropped as dropped:
            raise NotLeader(str(dropped), leader=raft.leader) from None
        except CorruptData:
            # An older entry could not be read for a follower. The new one is in the log by now, and
            # may be committed. With its next tick the host takes this replica down to have its log
            # repaired; the outcome of what waits is unknown then.
            pass
        self._held_bytes = held
        return raft.last_index

    def send_held(self) -> None:
        """Write and send the entries that have waited for others, if any have."""
        if self.raft.holds_entries:
            with suppress(CorruptData):  # as in `propose`
                self.raft.send_held()
            self.poke()

    def propose_conf_change(self, change: ConfChange) -> None:
        """Ask for another membership; raises `NotLeader` where `propose` would."""
        try:
            self.raft.propose_conf_change(change)
        except ProposalDropped as dropped:
            raise NotLeader(str(dropped), leader=self.raft.leader) from None
        except CorruptData:
            pass  # as in `propose`

    def read_index(self, done: Callable[[AngariumError | None], None]) -> None:
        """Call `done` once everything committed before this call has been applied here."""
        # Not passed on to the leader: a client asks it directly, and hears who it is from this
        # refusal.
        if not self.raft.is_leader or self._awaits_catalog:
            done(NotLeader(leader=self.raft.leader))
            return
        context = self._reads.ask(done)
        if not self.raft.read_index(context):
            self._reads.refuse(context)

    # --- carrying out -----------------------------------------------------------------------

    def process(self) -> None:
        """Carry out everything the core has decided since the last call."""
        raft = self.raft
        if self.is_closed or self.halted:
            return
        if self._unapplied:
            # Before the core is asked: entries that waited for a large commit come before anything
            # newer.
            self._apply_committed()
            self._watch_leadership()
        is_ready = raft.has_ready()
        if not is_ready and not self._reads.are_confirmed:
            return
        # Housekeeping looks only at groups to which something happened, of thousands that rest.
        self._outbox.touched.add(self.group)
        if self.is_resting:
            self._outbox.woken.append(self.group)
        # Until the core is silent. Carrying out one Ready may bring the next one about: an applied
        # change of membership, a lone voter's own acknowledgement.
        while is_ready:
            ready = raft.ready()
            for message in ready.messages:
                if message.to == APPEND_THREAD:
                    self._append(message)
                elif message.to == APPLY_THREAD:
                    self._apply(message)
                elif message.kind is _APPEND:
                    self._send_append(message)
                else:
                    self._outbox.send(self.group, message)
            for read in ready.read_states:
                self._reads.confirm(read.context, read.index)
            self._watch_leadership()
            is_ready = raft.has_ready()
        if self._reads.are_confirmed:
            self._reads.answer(self.seen_index)

    def poke(self) -> None:
        """Do as `process`, for callers other than the host, which hears of damage with its tick."""
        try:
            self.process()
        except CorruptData as damaged:
            # What the core had decided is carried out in part: nothing may follow.
            self.is_closed = True
            self._outbox.broken.append((self, damaged))

    def _send_append(self, message: Message) -> None:
        # To one that has the whole log an append without entries says only how far is committed,
        # and so does the next heartbeat. To any other it is a probe: without it a follower whose
        # appends were lost would never say so.
        is_awaited = self._is_told_at_once(message.to)
        if message.entries or is_awaited or not self.raft.has_everything(message.to):
            self._outbox.send_append(self.group, message, is_awaited=is_awaited)

    def _append(self, message: Message) -> None:
        """Hand what the core wants remembered to the WAL; its answers wait for the sync."""
        # First, since the entries of the same task go on behind the snapshot.
        if message.snapshot is not None:
            assert not self.is_applying, "no core hands out a snapshot before entries are applied"
            self.snapshots.install(message.snapshot)
        ballot = self._ballot
        if message.term:
            ballot = (message.term, message.vote)
            self._unwritten = HardState(message.term, message.vote, message.commit)
        # A new commit index alone is only a hint to a restarted replica and waits for company.
        if message.entries or message.snapshot or ballot != self._ballot:
            # Term and vote decide whether a sync is needed. The commit index travels with them and
            # alone never makes one.
            self._ballot = ballot
            self._write(message.entries)
            # The answers wait for the sync that covers what was just handed to the WAL (Raft,
            # figure 2: stable storage before responding). Letting them out earlier is planted as
            # ack-before-fsync, for our own acknowledgement alone as
            # leader-counts-itself-before-its-fsync.
            self._sync = self._outbox.after_sync(self, message.responses)
        # Nothing new to write, but the answers may promise what an earlier task has handed over
        # and no sync has covered yet. They wait for that one.
        elif message.responses and not self._outbox.once_synced(
            self._sync, self, message.responses
        ):
            # Whatever these answers promise has been on disk before the core gave them.
            self.persisted(message.responses)

    def _write(self, entries: Sequence[Entry]) -> None:
        # Whoever lets entries in looks at the disk first (`publish`, `Host.deliver`), so what
        # comes here is let through even if that takes the reserve.
        if entries or self._unwritten is not None:
            # Taken first: where the log takes no entry, being damaged, its hard state must not say
            # later that one is committed which it lacks.
            state, self._unwritten = self._unwritten, None
            self._wal.append(self.group, entries, state, reserve=True)

    def persisted(self, responses: tuple[Message, ...]) -> None:
        """Let answers out whose promises are on disk now."""
        if self.halted:
            return
        for response in responses:
            # Our own acknowledgement goes to the core and counts from here on: only now is it on
            # disk.
            if response.to == self.raft.id:
                self.step(response)
            elif response.kind is _APPEND_RESPONSE and self._outbox.listener.has_readers(
                self.group
            ):
                self._outbox.send(self.group, structs.replace(response, context=READ_HERE))
            else:
                self._outbox.send(self.group, response)

    @property
    def is_applying(self) -> bool:
        """True while committed entries wait, or the last one is not to be seen yet."""
        return bool(self._unapplied) or not self._state.is_concluded

    @property
    def seen_index(self) -> Index:
        """Up to here readers see what was applied."""
        return self.applied if self._state.is_concluded else Index(self.applied - 1)

    def _apply(self, message: Message) -> None:
        self._unapplied.append((message.entries, message.responses))
        self._apply_committed()

    def _apply_committed(self) -> None:
        """Hand committed entries to the state for as long as it takes them."""
        waiting = self._unapplied
        while waiting and not self._state.is_occupied:
            entries, responses = waiting.popleft()
            done = self._apply_entries(entries)
            if done < len(entries) or not self._state.is_concluded:
                # The core is told only when the whole task is applied: its `applied` index must
                # not run ahead of what a snapshot of the state would contain.
                waiting.appendleft((entries[done:], responses))
                return
            for response in responses:
                self.raft.step(response)

    def _apply_entries(self, entries: Sequence[Entry]) -> int:
        """Apply entries until the state is occupied; return how many that were."""
        state = self._state
        is_changed = False
        done = 0
        self._check_continuous(entries)
        for entry in entries:
            if entry.kind is EntryKind.NORMAL and not state.understands(entry.data):
                # The replicas of a newer release make something of it. Passing over it would make
                # another state out of the same log, so this is as far as this release goes.
                raise NewerRelease(
                    f"entry {entry.index} of groups/{self.group} was written by a newer release; "
                    "start that one on this data directory"
                )
            self.applied, self.applied_term = entry.index, entry.term
            self.snapshots.unsaved_bytes += len(entry.data)
            # Up to where this replica was one of several, who voted with it is void: it would wait
            # for the lost ones again. Planted as former-voters-counted-after-a-recovery.
            if entry.kind is not EntryKind.NORMAL and entry.index > self._parts.alone_from:
                # One that does not fit is refused alike by every replica.
                with suppress(InvalidConfChange):
                    self.raft.apply_conf_change(decode_conf_change(entry))
                # A snapshot that was taken before does not hold this membership. A newcomer that
                # installed it would not find itself in the group.
                self._storage.outdate()
                self._conf_ticks = 0
                is_changed = True
            state.apply(entry)
            done += 1
            # A large commit is being brought in, or memory is full: nothing more may come until
            # that is done.
            if state.is_occupied:
                break
        if is_changed:
            self._remember_membership()
        return done

    def _check_continuous(self, entries: Sequence[Entry]) -> None:
        # The last door before the state: behind a gap it would become another than its group's.
        last = self.applied + len(entries)
        if entries and (entries[0].index != self.applied + 1 or entries[-1].index != last):
            raise CorruptData(f"entry {self.applied} of its log is not followed by the next one")

    def _remember_membership(self) -> None:
        """Write down soon how far is committed: here this is more than a hint.

        A replica that came back believing that a change is still under way would need those who
        left for a majority, and their disks may be gone by then (seed 7332).
        """
        # Only a precaution: without room the commit index is written with the next thing that is
        # vital.
        with suppress(DiskFull):
            self._write(())
            self._sync = self._outbox.after_sync(self, ())

    def _watch_leadership(self) -> None:
        raft = self.raft
        # Also if it leads again in a later term: the tail it had numbered may have been replaced
        # in between. Planted as projection-kept-across-leaders.
        if self._leading is not None and not (raft.is_leader and raft.term == self._leading):
            self._leading = None
            self._state.follow()
            self._reads.abandon(raft.leader)
        # Until an entry of its own term is committed a leader does not know what is committed
        # (section 8 of the paper), so it neither numbers nor serves anything before.
        if (
            self._leading is None
            and raft.is_leader
            and self.applied_term == raft.term
            and not self._awaits_catalog
        ):
            self._leading = raft.term
            self._fullness.begin_anew(raft.commit)
            self._state.lead(raft.term)

    # --- snapshots --------------------------------------------------------------------------

    def wants_snapshot(self) -> bool:
        """Tell whether enough has been applied since the last snapshot, or a peer needs one."""
        return self.snapshots.is_due

    def take_snapshot(self) -> Generator[Work, None, None]:
        """Save the state, then let the log forget what it covers, but for a small margin."""
        return self.snapshots.take()

    def shorten_log(self, *, is_patient: bool) -> Generator[Work, None, None]:
        """Save the state and let the log forget all that it covers: the WAL's oldest file is to go.

        Unless `is_patient`, a member that is catching up will need a snapshot.
        """
        if not self.is_busy and not self.halted:
            yield from self.snapshots.shorten_log(is_patient=is_patient)

    def remember_commit(self) -> None:
        """Make the commit index durable with the next sync: up to there peers have the same log."""
        log = self._wal.log(self.group)
        state = structs.replace(log.hard_state, commit=min(self.raft.commit, log.last_index()))
        with suppress(StorageError):
            if state.commit > log.hard_state.commit:
                self._unwritten = state
                self._write(())
                self._outbox.after_sync(self, ())

    def close(self) -> None:
        """Let go of everything; callers that still wait are told that the outcome is unknown."""
        self.is_closed = True
        with suppress(StorageError):  # a log that is dead takes no hints
            # Not needed for safety: a commit index that is known saves the next start some asking
            # around.
            self._write(())
        self._state.follow()

    # --- housekeeping -----------------------------------------------------------------------

    def needs_care(self) -> bool:
        """Tell whether `maintain` may have something to do. Cheap: it is asked often."""
        return self.wants_snapshot()

    def is_care_urgent(self) -> bool:
        """Tell whether `maintain` should run soon."""
        return self.wants_snapshot()

    def maintain(self) -> Generator[Work, None, None]:
        """Do what may wait: take a snapshot when it is due."""
        # On a full disk everything stays as it was, and is tried again next time.
        with suppress(DiskFull):
            if self.wants_snapshot():
                yield from self.take_snapshot()
