"""How a leader's log reaches the others, and when its entries are committed.

The only rules here that safety rests on: a leader never changes its own log but by appending
(paper, section 5.3), and it counts replicas only for entries of its own term (section 5.4.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.ids import Index, is_witness
from angarium.raft.errors import Compacted, SnapshotTemporarilyUnavailable, UncommittedLimit
from angarium.raft.forgetting import floor, may_pass_over
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
    # Bounds what a leader takes in while nobody acknowledges. One proposal is taken whatever its
    # size when nothing waits, so that no legal entry is refused for ever.
    size = data_bytes(entries)
    total = core.uncommitted_bytes + size
    if size and core.uncommitted_bytes and total > core.config.uncommitted_bytes_max:
        raise UncommittedLimit(f"{core.uncommitted_bytes} bytes wait to be committed")
    core.uncommitted_bytes = total
    # Append-only (Raft §5.3): a leader never replaces or removes entries of its own log.
    core.log.append(entries)
    # Our own acknowledgement counts like everybody's: once the entries are on disk. The leader
    # writes while the followers do (thesis §10.2.1) and may commit before its own disk is done.
    # Counting itself at once would acknowledge what only a minority has on disk. Planted as
    # leader-counts-itself-before-its-fsync.
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
    # Never an entry of an earlier term by counting: a majority may have it, and a later leader may
    # still replace it (Raft §5.4.2, figure 8). It is committed with the first entry of our own
    # term behind it. Planted as old-term-committed-by-counting.
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
    # A probe or a snapshot is under way. Sending more before its answer could only repeat a guess.
    if progress.is_paused:
        return False
    log = core.log
    prev_index = progress.next_index - 1
    # The consistency check of Raft §5.3: the follower takes the entries only if it has this one.
    # Where the term is not known any more the entry was compacted, and only a snapshot helps.
    prev_term = log.term_at(prev_index)  # type: ignore[arg-type]
    if prev_term is None:
        return _send_snapshot(core, to, progress)

    last_index = core.held_from - 1 if core.held_from else log.last_index
    entries: tuple[Entry, ...] = ()
    size = 0
    # With a full window only empty appends go out. If all that fills it was lost, one of these is
    # what makes the follower say so.
    if last_index > prev_index and not (progress.state is REPLICATE and progress.window.is_full):
        try:
            entries, size = log.batch(
                progress.next_index,
                last_index,  # type: ignore[arg-type]
                core.config.message_bytes_max,
            )
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
    # Optimistic, before any answer: in the replicate state the next append goes on behind this one
    # (thesis §10.2.2). A rejection takes `next_index` back to what is known to match.
    progress.sent_entries(len(entries), size)
    progress.sent_commit = log.committed
    return True


def broadcast_heartbeat(core: Core) -> None:
    """Tell everybody that we still lead, and ask to confirm the reads that wait."""
    context = core.reads.heartbeat_context()
    committed = core.log.committed
    forgotten = floor(core) if core.tracker.has_witness else Index(0)
    core.forgotten_index = max(core.forgotten_index, forgotten)
    for replica, progress in core.tracker.progress.items():
        if replica == core.id:
            continue
        # A follower must not commit what it may not have: never beyond what is known to match. A
        # heartbeat has no entry to compare, so the follower cannot check whether its log is ours
        # up to the commit index. It might commit entries of a deposed leader. Planted on the other
        # side as commit-above-the-log-believed.
        commit = min(progress.match, committed)
        core.messages.append(
            Message(
                kind=_HEARTBEAT,
                to=replica,
                sender=core.id,
                term=core.term,
                index=forgotten if is_witness(replica) else Index(0),
                commit=commit,
                context=context,
            )
        )
        progress.sent_commit = commit


def _send_snapshot(core: Core, to: ReplicaId, progress: Progress) -> bool:
    # A snapshot is expensive, and a member that is silent would hardly receive it.
    if not progress.recently_active:
        return False
    try:
        snapshot = core.log.snapshot()
    except SnapshotTemporarilyUnavailable:
        return False
    assert snapshot.index > 0, "a compacted log has a snapshot"
    # Nothing else is sent until it reports: appends from behind the snapshot would all be
    # rejected.
    progress.become_snapshot(snapshot.index)
    # A witness gives up entries for it, and takes it only up to here.
    passed_over = Index(0)
    if is_witness(to) and may_pass_over(core, to, snapshot.index):
        passed_over = snapshot.index
        core.forgotten_index = max(core.forgotten_index, passed_over)
    core.messages.append(
        Message(
            kind=_SNAPSHOT,
            to=to,
            sender=core.id,
            term=core.term,
            index=passed_over,
            snapshot=snapshot,
        )
    )
    return True
