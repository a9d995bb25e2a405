"""What a driver has to do next for a replica.

In asynchronous mode the driver sends `messages` and otherwise follows the two local ones among
them: `STORAGE_APPEND` (write its hard state, entries and snapshot, make them durable, then deliver
its `responses`) and `STORAGE_APPLY` (apply its entries, then deliver its `responses`). Messages to
the same thread are handled in order, and none of them is lost; the two threads are independent.

In synchronous mode it writes `hard_state`, `entries` and `snapshot`, syncs if `must_sync`, then
sends `messages`, applies `committed`, and calls `advance`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from angarium.ids import Index, ReplicaId, Term
from angarium.raft.core import Role
from angarium.raft.messages import (
    APPEND_THREAD,
    APPLY_THREAD,
    Entry,
    HardState,
    Message,
    MessageKind,
    Snapshot,
)
from angarium.raft.read_only import ReadState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.raft.core import Core

_STORAGE_APPEND = MessageKind.STORAGE_APPEND
_STORAGE_APPEND_RESPONSE = MessageKind.STORAGE_APPEND_RESPONSE
_STORAGE_APPLY = MessageKind.STORAGE_APPLY
_STORAGE_APPLY_RESPONSE = MessageKind.STORAGE_APPLY_RESPONSE
_UNCHANGED = HardState()


class SoftState(msgspec.Struct, frozen=True, gc=False):
    """What is worth knowing but need not survive a restart."""

    leader: ReplicaId
    """0 if none is known."""
    role: Role


class Ready(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything that has come up since the last Ready. None and empty mean: no change."""

    soft_state: SoftState | None = None
    hard_state: HardState | None = None
    entries: tuple[Entry, ...] = ()
    """To be written."""
    snapshot: Snapshot | None = None
    """To be installed, in place of the whole log."""
    committed: tuple[Entry, ...] = ()
    """To be applied."""
    messages: tuple[Message, ...] = ()
    """To be sent; in asynchronous mode the local ones come last."""
    read_states: tuple[ReadState, ...] = ()
    """Reads that may be answered once the machine has applied their index."""
    must_sync: bool = False
    """Whether what is to be written must be durable before anything is sent."""


def append_task(
    core: Core,
    entries: tuple[Entry, ...],
    hard_state: HardState | None,
    snapshot: Snapshot | None,
    responses: Sequence[Message],
) -> Message:
    """Return the message that tells the append thread what to write, and whom to tell then."""
    changed = hard_state or _UNCHANGED
    return Message(
        kind=_STORAGE_APPEND,
        to=APPEND_THREAD,
        sender=core.id,
        term=changed.term,
        vote=changed.vote,
        commit=changed.commit,
        entries=entries,
        snapshot=snapshot,
        responses=tuple(responses),
    )


def written(core: Core, snapshot: Snapshot | None) -> Message:
    """Return the report that everything up to the end of the log, and `snapshot`, is written.

    It names the end of the log even if the end was handed out with an earlier Ready: the report
    for that may have been disbelieved because the term changed in between, and without another
    one the entries would be held in memory until something is appended again. The term tells
    whether the report is still true when it arrives: entries of the log may be replaced only in
    a newer term, and while such a write is under way the storage has not caught up with us.
    """
    has_entries = core.log.has_unwritten
    return Message(
        kind=_STORAGE_APPEND_RESPONSE,
        to=core.id,
        sender=APPEND_THREAD,
        term=core.term,
        # The task is written in order behind all earlier ones, so when it is done everything up to
        # the end of the log is on disk, whichever Ready handed it out.
        index=core.log.last_index if has_entries else Index(0),
        log_term=core.log.last_term if has_entries else Term(0),
        snapshot=snapshot,
    )


def apply_task(core: Core, committed: tuple[Entry, ...]) -> Message:
    """Return the message that tells the apply thread what to apply."""
    return Message(
        kind=_STORAGE_APPLY,
        to=APPLY_THREAD,
        sender=core.id,
        entries=committed,
        responses=(applied(core, committed),),
    )


def applied(core: Core, committed: tuple[Entry, ...]) -> Message:
    """Return the report that `committed` was applied. True in any term, so it carries none."""
    return Message(
        kind=_STORAGE_APPLY_RESPONSE,
        to=core.id,
        sender=APPLY_THREAD,
        entries=committed,
    )
