"""What happens when the driver reports that something was written or applied."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from angarium.raft.core import LEADER
from angarium.raft.errors import ProposalDropped
from angarium.raft.leading import propose
from angarium.raft.messages import EntryKind

if TYPE_CHECKING:
    from angarium.ids import Index
    from angarium.raft.core import Core
    from angarium.raft.messages import Message, Snapshot


def on_written(core: Core, m: Message) -> None:
    """Entries up to `m.index`, or a snapshot, are on disk."""
    if m.index:
        core.log.written_to(m.index, m.log_term)
    if m.snapshot is not None:
        snapshot_installed(core, m.snapshot)


def on_applied(core: Core, m: Message) -> None:
    """The machine has applied `m.entries`."""
    if m.entries:
        applied_to(core, m.entries[-1].index)


def snapshot_installed(core: Core, snapshot: Snapshot) -> None:
    """The machine continues from `snapshot`. True in any term: what it holds was committed."""
    # First the log, which reads entries from the storage again, then the machine's progress.
    core.log.snapshot_installed(snapshot.index)
    applied_to(core, snapshot.index)


def applied_to(core: Core, index: Index) -> None:
    """Note progress of the machine; leave a joint configuration that is to be left by itself."""
    # A snapshot may have taken the machine further than the apply task that reports now.
    size = core.log.applied_to(max(index, core.log.applied))
    core.uncommitted_bytes = max(core.uncommitted_bytes - size, 0)
    if (
        # Only when the joint configuration is applied: before that the old majority alone is in
        # force on some replicas, and leaving it early would skip the overlap (thesis §4.3).
        core.tracker.membership.auto_leave
        and core.role is LEADER
        and core.log.applied >= core.pending_conf_index
    ):
        # Dropped while a leadership transfer is under way: if that succeeds the new leader does
        # this, else we come by here again with the next entry.
        with suppress(ProposalDropped):
            propose(core, [(EntryKind.CONF_CHANGE_V2, b"")])
