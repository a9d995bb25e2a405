"""Where a replica's log lies once it is written, as the core reads it, and a twin in memory.

The core only reads. The driver writes what each Ready asks for; once it reports a write as done,
this storage must answer with it. Entries may be read long after they were written (a slow follower
asks for old ones), but most reads are of the newest few: a storage on disk keeps those in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from angarium.ids import Index, Term
from angarium.raft.config import ENTRY_OVERHEAD_BYTES
from angarium.raft.errors import Compacted, Unavailable
from angarium.raft.messages import ConfState, Entry, HardState, Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence


class Storage(Protocol):
    """What a core asks of the written part of its log."""

    def initial_state(self) -> tuple[HardState, ConfState]:
        """Return the hard state and the membership of the last snapshot; asked once, at start."""

    def first_index(self) -> Index:
        """Return the index of the first entry that is there: one after the last snapshot."""

    def last_index(self) -> Index:
        """Return the index of the last entry, or of the snapshot where there are none."""

    def term(self, index: Index) -> Term:
        """Return the term of the entry at `index`, which may also be `first_index() - 1`.

        Raises `Compacted` below that and `Unavailable` above the last index.
        """

    def entries(self, lo: Index, hi: Index, bytes_max: int) -> Sequence[Entry]:
        """Return the entries from `lo` up to but without `hi`, as many as `bytes_max` allows.

        At least one is returned. Each counts its data and `ENTRY_OVERHEAD_BYTES`. Raises
        `Compacted` if `lo` lies below the first index, `Unavailable` if `hi - 1` is not there.
        """

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot, at or above `first_index() - 1`.

        Raises `SnapshotTemporarilyUnavailable` if it has to be made first.
        """


def within_bytes(
    entries: Sequence[Entry], bytes_max: int, *, start: int = 0, stop: int | None = None
) -> Sequence[Entry]:
    """Return `entries[start:stop]`, or as many of them as `bytes_max` allows, at least one.

    Looks only at what it returns, so that reading a long log message by message takes a time
    that grows with its length and not with the square of it.
    """
    end = len(entries) if stop is None else stop
    size = 0
    for position in range(start, end):
        size += len(entries[position].data) + ENTRY_OVERHEAD_BYTES
        if size > bytes_max and position > start:
            return entries[start:position]
    return entries[start:end]


class MemoryStorage:
    """A `Storage` in memory, with the writing half that a driver needs."""

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self._hard_state = HardState()
        self._snapshot = snapshot or Snapshot()
        self._base = self._snapshot.index
        """The index just below the first entry; its term is kept to match appends against."""
        self._base_term = self._snapshot.term
        self._entries: list[Entry] = []

    def initial_state(self) -> tuple[HardState, ConfState]:
        """Return what was stored last."""
        return self._hard_state, self._snapshot.conf_state

    def first_index(self) -> Index:
        """Return the index after the last compaction or snapshot."""
        return Index(self._base + 1)

    def last_index(self) -> Index:
        """Return the index of the last entry."""
        return Index(self._base + len(self._entries))

    def term(self, index: Index) -> Term:
        """Return the term at `index`."""
        position = index - self._base - 1
        if position == -1:
            return self._base_term
        if position < -1:
            raise Compacted(f"index {index} lies below {self._base}")
        if position >= len(self._entries):
            raise Unavailable(f"index {index} lies above {self.last_index()}")
        return self._entries[position].term

    def entries(self, lo: Index, hi: Index, bytes_max: int) -> Sequence[Entry]:
        """Return entries from `lo` up to but without `hi`, within `bytes_max`."""
        base = self._base
        if lo <= base:
            raise Compacted(f"index {lo} lies below {base + 1}")
        if hi > base + len(self._entries) + 1:
            raise Unavailable(f"index {hi - 1} lies above {self.last_index()}")
        return within_bytes(self._entries, bytes_max, start=lo - base - 1, stop=hi - base - 1)

    def snapshot(self) -> Snapshot:
        """Return the snapshot that was stored or made last."""
        return self._snapshot

    def set_hard_state(self, hard_state: HardState) -> None:
        """Store what must survive a restart."""
        self._hard_state = hard_state

    def append(self, entries: Sequence[Entry]) -> None:
        """Store `entries`, replacing what was there from the first one's index on."""
        if not entries:
            return
        position = entries[0].index - self._base - 1
        if position < 0:
            # Compacted in the meantime; only what lies above the snapshot is of interest.
            self.append(entries[-position:])
            return
        assert position <= len(self._entries), "a log has no gaps"
        if position < len(self._entries):
            del self._entries[position:]
        self._entries.extend(entries)

    def apply_snapshot(self, snapshot: Snapshot) -> None:
        """Replace the whole log by `snapshot`; an older one than we have is ignored."""
        if snapshot.index <= self._snapshot.index:
            return
        self._snapshot = snapshot
        self._base, self._base_term = snapshot.index, snapshot.term
        self._entries = []

    def create_snapshot(
        self, index: Index, *, conf_state: ConfState | None = None, data: bytes = b""
    ) -> Snapshot:
        """Make and keep a snapshot of the machine's state after `index`."""
        assert index > self._snapshot.index, "a snapshot replaces an older one"
        self._snapshot = Snapshot(
            index=index,
            term=self.term(index),
            conf_state=conf_state or self._snapshot.conf_state,
            data=data,
        )
        return self._snapshot

    def compact(self, index: Index) -> None:
        """Drop the entries up to and including `index`; take a snapshot of them before."""
        if index <= self._base:
            raise Compacted(f"index {index} is compacted already")
        term = self.term(index)
        del self._entries[: index - self._base]
        self._base, self._base_term = index, term
