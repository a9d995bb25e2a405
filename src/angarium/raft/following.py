"""What a follower does with its leader's messages, and a candidate with those of a rival's.

A candidate that hears from the leader of its own term has lost and follows; everything else is
the same for both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.ids import NO_REPLICA
from angarium.raft.core import FOLLOWER
from angarium.raft.election import on_campaign_now
from angarium.raft.errors import ProposalDropped
from angarium.raft.membership import restored
from angarium.raft.messages import Message, MessageKind
from angarium.raft.reconfiguration import switch_to
from angarium.raft.tracker import Tracker

if TYPE_CHECKING:
    from angarium.raft.core import Core
    from angarium.raft.messages import Snapshot

_APPEND_RESPONSE = MessageKind.APPEND_RESPONSE
_HEARTBEAT_RESPONSE = MessageKind.HEARTBEAT_RESPONSE
_CAMPAIGN_NOW = Message(kind=MessageKind.HUP)


def tick(core: Core) -> None:
    """Count one tick; campaign when nobody has led for too long."""
    core.election_elapsed += 1
    # `patience` above 1 lets other replicas go first while this node's clock is in doubt. It
    # delays an election and never prevents one.
    if core.election_elapsed >= core.election_timeout * core.patience and core.is_promotable:
        core.election_elapsed = 0
        on_campaign_now(core, _CAMPAIGN_NOW)


def on_append(core: Core, m: Message) -> None:
    """Take the leader's entries, or say where our log may meet its own."""
    # First of all: an append proves that its sender leads this term, whether or not it fits our
    # log.
    _follow(core, m)
    log = core.log
    # Before anything is changed. A leader that has another entry where ours is committed breaks
    # Leader Completeness (Raft §5.4.3); the replica must stop and not cut what it has applied.
    log.check_against(m.entries, prev_index=m.index, prev_term=m.log_term)
    # A repeated or overtaken append. The entries below our commit index cannot differ, so there is
    # nothing to take. Those above it come again.
    if m.index < log.committed:
        # Old news. Acknowledge no more than was compared, though all we committed is the leader's.
        _answer(core, m, acknowledged=min(m.index + len(m.entries), log.committed))
    # Acknowledge what this message covers and no more. Our log may go on behind it with entries of
    # an earlier term, which the leader does not have: naming our last index would commit them.
    elif log.accept(m.entries, prev_index=m.index, prev_term=m.log_term, commit=m.commit):
        _answer(core, m, acknowledged=m.index + len(m.entries))
    else:
        # Not merely "no": where our log ends, and with which term, lets the leader skip a whole
        # term per round trip (end of Raft §5.3).
        hint, hint_term = log.guess_match(min(m.index, log.last_index), m.log_term)
        core.after_append.append(
            Message(
                kind=_APPEND_RESPONSE,
                to=m.sender,
                sender=core.id,
                term=core.term,
                index=m.index,
                log_term=hint_term,
                reject=True,
                reject_hint=hint,
            )
        )


def on_heartbeat(core: Core, m: Message) -> None:
    """Note that the leader lives, and how far it says we may commit."""
    _follow(core, m)
    # The leader sends the smaller of its commit index and what we acknowledged, so we have it,
    # with the same terms. If we have not, `commit_to` raises: our disk lost what we acknowledged.
    core.log.commit_to(m.commit)
    # At once and not behind the disk: the echo says that we heard this leader in its term, and
    # promises nothing that has to survive a crash.
    core.messages.append(
        Message(
            kind=_HEARTBEAT_RESPONSE,
            to=m.sender,
            sender=core.id,
            term=core.term,
            context=m.context,
        )
    )


def on_snapshot(core: Core, m: Message) -> None:
    """Replace our log by the leader's snapshot, if it is ahead of what we have committed."""
    _follow(core, m)
    if m.snapshot is not None and _restore(core, m.snapshot):
        # `_answer` goes through `after_append`, so the leader hears of the snapshot only when it
        # is installed.
        _answer(core, m, acknowledged=core.log.last_index)
    else:
        # Not installed, because we have it, or it is not for us. What we have committed is the
        # leader's as well: that much is always true.
        _answer(core, m, acknowledged=core.log.committed)


def on_proposal(core: Core, m: Message) -> None:
    """Pass a proposal on to the leader; raises `ProposalDropped` where that cannot be."""
    # A definite refusal is worth more than a guess: the proposal is in nobody's log through this
    # call, so that the caller may repeat it elsewhere without storing it twice.
    if core.leader == NO_REPLICA:
        raise ProposalDropped(f"no leader is known in term {core.term}")
    if not core.config.forward_proposals:
        raise ProposalDropped(f"replica {core.leader} leads, and proposals are not passed on")
    core.messages.append(
        Message(
            kind=MessageKind.PROPOSE,
            to=core.leader,
            sender=m.sender or core.id,
            entries=m.entries,
        )
    )


def on_proposal_without_leader(core: Core, _: Message) -> None:
    """Refuse a proposal, as a candidate."""
    raise ProposalDropped(f"no leader is known in term {core.term}")


def forward_transfer(core: Core, m: Message) -> None:
    """Pass the wish for another leader on to the present one."""
    if core.leader != NO_REPLICA:
        core.messages.append(
            Message(
                kind=MessageKind.TRANSFER_LEADER,
                to=core.leader,
                sender=m.sender,
                term=core.term,
            )
        )


def forget_leader(core: Core, _: Message) -> None:
    """Stop believing in the leader, so that a candidate can have our vote before a timeout.

    Not with lease reads: the leader relies on our belief.
    """
    if not core.config.lease_reads:
        core.leader = NO_REPLICA


def hasten(core: Core, ticks: int) -> None:
    """Let the wait for a campaign end within `ticks`, where nobody is known to lead."""
    # Only the wait is cut short: a campaign still begins with a pre-vote, which everybody refuses
    # who hears the leader. And whoever is to let others go first (`patience`) goes on doing so.
    if core.leader == NO_REPLICA and core.patience == 1:
        core.election_elapsed = max(core.election_elapsed, core.election_timeout - ticks)


def _follow(core: Core, m: Message) -> None:
    if core.role is FOLLOWER:
        # The leader of this term lives; the timeout of Raft §5.2 starts anew.
        core.election_elapsed = 0
        core.leader = m.sender
    else:
        # A candidate, or pre-candidate, that hears from the leader of its own term has lost (Raft
        # §5.2).
        core.become_follower(m.term, m.sender)


def _answer(core: Core, m: Message, *, acknowledged: int) -> None:
    core.after_append.append(
        Message(
            kind=_APPEND_RESPONSE,
            to=m.sender,
            sender=core.id,
            term=core.term,
            index=acknowledged,  # type: ignore[arg-type]
        )
    )


def _restore(core: Core, snapshot: Snapshot) -> bool:
    log = core.log
    if snapshot.index <= log.committed:
        # An old snapshot is ignored: installing it would take the machine back. Only its last term
        # is compared, which tells whether the leader's history is ours.
        log.check_against((), prev_index=snapshot.index, prev_term=snapshot.term)
        return False
    state = snapshot.conf_state
    if core.id not in (*state.voters, *state.learners, *state.voters_outgoing):
        return False  # meant for somebody else: we would not even be in the group
    if log.term_at(snapshot.index) == snapshot.term:
        # We have everything it stands for; keep the log, with what follows in it.
        log.commit_to(snapshot.index)
        return False
    # Everything we have is dropped, also what lies behind the snapshot's index: without the same
    # term at that index our entries belong to another history (Raft §7).
    log.restore(snapshot)
    core.tracker = Tracker(
        inflight_messages_max=core.config.inflight_messages_max,
        inflight_bytes_max=core.config.inflight_bytes_max,
    )
    # The membership comes with the snapshot: the entries that led to it are never going to be
    # applied here.
    switch_to(core, restored(state))
    return True
