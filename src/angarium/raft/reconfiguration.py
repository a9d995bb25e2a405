"""Changing who is in the group, while it works.

A change takes effect on each replica when it is applied, and the leader lets the next one into
its log only after the last one has been: so two configurations in force at the same time are
always neighbours, whose majorities overlap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.ids import NO_REPLICA, Index
from angarium.raft.conf_change import decode_conf_change_data
from angarium.raft.core import LEADER
from angarium.raft.errors import InvalidConfChange
from angarium.raft.forgetting import lacks_what_is_forgotten
from angarium.raft.membership import changed
from angarium.raft.messages import Entry, EntryKind
from angarium.raft.read_index import answer_confirmed, release_postponed
from angarium.raft.replication import advance_commit, broadcast_append, send_append

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import Buffer
    from angarium.raft.conf_change import ConfChange
    from angarium.raft.core import Core
    from angarium.raft.membership import Membership
    from angarium.raft.messages import ConfState


def admitted(
    core: Core, proposals: Sequence[tuple[EntryKind, Buffer]]
) -> tuple[list[Entry], Index]:
    """Return the entries to append for `proposals`, and the index of the change among them or 0.

    A membership change that cannot be right at the moment becomes an empty entry: the proposer
    learns that it came too early by not seeing it.
    """
    entries = []
    index, term = core.log.last_index, core.term
    conf_index = Index(0)
    for kind, data in proposals:
        index = Index(index + 1)
        if kind is EntryKind.NORMAL:
            entries.append(Entry(term, index, data))
        # Judged here, by the leader and before the entry is in the log, since an entry that is in
        # the log is applied by every replica and cannot be refused any more.
        elif _fits(core, decode_conf_change_data(kind, data), pending=conf_index):
            conf_index = index
            entries.append(Entry(term, index, data, kind))
        else:
            entries.append(Entry(term, index))
    return entries, conf_index


def apply_change(core: Core, change: ConfChange) -> ConfState:
    """Put `change` into force; raises `InvalidConfChange` and changes nothing if it cannot be."""
    membership = changed(core.tracker.membership, change)
    switch_to(core, membership)
    return core.tracker.conf_state


def switch_to(core: Core, membership: Membership) -> None:
    """Act under `membership` from now on."""
    # On followers too, from their own apply: any of them may be leader next.
    core.tracker.adopt(membership, last_index=core.log.last_index)
    if core.role is not LEADER:
        return
    own = core.tracker.progress.get(core.id)
    if own is None or own.is_learner:
        # Removed or demoted. It could go on committing without a vote of its own (thesis,
        # section 4.2.2); by default it lets the others elect one of themselves.
        if core.config.step_down_on_removal:
            core.become_follower(core.term, NO_REPLICA)
        return
    if advance_commit(core):  # fewer voters may have to agree now
        release_postponed(core)
        broadcast_append(core)
    else:
        for replica, progress in core.tracker.progress.items():
            if replica != core.id:
                send_append(core, replica, progress, even_if_empty=False)
    # It cannot be elected any more, so waiting for it would refuse proposals for nothing.
    if core.transferee and core.transferee not in core.tracker.voters:
        core.transferee = NO_REPLICA
    # Reads may have enough confirmations now that fewer voters, or other ones, are asked.
    answer_confirmed(core)


def _fits(core: Core, change: ConfChange, *, pending: Index) -> bool:
    """Tell whether `change` can be made to the configuration in force, and none is on its way."""
    if not core.config.validate_conf_changes:
        return True
    # One at a time: until the last change is applied here its majorities are not the ones in
    # force, and a second change could be two steps away from what some replica still uses (thesis
    # §4.1).
    if max(core.pending_conf_index, pending) > core.log.applied:
        return False
    # While joint only the step out of it is allowed, and outside only something that is a change.
    if core.tracker.membership.is_joint is not (not change.changes):
        return False
    if lacks_what_is_forgotten(core, change):
        return False
    try:
        changed(core.tracker.membership, change)
    except InvalidConfChange:
        return False
    return True
