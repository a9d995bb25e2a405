"""The snapshots of one replica: when one is due, how it is taken, what the log may forget then.

A snapshot is durable before the entries it replaces are forgotten. One from a leader is installed
only after the segments it lists have been copied (`catching_up`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from angarium.errors import DiskFull
from angarium.ids import Index
from angarium.raft.messages import Snapshot

if TYPE_CHECKING:
    from collections.abc import Generator

    from angarium.ids import Term
    from angarium.raft.messages import ConfState
    from angarium.replica.parts import Parts, State
    from angarium.replica.work import Work


class Applier(Protocol):
    """The replica whose state is saved, as far as this is concerned."""

    applied: Index
    """The index of the last entry that the state has taken."""
    applied_term: Term
    is_busy: bool
    """True while files are written that nothing else may touch meanwhile."""

    @property
    def forgets_to(self) -> Index | None:
        """How far the log may be forgotten, whatever is saved; None: as far as that."""


class Snapshots:
    """Takes and installs the snapshots of one replica. At most one is under way."""

    def __init__(self, replica: Applier, parts: Parts, state: State) -> None:
        self._replica = replica
        self._group = parts.group
        self._raft = parts.raft
        self._storage = parts.storage
        self._wal = parts.wal
        self._config = parts.config
        self._state = state
        self.unsaved_bytes = 0
        """Bytes of the entries applied since the newest snapshot."""

    @property
    def newest_index(self) -> Index:
        """The index of the newest durable snapshot."""
        return self._storage.newest.index

    @property
    def is_due(self) -> bool:
        """True when enough has been applied since the last snapshot, or a peer needs one."""
        config = self._config
        return (
            self._replica.applied - self.newest_index >= config.snapshot_entries
            or self.unsaved_bytes >= config.snapshot_bytes
            or self._storage.is_wanted
        )

    def take(self) -> Generator[Work, None, None]:
        """Save the state, then let the log forget what it covers, but for a small margin.

        While the work is under way no other snapshot may be installed (`is_busy`).
        """
        replica = self._replica
        # All of these are fixed before the first `yield`: entries are applied while the files are
        # written, and the snapshot must be of one moment.
        applied, term = replica.applied, replica.applied_term
        conf_state: ConfState = self._raft.conf_state
        as_of = self._storage.outdated_count
        saved_bytes = self.unsaved_bytes
        is_newest = applied == self.newest_index and self._storage.is_fresh
        # Never of a commit that is only half brought in: a replica restored from it would miss the
        # rest. Nor one older than what is there.
        if applied < self.newest_index or is_newest or not self._state.is_concluded:
            return
        replica.is_busy = True
        try:
            # This order is what recovery relies on: segments durable, then the snapshot durable,
            # then the log may forget. Planted as segments-not-synced-before-the-log-is-freed,
            # snapshot-not-synced and log-forgets-before-the-snapshot-is-saved.
            data = yield from self._state.save()
            snapshot = Snapshot(applied, term, conf_state, data)
            yield lambda: self._storage.write(snapshot)
        finally:
            replica.is_busy = False
        self._storage.adopt(snapshot, as_of=as_of)
        self.unsaved_bytes -= saved_bytes
        # Stages whose batches are in durable segments may go now, and not when their commit was
        # applied. Planted as stages-dropped-before-their-batches-are-safe.
        self._state.saved(applied)
        self.forget_entries(applied, keep=self._config.snapshot_keep_entries)

    def shorten_log(self, *, is_patient: bool) -> Generator[Work, None, None]:
        """Save the state and let the log forget all that it covers: the WAL's oldest file is to go.

        Unless `is_patient`, a member that is catching up will need a snapshot.
        """
        # A member that is catching up from the log would need a whole snapshot if its entries went
        # now.
        waited_for = self._raft.slowest_index() if is_patient else None
        with suppress(DiskFull):
            # A newer snapshot would not help where a member needs what is older than this one.
            if waited_for is None or waited_for > self.newest_index:
                yield from self.take()
            self.forget_entries(self.newest_index, keep=0, is_patient=is_patient)

    def forget_entries(self, applied: Index, *, keep: int, is_patient: bool = True) -> None:
        """Let the log forget what a snapshot at `applied` covers, but for the last `keep`."""
        index = Index(max(applied - keep, 0))
        waited_for = self._raft.slowest_index() if is_patient else None
        if waited_for is not None:
            # Else a member under steady load would need the next snapshot as soon as it has one.
            bound = applied - self._config.snapshot_wait_entries
            index = min(index, Index(max(waited_for, bound, 0)))
        forgets_to = self._replica.forgets_to
        if forgets_to is not None:
            index = min(index, forgets_to)  # patient or not: nobody else may have it
        if index >= self._storage.first_index():
            self._wal.compact(self._group, index, self._storage.term(index))

    def install(self, snapshot: Snapshot) -> None:
        """Replace log and state by a leader's snapshot, whose segments are here already."""
        # Blocks, and must: the answer to the leader says that the snapshot is installed, so it is
        # on disk before anything of it is acted upon.
        self._storage.write(snapshot)
        self._storage.adopt(snapshot, as_of=self._storage.outdated_count)
        self.unsaved_bytes = 0
        self._wal.compact(self._group, snapshot.index, snapshot.term)
        # Its segments and stages were copied before the core was shown the snapshot. A state
        # without its files would answer readers with nothing. Planted as
        # state-installed-without-its-segments.
        self._state.restore(snapshot.data, snapshot.index)
        self._replica.applied, self._replica.applied_term = snapshot.index, snapshot.term
