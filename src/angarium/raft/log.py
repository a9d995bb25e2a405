"""A replica's log: the written part in `Storage`, and the newest part still in memory.

Entries are held here from the moment they are appended until the driver reports them written, so
the log always reads as one. Writes may overlap: what has been handed out to be written is marked
in progress and not handed out twice. The indexes always keep this order:

    applied <= applying <= committed <= last_index
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from angarium.errors import CorruptData
from angarium.ids import Index, Term
from angarium.raft.config import ENTRY_OVERHEAD_BYTES
from angarium.raft.errors import Compacted, LogContradiction, Unavailable
from angarium.raft.storage import within_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.raft.messages import Entry, Snapshot
    from angarium.raft.storage import Storage


class RaftLog:
    """The log of one replica."""

    __slots__ = (
        "_apply_unwritten",
        "_applying_bytes",
        "_applying_bytes_max",
        "_applying_paused",
        "_applying_sizes",
        "_batch",
        "_batch_bytes",
        "_batch_key",
        "_edge_term",
        "_in_progress",
        "_offset",
        "_snapshot_in_progress",
        "_storage",
        "_unstable",
        "applied",
        "applying",
        "committed",
        "last_index",
        "last_term",
        "pending_snapshot",
    )

    def __init__(
        self, storage: Storage, *, applying_bytes_max: int, apply_unwritten: bool = False
    ) -> None:
        self._storage = storage
        first, last = storage.first_index(), storage.last_index()
        self.last_index = last
        self.last_term = storage.term(last)

        self.committed = self.applying = self.applied = Index(first - 1)

        self._unstable: list[Entry] = []
        """Entries not known to be written; the first has the index `_offset`."""
        self._offset = Index(last + 1)
        self._in_progress = self._offset
        """Entries below this index are being written."""
        self._edge_term: Term | None = self.last_term
        """The term at `_offset - 1`, where known: what nearly every append is matched against."""

        self.pending_snapshot: Snapshot | None = None
        """A snapshot from the leader that is not known to be installed."""
        self._snapshot_in_progress = False

        self._apply_unwritten = apply_unwritten
        """Whether committed entries may be applied before they are in our own storage."""
        self._applying_bytes_max = applying_bytes_max
        self._applying_bytes = 0
        self._applying_sizes: deque[tuple[Index, int]] = deque()
        """The last index and the bytes of what was handed out at a time, oldest first."""
        self._applying_paused = False

        # The newest entries as they were last cut for a follower: the next one mostly wants the
        # same. Two logs with the same last index and term are the same log (paper, section
        # 5.3), so that pair and the start are key enough.
        self._batch_key: tuple[Index, Index, Index, Term] | None = None
        self._batch: tuple[Entry, ...] = ()
        self._batch_bytes = 0

    # --- reading --------------------------------------------------------------------------

    def first_index(self) -> Index:
        """Return the first index that can be read."""
        if self.pending_snapshot is not None:
            return Index(self.pending_snapshot.index + 1)
        return self._storage.first_index()

    def term_at(self, index: Index) -> Term | None:
        """Return the term of the entry at `index`; None if it is compacted or not there."""
        if index == self.last_index:
            return self.last_term
        offset = self._offset
        if index >= offset:
            position = index - offset
            return self._unstable[position].term if position < len(self._unstable) else None
        # Asked with nearly every append, and the storage would have to look it up.
        if index == offset - 1 and self._edge_term is not None:
            return self._edge_term
        if index + 1 < self.first_index():
            return None
        try:
            return self._storage.term(index)
        except (Compacted, Unavailable):
            return None

    def is_up_to_date(self, *, last_index: Index, last_term: Term) -> bool:
        """Tell whether a log that ends like this has all that ours has (paper, section 5.4.1)."""
        # The later term wins even with fewer entries: length alone would let a deposed leader with
        # a long uncommitted tail win over the replicas that hold what was committed since (Raft
        # §5.4.1).
        if last_term != self.last_term:
            return last_term > self.last_term
        return last_index >= self.last_index

    def batch(self, first: Index, last: Index, bytes_max: int) -> tuple[tuple[Entry, ...], int]:
        """Return entries from `first` to `last`, within `bytes_max`, and how many bytes of data.

        Raises `Compacted` when `first` is no longer there.
        """
        key = (first, last, self.last_index, self.last_term)
        if key != self._batch_key:
            entries = self.entries(first, Index(last + 1), bytes_max)
            self._batch_bytes = data_bytes(entries)
            self._batch = entries
            self._batch_key = key
        return self._batch, self._batch_bytes

    def entries(self, lo: Index, hi: Index, bytes_max: int) -> tuple[Entry, ...]:
        """Return the entries from `lo` up to but without `hi`, within `bytes_max`, at least one."""
        if lo >= hi:
            return ()
        assert hi <= self.last_index + 1, "nobody asks beyond the end"
        offset = self._offset
        if lo >= offset:
            unstable = self._unstable
            return tuple(within_bytes(unstable, bytes_max, start=lo - offset, stop=hi - offset))
        if lo < self.first_index():
            raise Compacted(f"index {lo} is compacted")
        stored_hi = min(hi, offset)
        stored = self._storage.entries(lo, stored_hi, bytes_max)
        check_continuous(stored, lo)
        if hi <= offset or len(stored) < stored_hi - lo:
            return tuple(stored)
        used = data_bytes(stored) + len(stored) * ENTRY_OVERHEAD_BYTES
        recent = within_bytes(self._unstable, bytes_max - used, stop=hi - offset)
        if len(recent) == 1 and used + len(recent[0].data) + ENTRY_OVERHEAD_BYTES > bytes_max:
            return tuple(stored)
        return (*stored, *recent)

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot for a follower that is too far behind."""
        return self.pending_snapshot or self._storage.snapshot()

    def guess_match(self, index: Index, term: Term) -> tuple[Index, Term]:
        """Return where this log may last agree with one that has `term` at `index`.

        Terms only grow along a log, so no entry of ours with a later term can be in the other
        one. Returns the highest position at or below `index` whose term is not later, with that
        term, or 0 where it is not known.
        """
        own = self.term_at(index)
        if own is None or own <= term:
            return index, own or Term(0)
        # The lowest position with a known term, and one whose term is too late: as terms only
        # grow, halving the distance finds the border between the two.
        low, high = Index(self.first_index() - 1), index
        own = self.term_at(low)
        if own is None or own > term:
            return Index(max(low - 1, 0)), Term(0)
        while high - low > 1:
            middle = Index((low + high) // 2)
            between = self.term_at(middle)
            assert between is not None, "a log has no holes"
            if between <= term:
                low, own = middle, between
            else:
                high = middle
        return low, own

    # --- appending ------------------------------------------------------------------------

    def append(self, entries: Sequence[Entry]) -> None:
        """Put `entries` behind, or in place of, what is there from the first one's index on."""
        start = entries[0].index
        # State Machine Safety (Raft §5.4.3): what is committed may have been applied and answered.
        # If somebody asks for this, a disk has lost entries or two logs were mixed up, and
        # stopping is all that is safe.
        if start <= self.committed:
            raise LogContradiction(f"entry {start} would replace a committed one")
        if start == self.last_index + 1:
            self._unstable.extend(entries)
        elif start <= self._offset:
            # The new entries replace written ones too: the next write has to cut the storage.
            self._unstable = list(entries)
            if start < self._offset:
                self._edge_term = None
            # Writes of the replaced entries may be under way. The term in the report of such a
            # write tells that it must not be believed (`written_to`).
            self._offset = self._in_progress = start
        else:
            del self._unstable[start - self._offset :]
            self._unstable.extend(entries)
            # Entries that were handed out to be written and are replaced have to be handed out
            # again.
            self._in_progress = min(self._in_progress, start)
        last = entries[-1]
        self.last_index, self.last_term = last.index, last.term

    def accept(
        self, entries: Sequence[Entry], *, prev_index: Index, prev_term: Term, commit: Index
    ) -> bool:
        """Append what a leader sent, if our log has its `prev` entry (paper, section 5.3).

        Entries we have already are kept; from the first one with another term on, ours go.
        Returns False if the logs do not meet at `prev_index`.
        """
        # By induction equal terms at one index mean equal logs up to it (Log Matching, Raft §5.3).
        # Without this a follower builds on entries that were never committed. Planted as
        # append-without-previous-entry.
        if self.term_at(prev_index) != prev_term:
            return False
        # Mostly the leader continues where we end, and there is nothing to compare.
        news = entries if prev_index == self.last_index else self._beyond_agreement(entries)
        if news:
            self.append(news)
        # The commit index may run ahead of this message. Behind `last_new` our entries were not
        # compared with the leader's, so committing them could commit a deposed leader's (Raft,
        # figure 2, AppendEntries step 5).
        last_new = prev_index + len(entries)
        self.commit_to(commit if commit < last_new else Index(last_new))
        return True

    def check_against(
        self, entries: Sequence[Entry], *, prev_index: Index, prev_term: Term
    ) -> None:
        """Raise `LogContradiction` if a leader has other entries where ours are committed.

        A leader has everything that is committed (paper, section 5.4.3). If this one has not,
        a disk has gone back in time: its own, this replica's, or one whose vote elected it.
        """
        if prev_index > self.committed:
            return
        self._check_term(prev_index, prev_term)
        for entry in entries:
            if entry.index > self.committed:
                return
            self._check_term(entry.index, entry.term)

    def _check_term(self, index: Index, term: Term) -> None:
        own = self.term_at(index)
        if own is not None and own != term:
            raise LogContradiction(
                f"entry {index} is committed here with term {own}, and the leader has another one "
                f"there, of term {term}"
            )

    def _beyond_agreement(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        # Only from the first real conflict on: an append that was delayed and describes a shorter
        # log must not cut entries that came after it and are acknowledged. And conflicts must be
        # cut. Planted as conflicting-suffix-kept.
        for position, entry in enumerate(entries):
            if self.term_at(entry.index) != entry.term:
                return entries[position:]
        return ()

    def restore(self, snapshot: Snapshot) -> None:
        """Start over from `snapshot`, which is newer than anything committed here."""
        self.pending_snapshot = snapshot
        self._snapshot_in_progress = False
        self._unstable = []
        self._offset = self._in_progress = Index(snapshot.index + 1)
        self._edge_term = self.last_term = snapshot.term
        # `applied` stays where it is until the snapshot is installed; nothing is applied
        # meanwhile.
        self.last_index = self.committed = snapshot.index

    # --- committing and applying ----------------------------------------------------------

    def commit_to(self, index: Index) -> None:
        """Raise the commit index to `index`; it never goes back."""
        if index > self.committed:
            # We acknowledged these entries and do not have them: the disk lost them.
            if index > self.last_index:
                raise LogContradiction(
                    f"entry {index} is committed, but this log ends at {self.last_index}"
                )
            self.committed = index

    @property
    def has_next_committed(self) -> bool:
        """Whether there is something to apply; a snapshot on its way goes first."""
        applying = self.applying
        return (
            # In asynchronous mode an entry is applied only when it is in our own storage.
            # Otherwise a crash could leave files of the machine that are ahead of the log they
            # came from.
            applying < self.committed
            and (self._apply_unwritten or applying < self._offset - 1)
            and not self._applying_paused
            and self.pending_snapshot is None
        )

    def next_committed(self) -> tuple[Entry, ...]:
        """Return committed entries that were not handed out yet, and note that they are now.

        No more of them than may be under way at a time; the rest once some are applied.
        """
        if not self.has_next_committed:
            return ()
        appliable = self.committed
        # Committed by a majority without us: our own write is still under way.
        if not self._apply_unwritten and appliable >= self._offset:
            appliable = Index(self._offset - 1)
        budget = self._applying_bytes_max - self._applying_bytes
        entries = self.entries(Index(self.applying + 1), Index(appliable + 1), budget)
        self.applying = entries[-1].index
        size = data_bytes(entries) + len(entries) * ENTRY_OVERHEAD_BYTES
        self._applying_sizes.append((self.applying, size))
        self._applying_bytes += size
        # Either the bound is met, or the next entry would have passed it: it was left out.
        self._applying_paused = (
            self._applying_bytes >= self._applying_bytes_max or self.applying < appliable
        )
        return entries

    def applied_to(self, index: Index) -> int:
        """Note that entries up to `index` have been applied; return the bytes of their data."""
        assert self.applied <= index <= self.committed, "only committed entries are applied, once"
        count = index - self.applied
        self.applied = index
        self.applying = max(self.applying, index)
        sizes, freed = self._applying_sizes, 0
        while sizes and sizes[0][0] <= index:
            freed += sizes.popleft()[1]
        self._applying_bytes -= freed
        self._applying_paused = self._applying_bytes >= self._applying_bytes_max
        return max(freed - count * ENTRY_OVERHEAD_BYTES, 0)

    # --- writing --------------------------------------------------------------------------

    @property
    def has_unwritten(self) -> bool:
        """Whether any entry is not known to be written, in progress or not."""
        return bool(self._unstable)

    @property
    def has_next_unstable(self) -> bool:
        """Whether there are entries or a snapshot to write that were not handed out yet."""
        return self.last_index >= self._in_progress or (
            self.pending_snapshot is not None and not self._snapshot_in_progress
        )

    def next_unstable(self) -> tuple[Entry, ...]:
        """Return the entries to write that were not handed out yet."""
        if self.last_index < self._in_progress:
            return ()
        return tuple(self._unstable[self._in_progress - self._offset :])

    def next_snapshot(self) -> Snapshot | None:
        """Return the snapshot to install, if it was not handed out yet."""
        return None if self._snapshot_in_progress else self.pending_snapshot

    def start_writing(self) -> None:
        """Note that all entries and the snapshot were handed out to be written."""
        if self._unstable:
            self._in_progress = Index(self.last_index + 1)
        self._snapshot_in_progress = self.pending_snapshot is not None

    def written_to(self, index: Index, term: Term) -> None:
        """Forget the entries up to `index`, which are in the storage now.

        Nothing happens if the entry there has another term by now: then it was replaced after
        the write began, and the write of its successor is still to come.
        """
        position = index - self._offset
        # Writes overlap, so an entry can be replaced and its successor at the same index be in
        # flight when this report comes. Believing it would read a stale entry from the storage.
        if not 0 <= position < len(self._unstable) or self._unstable[position].term != term:
            return
        del self._unstable[: position + 1]
        self._offset = Index(index + 1)
        self._edge_term = term
        self._in_progress = max(self._in_progress, self._offset)
        self._batch_key, self._batch = None, ()

    def snapshot_installed(self, index: Index) -> None:
        """Note that the snapshot at `index` is in the storage now."""
        if self.pending_snapshot is not None and self.pending_snapshot.index == index:
            self.pending_snapshot = None
            self._snapshot_in_progress = False


def check_continuous(stored: Sequence[Entry], first: Index) -> None:
    """Raise `CorruptData` unless `stored` is not empty, begins at `first` and has no gap.

    A replica that applies or sends entries behind a gap has another state than its group.
    Planted as hole-in-the-log-passed-over.
    """
    if not stored or stored[0].index != first or stored[-1].index != first + len(stored) - 1:
        raise CorruptData(f"the stored log does not go on at entry {first} without a gap")


def data_bytes(entries: Sequence[Entry]) -> int:
    """Return the bytes of data in `entries`."""
    return sum([len(entry.data) for entry in entries])
