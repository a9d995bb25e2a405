"""How a leader's log reaches the others, and when its entries are committed.

The only rules here that safety rests on: a leader never changes its own log but by appending
(paper, section 5.3), and it counts replicas only for entries of its own term (section 5.4.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.raft.errors import Compacted, SnapshotTemporarilyUnavailable, UncommittedLimit
from angarium.raft.log import data_bytes
from angarium.raft.messages import Message, MessageKind
from angarium.raft.progress import REPLICATE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import ReplicaId
    from angarium.raft.core import Core
    from angarium.raft.messages import Entry
    from angarium.raft.progress import Progress

_APPEND = MessageKind.APPEND
_APPEND_RESPONSE = MessageKind.APPEND_RESPONSE
_HEARTBEAT = MessageKind.HEARTBEAT
_SNAPSHOT = MessageKind.SNAPSHOT


def append(core: Core, entries: Sequence[Entry]) -> None:
    """Append `entries` of our own term; raises `UncommittedLimit` and appends nothing at it.

    Entries without data are never refused: a new leader's first entry and the step out of a
    joint configuration must not wait.
    """
    size = data_bytes(entries)
    total = core.uncommitted_bytes + size
    if size and core.uncommitted_bytes and total > core.config.uncommitted_bytes_max:
        raise UncommittedLimit(f"{core.uncommitted_bytes} bytes wait to be committed")
    core.uncommitted_bytes = total
    core.log.append(entries)
    # Our own acknowledgement counts like everybody's: once the entries are on disk.
    core.after_append.append(
        Message(
            kind=_APPEND_RESPONSE,
            to=core.id,
            sender=core.id,
            term=core.term,
            index=core.log.last_index,
        )
    )


def advance_commit(core: Core) -> bool:
    """Commit what a majority has, if that is of our term; return whether there was news."""
    log = core.log
    index = core.tracker.committed()
    if index <= log.committed or log.term_at(index) != core.term:
        return False
    log.commit_to(index)
    return True


def broadcast_append(core: Core) -> None:
    """Send everybody what they lack, and the commit index."""
    own_id = core.id
    for replica, progress in core.tracker.progress.items():
        if replica != own_id:
            send_append(core, replica, progress)


def send_append(
    core: Core, to: ReplicaId, progress: Progress, *, even_if_empty: bool = True
) -> bool:
    """Send the next entries to a follower, or a snapshot if they are gone.

    Returns whether anything was sent. An append without entries tells the commit index, and
    probes; `even_if_empty=False` suppresses it.
    """
    if progress.is_paused:
        return False
    log = core.log
    prev_index = progress.next_index - 1
    prev_term = log.term_at(prev_index)  # type: ignore[arg-type]
    if prev_term is None:
        return _send_snapshot(core, to, progress)

    entries: tuple[Entry, ...] = ()
    size = 0
    # With a full window only empty appends go out. If all that fills it was lost, one of these
    # is what makes the follower say so.
    if log.last_index > prev_index and not (
        progress.state is REPLICATE and progress.window.is_full
    ):
        try:
            entries, size = log.batch_from(progress.next_index, core.config.message_bytes_max)
        except Compacted:
            return _send_snapshot(core, to, progress)
    if not entries and not even_if_empty:
        return False

    core.messages.append(
        Message(
            kind=_APPEND,
            to=to,
            sender=core.id,
            term=core.term,
            log_term=prev_term,
            index=prev_index,  # type: ignore[arg-type]
            entries=entries,
            commit=log.committed,
        )
    )
    progress.sent_entries(len(entries), size)
    progress.sent_commit = log.committed
    return True


def broadcast_heartbeat(core: Core) -> None:
    """Tell everybody that we still lead, and ask to confirm the reads that wait."""
    context = core.reads.heartbeat_context()
    committed = core.log.committed
    for replica, progress in core.tracker.progress.items():
        if replica == core.id:
            continue
        # A follower must not commit what it may not have: never beyond what is known to match.
        commit = min(progress.match, committed)
        core.messages.append(
            Message(
                kind=_HEARTBEAT,
                to=replica,
                sender=core.id,
                term=core.term,
                commit=commit,
                context=context,
            )
        )
        progress.sent_commit = commit


def _send_snapshot(core: Core, to: ReplicaId, progress: Progress) -> bool:
    # A snapshot is dear; who was not heard of lately would hardly receive it.
    if not progress.recently_active:
        return False
    try:
        snapshot = core.log.snapshot()
    except SnapshotTemporarilyUnavailable:
        return False
    assert snapshot.index > 0, "a compacted log has a snapshot"
    progress.become_snapshot(snapshot.index)
    core.messages.append(
        Message(kind=_SNAPSHOT, to=to, sender=core.id, term=core.term, snapshot=snapshot)
    )
    return True
