"""A look at a replica from outside, for people and for drivers that decide by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from angarium.ids import Index, ReplicaId, Term
from angarium.raft.core import LEADER, Role
from angarium.raft.messages import ConfState
from angarium.raft.progress import ProgressState

if TYPE_CHECKING:
    from angarium.raft.core import Core
    from angarium.raft.progress import Progress


class ProgressView(msgspec.Struct, frozen=True, kw_only=True):
    """One member as the leader sees it."""

    state: ProgressState
    match: Index
    next_index: Index
    is_learner: bool
    is_paused: bool
    pending_snapshot: Index
    recently_active: bool
    inflight_messages: int
    inflight_bytes: int
    window_is_full: bool


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What a replica knows of itself and, while it leads, of the others."""

    id: ReplicaId
    term: Term
    vote: ReplicaId
    role: Role
    leader: ReplicaId
    commit: Index
    applied: Index
    last_index: Index
    conf_state: ConfState
    transferee: ReplicaId
    """Who is to take over, or 0."""
    progress: dict[ReplicaId, ProgressView]
    """By ascending id; empty unless this replica leads."""


def status_of(core: Core) -> Status:
    """Return a copy of what there is to know about `core`."""
    followers = core.tracker.progress if core.role is LEADER else {}
    return Status(
        id=core.id,
        term=core.term,
        vote=core.vote,
        role=core.role,
        leader=core.leader,
        commit=core.log.committed,
        applied=core.log.applied,
        last_index=core.log.last_index,
        conf_state=core.tracker.conf_state,
        transferee=core.transferee,
        progress={replica: view_of(progress) for replica, progress in followers.items()},
    )


def view_of(progress: Progress) -> ProgressView:
    """Return a copy of one member's progress."""
    return ProgressView(
        state=progress.state,
        match=progress.match,
        next_index=progress.next_index,
        is_learner=progress.is_learner,
        is_paused=progress.is_paused,
        pending_snapshot=progress.pending_snapshot,
        recently_active=progress.recently_active,
        inflight_messages=len(progress.window),
        inflight_bytes=progress.window.bytes,
        window_is_full=progress.window.is_full,
    )
