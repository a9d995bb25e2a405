"""A group's Raft log as the core sees it: the newest snapshot, then what the WAL holds after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.raft import SnapshotTemporarilyUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import Index, RaftGroupId, Term
    from angarium.log.snapshots import SnapshotStore
    from angarium.log.wal import GroupLog
    from angarium.raft.messages import ConfState, Entry, HardState, Snapshot


class ReplicaStorage:
    """Implements the core's `Storage` over the files of one replica."""

    __slots__ = (
        "_fresh_at",
        "_group",
        "_hard_state",
        "_log",
        "_snapshot",
        "_store",
        "is_wanted",
        "outdated_count",
    )

    def __init__(
        self,
        *,
        group: RaftGroupId,
        log: GroupLog,
        store: SnapshotStore,
        snapshot: Snapshot,
        hard_state: HardState,
    ) -> None:
        self._group = group
        self._log = log
        self._store = store
        self._snapshot = snapshot
        self._hard_state = hard_state
        self.outdated_count = 0
        """How often a snapshot of that moment became useless for peers."""
        self._fresh_at = 0
        """The count when the newest snapshot began to be taken."""
        self.is_wanted = False
        """True when a peer needs a snapshot and the newest one will not do."""

    def initial_state(self) -> tuple[HardState, ConfState]:
        """Return what was remembered when the replica was opened."""
        return self._hard_state, self._snapshot.conf_state

    def first_index(self) -> Index:
        """Return the lowest index whose entry is still in the log."""
        return self._log.first_index()

    def last_index(self) -> Index:
        """Return the highest index in the log, or the snapshot's if the log is empty."""
        return self._log.last_index()

    def term(self, index: Index) -> Term:
        """Return the term of the entry at `index`, or of the one just before the log's start."""
        return self._log.term(index)

    def entries(self, low: Index, high: Index, bytes_max: int) -> Sequence[Entry]:
        """Return the entries `[low, high)`, as many as fit `bytes_max` but at least one."""
        return self._log.entries(low, high, bytes_max)

    @property
    def newest(self) -> Snapshot:
        """The newest snapshot saved, whether or not a peer could use it."""
        return self._snapshot

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot for a peer; if that would be of no use, ask for a new one."""
        # Offering it would copy all the segments for nothing: the newcomer would refuse it, or ask
        # for files that are gone, and be offered the same snapshot again.
        if not self.is_fresh:
            self.is_wanted = True
            raise SnapshotTemporarilyUnavailable("a newer snapshot is being made")
        return self._snapshot

    @property
    def is_fresh(self) -> bool:
        """True while the newest snapshot is good for peers."""
        return self.outdated_count == self._fresh_at

    def outdate(self) -> None:
        """Say that the newest snapshot, and one being taken, are no good for peers any more.

        Either the membership has changed, and a newcomer would not find itself in it, or segments
        it lists are gone.
        """
        self.outdated_count += 1

    def write(self, snapshot: Snapshot) -> None:
        """Make `snapshot` durable; only then may the entries it replaces be forgotten. Blocks."""
        self._store.save(self._group, snapshot)

    def adopt(self, snapshot: Snapshot, *, as_of: int) -> None:
        """Let `snapshot`, which is durable, be the newest.

        `as_of` is what `outdated_count` was when it was taken: writing it takes time, and the
        membership may have changed meanwhile.
        """
        self._snapshot = snapshot
        self._fresh_at = as_of
        self.is_wanted = False
