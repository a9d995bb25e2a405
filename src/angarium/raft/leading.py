"""What a leader does with the messages it receives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.ids import NO_REPLICA, Index, is_witness
from angarium.raft.core import LEADER
from angarium.raft.errors import Contradicted, ProposalDropped
from angarium.raft.messages import Entry, Message, MessageKind
from angarium.raft.progress import PROBE, REPLICATE, SNAPSHOT
from angarium.raft.read_index import acknowledge, release_postponed
from angarium.raft.reconfiguration import admitted
from angarium.raft.replication import (
    advance_commit,
    append,
    broadcast_append,
    broadcast_heartbeat,
    send_append,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import Buffer, ReplicaId
    from angarium.raft.core import Core
    from angarium.raft.messages import EntryKind
    from angarium.raft.progress import Progress


def tick(core: Core) -> None:
    """Count one tick: check the quorum every election timeout, beat every heartbeat."""
    core.heartbeat_elapsed += 1
    core.election_elapsed += 1
    if core.election_elapsed >= core.election_ticks:
        core.election_elapsed = 0
        # A leader behind a one-way link would go on forever: it takes proposals that nobody
        # acknowledges, and its heartbeats keep the others from electing somebody who can be heard
        # (thesis §6.2).
        if core.config.check_quorum:
            _check_quorum(core)
        # A transfer that took a whole election timeout has failed; we serve on.
        core.transferee = NO_REPLICA
    if core.role is LEADER and core.heartbeat_elapsed >= core.config.heartbeat_ticks:
        core.heartbeat_elapsed = 0
        # Nothing waits for longer than this, whatever becomes of whoever meant to end it.
        if core.held_from:
            send_held(core)
        broadcast_heartbeat(core)


def propose(core: Core, proposals: Sequence[tuple[EntryKind, Buffer]]) -> None:
    """Append and send `proposals`, all or none; raises `ProposalDropped`."""
    _check_open_for_proposals(core)
    entries, conf_index = admitted(core, proposals)
    append(core, entries)
    # Only once the entry is in the log. Had the append been refused at a limit, this index would
    # hold back every later change for nothing.
    core.pending_conf_index = max(core.pending_conf_index, conf_index)
    core.held_from = Index(0)
    broadcast_append(core)


def propose_data(core: Core, data: Sequence[Buffer], *, at_once: bool) -> None:
    """Do the same for plain `data`, which needs no looking into; send it only if `at_once`."""
    _check_open_for_proposals(core)
    term, index = core.term, core.log.last_index
    append(core, [Entry(term, Index(i), item) for i, item in enumerate(data, index + 1)])
    if at_once:
        core.held_from = Index(0)
        broadcast_append(core)
    elif not core.held_from:
        core.held_from = Index(index + 1)


def send_held(core: Core) -> None:
    """Send the entries that were proposed to be sent later."""
    core.held_from = Index(0)
    for replica, progress in core.tracker.progress.items():
        if replica != core.id:
            send_append(core, replica, progress, even_if_empty=False)


def on_proposal(core: Core, m: Message) -> None:
    """Append what a follower passed on."""
    if m.entries:
        propose(core, [(entry.kind, entry.data) for entry in m.entries])


def on_append_response(core: Core, m: Message) -> None:
    """Move a follower's progress, and commit what a majority has now."""
    sender = m.sender
    progress = core.tracker.progress.get(sender)
    # Removed in the meantime. What it has counts for nothing any more.
    if progress is None:
        return
    # Before `recently_active`: an answer that cannot be true must not keep a leader in office
    # either.
    _check_possible(core, m)
    progress.recently_active = True
    if m.reject:
        _step_back(core, m, progress)
        return
    state = progress.state
    # A probe's answer makes the stream flow even if it brings no news of the log itself.
    if not progress.acknowledge(m.index) and not (state is PROBE and progress.match == m.index):
        return
    if state is REPLICATE:
        # An acknowledgement covers everything before it (Log Matching, Raft §5.3), so the answers
        # to several appends may be lost as long as a later one arrives.
        progress.window.free_to(m.index)
    elif state is PROBE:
        progress.become_replicate()
    else:
        _snapshot_installed(core, progress)

    # Tell everybody at once and not with the next heartbeat: followers apply, and answer readers,
    # only up to the commit index they have heard of.
    if advance_commit(core):
        release_postponed(core)
        broadcast_append(core)
    # The append that it acknowledges here left before the commit index moved. Without this it
    # would hear of it only with the next one.
    elif sender != core.id and progress.can_bump_commit(core.log.committed):
        send_append(core, sender, progress)
    if sender != core.id:
        last_index = core.log.last_index
        # There may be room for several more appends in the window now.
        while progress.next_index <= last_index and send_append(
            core, sender, progress, even_if_empty=False
        ):
            pass
        # Not earlier: a successor whose log is shorter would be refused by every voter that has
        # more (thesis §3.10).
        if sender == core.transferee and progress.match == last_index:
            _send_timeout_now(core, sender)


def _snapshot_installed(core: Core, progress: Progress) -> None:
    """Go on with a follower that was sent a snapshot and has more of the log now."""
    if progress.match + 1 >= core.log.first_index():
        # Whatever snapshot it installed, and from whom: its log meets ours again.
        progress.become_probe()
        progress.become_replicate()
    elif progress.match >= progress.pending_snapshot:
        # It has what it was sent, and our log has forgotten meanwhile what comes behind that.
        # Nothing more will be heard of this snapshot, so the next one need not wait for a report.
        progress.become_probe()


def on_heartbeat_response(core: Core, m: Message) -> None:
    """Note that a follower lives; let an append through, and confirm reads."""
    progress = core.tracker.progress.get(m.sender)
    if progress is None:
        return
    progress.recently_active = True
    # This is what gets a follower going again whose probe, or the answer to it, was lost: messages
    # are not retransmitted otherwise. Planted as paused-follower-never-probed-again.
    progress.flow_paused = False
    # To one that is behind, or only guessed at. If the window is full, an empty append goes out:
    # should everything in flight be lost, its rejection will tell.
    if progress.match < core.log.last_index or progress.state is PROBE:
        send_append(core, m.sender, progress)
    if m.context:
        acknowledge(core, m)


def on_snapshot_status(core: Core, m: Message) -> None:
    """Probe again after a snapshot was delivered, or failed to be."""
    progress = core.tracker.progress.get(m.sender)
    if progress is None or progress.state is not SNAPSHOT:
        return
    if m.reject:
        # Otherwise `become_probe` would begin behind a snapshot that never arrived.
        progress.pending_snapshot = Index(0)
    progress.become_probe()
    # Delivered: its answer comes first. Failed: do not try again before the next heartbeat.
    progress.flow_paused = True


def on_unreachable(core: Core, m: Message) -> None:
    """Stop streaming to a follower whose connection failed: appends were most likely lost."""
    progress = core.tracker.progress.get(m.sender)
    if progress is not None and progress.state is REPLICATE:
        progress.become_probe()


def on_transfer(core: Core, m: Message) -> None:
    """Hand leadership over to `m.sender`: at once if it has our whole log, else when it has."""
    target = m.sender
    progress = core.tracker.progress.get(target)
    # A witness has nothing to serve.
    may_lead = progress is not None and not progress.is_learner and not is_witness(target)
    if progress is None or not may_lead or target in (core.transferee, core.id):
        if target == core.id:
            core.transferee = NO_REPLICA  # asking for ourselves calls an earlier transfer off
        return
    # Proposals are refused until the transfer ends, so it must end: `tick` gives it up when the
    # timeout is over.
    core.election_elapsed = 0  # it has one election timeout for that
    core.held_from = Index(0)  # and needs our whole log
    core.transferee = target
    core.is_transferee_called = False
    if progress.match == core.log.last_index:
        _send_timeout_now(core, target)
    else:
        send_append(core, target, progress)


def _check_possible(core: Core, m: Message) -> None:
    """Raise `Contradicted` for what nobody can have: more of our log than we have ourselves.

    It counts for nothing: not towards a commit, nor as a sign of life.
    """
    # A leader's log holds everything that it ever sent, so nobody can have more. Counting such an
    # answer would commit entries that are not there.
    if not m.reject and m.index > core.log.last_index:
        raise Contradicted(m.sender, acknowledged=m.index, last_index=core.log.last_index)


def _check_open_for_proposals(core: Core) -> None:
    if core.id not in core.tracker.progress:
        raise ProposalDropped("this leader has been removed from the group")
    if core.transferee != NO_REPLICA:
        raise ProposalDropped(f"leadership is being handed over to {core.transferee}")


def _check_quorum(core: Core) -> None:
    """Step down if a majority has been silent; then mark everybody silent until heard of."""
    # The term stays. Nobody else may have been elected, and raising it would only disturb whoever
    # is.
    if not core.tracker.quorum_is_active():
        core.become_follower(core.term, NO_REPLICA)
    for replica, progress in core.tracker.progress.items():
        if replica != core.id:
            progress.recently_active = False


def _step_back(core: Core, m: Message, progress: Progress) -> None:
    """Try further back after a follower rejected an append.

    It has told where its log may meet ours. Where our terms rule that out, too, skip on: one
    round trip per term rather than one per entry (paper, end of section 5.3).
    """
    hint = m.reject_hint
    # The follower has told the term at its hint. Our entries of a later term cannot be in its log,
    # since terms never fall along a log.
    if m.log_term > 0:
        hint, _ = core.log.guess_match(hint, m.log_term)
    if progress.reject(m.index, hint):
        if progress.state is REPLICATE:
            progress.become_probe()
        send_append(core, m.sender, progress)


def _send_timeout_now(core: Core, to: ReplicaId) -> None:
    # It has another one to be elected. Had catching up taken most of the first, we would go on with
    # proposals while it campaigns: nobody could vote for a log that is shorter, nor would follow us
    # in a term that is over (seed 719416, 290 ms there and back). Only once, or it would never end.
    if not core.is_transferee_called:
        core.is_transferee_called = True
        core.election_elapsed = 0
    core.messages.append(
        Message(kind=MessageKind.TIMEOUT_NOW, to=to, sender=core.id, term=core.term)
    )
