"""One partition on one node: the way of a record, from a publish to its answer.

`publish` numbers a batch against the *projected* machine (the committed state plus this leader's
own uncommitted tail) and proposes one entry. When that entry is committed, `apply` runs it through
the real machine, checks that both agree, hands the batch to the segments, where readers see it,
and answers the publisher.

    publish ──► Projection.append ──► LogEntries.propose      ① ② in ARCHITECTURE.md
                                             │                ③ ④ ⑤ are Raft's
    apply ◄──────────────────────────────────┘                ⑥
      ├─► PartitionMachine.apply    what the entry means
      ├─► PartitionFiles.append     segments: readers see it from here on
      ├─► HostListener              subscribers and groups hear of it after the turn
      └─► Acks.applied              whoever waits is answered

Followers come in at `apply`, with the same entries; only nobody waits there.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from angarium.errors import AngariumError, CorruptData, LayoutChanged, LimitExceeded, NotLeader
from angarium.ids import Index, Micros, Term
from angarium.machine import Appended, Misnumbered, PartitionMachine, Projection, knows
from angarium.machine.commands import APPEND, Kind, Restore, Stage
from angarium.modes import DeliveryMode
from angarium.raft import LogContradiction
from angarium.raft.messages import EntryKind
from angarium.replica.acks import Acks, Published
from angarium.replica.partition_files import PartitionFiles
from angarium.replica.partition_snapshot import PartitionSnapshot, decoded
from angarium.replica.repair import IdentityLost

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from angarium.ids import Buffer, RaftGroupId
    from angarium.log.disk import Disk
    from angarium.log.segments import PartitionLog, SegmentConfig
    from angarium.machine import Applied, Command, Outcome, Prepared, Refused
    from angarium.raft.messages import Entry
    from angarium.replica.acks import Dealt, Publishing, Reply
    from angarium.replica.config import ReplicaConfig
    from angarium.replica.outbox import Outbox
    from angarium.replica.work import Work


SAVED_BYTES_AT_ONCE: Final = 64 << 10
"""How much of a state is encoded before others get their turn: a few milliseconds' worth."""

UNFLUSHED_BYTES_MAX: Final = 32 << 20
"""Batches in memory that no segment has yet, and as much that no stage's file has. Above it
publishes are refused, retriably, and a follower takes no more entries, until the disk has caught
up."""

APPLIED_BYTES_MAX: Final = 40 << 20
"""Batches in memory that no segment has yet. Above it entries that are committed wait as well."""


class LogEntries(Protocol):
    """The part of a replica that a partition proposes to."""

    @property
    def last_index(self) -> Index:
        """The index of the last entry in the log, committed or not."""

    def propose(self, data: Buffer, *, may_wait: bool = False) -> Index:
        """Append an entry to this leader's log; raises if it was not taken.

        One that `may_wait` need not be written and sent at once.
        """

    def unapplied(self) -> Iterable[Entry]:
        """Return the entries of the log that are not applied yet."""


class Partition:
    """Machine, files, and the publishes that wait."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        *,
        group: RaftGroupId,
        saved: Buffer,
        config: ReplicaConfig,
        segments: SegmentConfig,
        outbox: Outbox,
    ) -> None:
        """Open the files in `folder` as of the state `saved` here; the log brings the rest.

        Its Raft group is `group`; what happens in it is told by way of the `outbox`.
        """
        self.machine = PartitionMachine()
        """What the applied entries have come to."""
        if saved:
            # Entries behind the snapshot come from the log again, one by one, and are applied as
            # the first time: nothing of the machine is persistent but its snapshots.
            self.machine.restore(decoded(saved).machine)
        self.files = PartitionFiles(
            disk,
            folder,
            self.machine,
            segments,
            step_bytes=config.commit_step_bytes,
            note_damage=partial(outbox.note_damage, group),
        )
        self.acks = Acks()
        self._group = group
        self._outbox = outbox
        self._listener = outbox.listener
        self._config = config
        self._log_entries: LogEntries | None = None
        self._projection: Projection | None = None
        """The machine as it will be when this leader's tail is committed; made when needed."""
        self._term = Term(0)
        """The term in which this replica leads; 0 while it does not."""
        self._applied = Index(0)
        """The last entry taken since opening, a change of membership included."""
        self._replayed_to = Index(0)
        """Entries up to here were in the log when this replica was opened."""
        self._lacks_records = False
        """Whether the last batch from before this start was numbered above what is here."""
        self._stand_back: Callable[[bool], None] = _stay
        self._held: tuple[Entry, Applied] | None = None
        """A large commit that the machine has carried out and that is still being brought in."""

    def attach(
        self, entries: LogEntries, *, replayed_to: Index, stand_back: Callable[[bool], None]
    ) -> None:
        """Set where new entries go, and where those not yet applied are read from.

        Entries up to `replayed_to` were in the log before this start. `stand_back` has the replica
        campaign only where no other one does, or as usual again.
        """
        self._log_entries = entries
        self._replayed_to = replayed_to
        self._stand_back = stand_back

    @property
    def log(self) -> PartitionLog:
        """The committed batches, for readers. Another object after a snapshot was installed."""
        return self.files.log

    # --- leading ----------------------------------------------------------------------------

    def lead(self, term: Term) -> None:
        """Begin to number and serve."""
        self._term = term
        # Made anew from this log's tail: the one from an earlier leadership has numbered entries
        # that another leader may have replaced. Planted as projection-kept-across-leaders.
        self._projection = None
        self._listener.partition_changed(self._group)

    def follow(self) -> None:
        """Stop serving; nobody can be told what becomes of the tail."""
        self._term = Term(0)
        self._projection = None
        # Not "no": the entries may still be committed by the next leader. Whoever hears a no
        # repeats, and the record would be stored twice. Planted as unknown-called-no.
        self.acks.abandon()
        self._listener.partition_changed(self._group)

    def _leading_projection(self) -> Projection | None:
        """Return the projection, made anew from the log's tail if the last one went astray."""
        if not self._term or self._log_entries is None:
            return None
        if self._projection is None:
            self._projection = Projection(self.machine)
            # Everything in the tail counts, committed or not: as long as this replica leads, it is
            # what will be applied (Leader Append-Only, Raft §5.3).
            try:
                tail = self._log_entries.unapplied()
            except CorruptData:
                # The host repairs the log with its next tick; until then nothing can be numbered.
                self._projection = None
                return None
            for entry in tail:
                if entry.kind is EntryKind.NORMAL:
                    self._projection.replay(entry.term, entry.data)
        return self._projection

    def time_leapt(self) -> None:
        """Hear that this node's time is suddenly another one."""
        if self._projection is not None:
            self._projection.forget_pace()

    def time(self, now: Micros) -> Micros:
        """Return what time it is in this partition, when it is `now` for its leader."""
        projection = self._leading_projection()
        return now if projection is None else projection.time(now)

    # --- admitting: from a publish to an entry ----------------------------------------------

    def publish(
        self, requests: Sequence[Publishing], *, now: Micros, may_wait: bool = False
    ) -> None:
        """Number every caller's batches, propose them as one entry, and answer as asked.

        Several callers share an entry, but their batches are never merged. A duplicate is answered
        with the offset of its original, but not before that one is committed. With `may_wait` an
        entry that nobody waits for may be held back for a moment (`Replica.propose`).
        """
        projection = self._leading_projection()
        if projection is None or self.is_congested:
            error = NotLeader() if projection is None else _congestion()
            for request in requests:
                request.reply(error)
            return
        batches = [batch for request in requests for batch in request.batches]
        # Numbered before they are committed, against the state after everything that is in the
        # log. That is what lets one entry follow another without waiting for a commit.
        barred = _barred(requests, projection.layout)
        prepared = projection.append(batches, term=self._term, now=now, barred=barred)
        # If commits lag, nobody is answered early any more: it bounds how much can be lost.
        early = prepared.data is not None and self._may_answer_early(now)
        index = self._proposed(prepared, now, may_wait=may_wait and early and _is_early(requests))
        if isinstance(index, AngariumError):
            for request in requests:
                request.reply(index)
            return
        # EVENTUAL is answered as soon as the leader's log has taken the entry, and not before.
        # Planted as eventual-answered-before-the-log-took-it.
        start = 0
        for request in requests:
            outcomes = prepared.outcomes[start : start + len(request.batches)]
            start += len(request.batches)
            answer = Published(request.mode, self._term, outcomes)
            if early and request.mode is DeliveryMode.EVENTUAL:
                self.acks.answered_early(index, self._term, _records(outcomes))
                request.reply(msgspec.structs.replace(answer, provisional=True))
            else:
                # CONSISTENT waits until the entry is applied, and so committed. Planted as
                # consistent-answered-at-append.
                self._answer_at(index, answer, request.reply)

    def submit(
        self, command: Command, *, now: Micros, reply: Reply, dealt: Dealt | None = None
    ) -> None:
        """Propose one command other than an append; it is answered when it is applied."""
        projection = self._leading_projection()
        if projection is None:
            reply(NotLeader())
            return
        fault = None if dealt is None else dealt.fault(projection.layout)
        if fault is not None:
            reply(LayoutChanged(fault.message))
            return
        # Only what brings data waits. A commit or an abort makes room, and a cursor is small.
        if isinstance(command, Stage | Restore) and self.is_congested:
            reply(_congestion())
            return
        prepared = projection.submit(command, term=self._term, now=now)
        index = self._proposed(prepared, now)
        if isinstance(index, AngariumError):
            reply(index)
            return
        answer = Published(DeliveryMode.CONSISTENT, self._term, prepared.outcomes)
        self._answer_at(index, answer, reply)

    def _proposed(
        self, prepared: Prepared, now: Micros, *, may_wait: bool = False
    ) -> Index | AngariumError:
        """Propose what was prepared; return the index to wait for, or why it was not taken."""
        entries = self._log_entries
        assert entries is not None
        if prepared.data is None:
            # Nothing new to store. The original of a duplicate may itself be uncommitted still,
            # so its answer waits for everything that is in the log by now.
            return entries.last_index
        try:
            index = entries.propose(prepared.data, may_wait=may_wait)
        except AngariumError as refused:
            # The projection has run ahead of a log that did not take the entry.
            self._projection = None
            return refused
        # From here on the entry exists, and only Raft decides what becomes of it.
        self.acks.appended(index, now)
        return index

    def _answer_at(self, index: Index, answer: Published, reply: Reply) -> None:
        if index <= self._applied:
            reply(answer)
        else:
            self.acks.wait(index, answer, reply)

    def _may_answer_early(self, now: Micros) -> bool:
        # In microseconds of this leader's clock, between the append of the oldest unapplied entry
        # and now.
        return self.acks.oldest_age(now) <= self._config.eventual_bound_micros

    @property
    def is_congested(self) -> bool:
        """True while segments or stages are written more slowly than batches come."""
        waiting = self.files.stages.waiting_bytes
        return max(self.files.log.unflushed_bytes, waiting) > UNFLUSHED_BYTES_MAX

    # --- applying: from a committed entry to readers and answers ----------------------------

    def understands(self, data: Buffer) -> bool:
        """Tell whether the machine of this release has a meaning for an entry's data."""
        return knows(data)

    def apply(self, entry: Entry) -> None:
        """Take a committed entry: into the machine, the segments, and to whoever waits for it.

        Nothing more may come while the partition `is_occupied` afterwards.
        """
        if entry.kind is not EntryKind.NORMAL:
            self._applied = entry.index
            # Also for entries that are not the machine's: a duplicate may wait for an index that
            # happens to be a change of membership.
            self.acks.applied(entry.index, entry.term, ())
            return
        applied = self.machine.apply(entry.index, entry.term, entry.data)
        if applied.misnumbered is not None or self._lacks_records:
            self._compare_with_leader(entry, applied)
        if self._projection is not None and entry.data:
            # The projection has foreseen this entry; from here on the machine itself holds its
            # rows.
            self._projection.confirm(entry.index, applied)
        if applied.outcomes:
            self.files.append(applied)
        if self.files.is_publishing:
            # Nobody hears of it yet. Readers would see half of a transaction. Planted as
            # half-of-a-commit-is-shown.
            self._held = entry, applied
        else:
            self._conclude(entry, applied)

    def _compare_with_leader(self, entry: Entry, applied: Applied) -> None:
        """Raise if a committed batch is numbered otherwise than the records here continue.

        Raises `IdentityLost` on a replica that lacks records, and `LogContradiction` on one that
        has records which the leader lacked: its files may be the only ones with all of them, and
        are never given up for a copy of that leader's. Planted in hole-in-the-log-passed-over.
        """
        end = self.machine.next_offset
        is_new = entry.index > self._replayed_to and self._outbox.compares_numbers
        if applied.misnumbered is Misnumbered.NOT_ABOVE and is_new:
            raise LogContradiction(
                f"entry {entry.index} numbers records that follow on fewer than the {end} that are "
                "committed here"
            )
        if applied.misnumbered is Misnumbered.ABOVE and is_new:
            raise IdentityLost(
                f"its leader numbered entry {entry.index} above record {end}, where this replica "
                "ends: committed records are missing here"
            )
        # A refusal that an earlier release may have passed over stops nothing. It may have been one
        # of all replicas, or of this one alone: the next batch shows which; until then, others may
        # lead.
        lacks = applied.misnumbered is Misnumbered.ABOVE
        if lacks or (applied.visible and entry.data[0] == APPEND):
            self._lacks_records = lacks
            self._stand_back(lacks)

    def _conclude(self, entry: Entry, applied: Applied) -> None:
        """Let readers and whoever waits hear of an entry whose batches are all in the segments."""
        self._applied = entry.index
        if applied.outcomes:
            # Readers first, then those who wait: a publisher that was answered must be able to
            # read its record.
            self.files.show()
            # Readers stop at a fence, and have to hear of it although nothing comes behind it.
            if applied.visible or applied.reserved or entry.data[0] == Kind.FENCE:
                self._listener.records_visible(self._group)
            # Behind `show`: what a commit publishes is copied out of its stage before the stage is
            # given up.
            self.files.let_go(applied)
            if entry.data[0] != APPEND:
                self._listener.partition_changed(self._group)
        self.acks.applied(entry.index, entry.term, applied.outcomes)

    @property
    def is_concluded(self) -> bool:
        """False while the last entry's batches are being brought in: nobody has heard of it yet."""
        return self._held is None

    @property
    def is_occupied(self) -> bool:
        """True while no entry can be taken: a large commit is brought in, or memory is full."""
        return self._held is not None or self.files.log.unflushed_bytes > APPLIED_BYTES_MAX

    def publish_stages(self) -> Generator[Work, None, None]:
        """Yield the work of bringing in what a large commit publishes."""
        yield from self.files.publish()

    def conclude(self) -> None:
        """Bring a large commit to light, if all of it is in the segments by now."""
        if self._held is not None and not self.files.is_publishing:
            entry, applied = self._held
            self._held = None
            self._conclude(entry, applied)

    # --- snapshots --------------------------------------------------------------------------

    def save(self) -> Generator[Work, None, bytes]:
        """Yield work that makes durable what the state stands on, then return the state.

        The state is that of the moment this is called. Entries may be applied while the work is
        done; they are not part of it.
        """
        # List of segments and state of the machine are taken in the same step, without a `yield`
        # in between: they must be of the same entry.
        manifest = self.files.begin_save().encode()
        inside: dict[int, list[bytes]] = {}
        beside: dict[int, int] | None = None
        if self.machine.limits.stages_beside:
            beside = self.machine.open_stages()
        else:
            inside = self.files.open_contents()
        machine = yield from _joined(self.machine.snapshot_slices())
        # Before the snapshot is written. The log forgets what a snapshot covers, so from then on
        # these files are the only ones that have it.
        yield from self.files.make_durable()
        return PartitionSnapshot(machine, manifest, inside, beside).encode()

    def saved(self, index: Index) -> None:
        """Hear that the state as of `index` is durable."""
        self.files.saved(index)

    def restore(self, data: Buffer, index: Index) -> None:
        """Become what another replica saved; its segments have been copied and adopted before."""
        snapshot = decoded(data)
        self.machine.restore(snapshot.machine)
        self.files.restore(snapshot.stages if snapshot.beside is None else None)
        self._held = None
        # A snapshot jumps over entries: whether they were ours cannot be told.
        self.acks.superseded(index)
        self._applied = index
        self._listener.records_visible(self._group)


def _joined(slices: Iterator[bytes]) -> Generator[Work, None, bytes]:
    """Join the slices of a state; yields in between, so that others get a turn."""
    parts: list[bytes] = []
    size = 0
    for part in slices:
        parts.append(part)
        size += len(part)
        if size >= SAVED_BYTES_AT_ONCE:
            size = 0
            yield _nothing
    return b"".join(parts)


def _stay(stands_back: bool) -> None:
    """Stand back from nothing: there is no replica yet."""


def _nothing() -> None:
    """Work for the sake of a pause."""


def _barred(requests: Sequence[Publishing], fenced: int) -> dict[int, Refused]:
    """Return why batches may not be stored, each by its row among all of the requests'."""
    barred: dict[int, Refused] = {}
    row = 0
    for request in requests:
        fault = None if request.dealt is None else request.dealt.fault(fenced)
        if fault is not None:
            barred.update(dict.fromkeys(range(row, row + len(request.batches)), fault))
        row += len(request.batches)
    return barred


def _is_early(requests: Sequence[Publishing]) -> bool:
    """Tell whether every one of them is to be answered before its records are stored."""
    return all(request.mode is DeliveryMode.EVENTUAL for request in requests)


def _congestion() -> LimitExceeded:
    return LimitExceeded("UNFLUSHED_BYTES_MAX", "the disk does not keep up; try again")


def _records(outcomes: Sequence[Outcome]) -> int:
    return sum(one.next_offset - one.base_offset for one in outcomes if isinstance(one, Appended))
