"""How a leader comes to be: campaigning, voting, counting.

At most one leader per term, because each voter grants one vote per term and a majority is needed
(paper, section 5.2); and only one whose log holds everything committed, because a voter refuses a
candidate whose log ends earlier than its own (section 5.4.1).

Whoever answers a candidate also says how far it knows the log to be committed. Else those who
heard that a change of membership is done and those who did not could keep each other from leading.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from angarium.ids import NO_REPLICA, Index, Term, is_witness
from angarium.raft.core import LEADER, PRE_CANDIDATE
from angarium.raft.messages import Entry, EntryKind, Message, MessageKind
from angarium.raft.quorum import VoteResult
from angarium.raft.replication import append, broadcast_append

if TYPE_CHECKING:
    from angarium.raft.core import Core

TRANSFER_CONTEXT: Final = b"transfer"
"""Marks votes asked for in a leadership transfer: they override a voter's lease to the old
leader, who has agreed to go."""


class Campaign(Enum):
    """Why, and at which stage, votes are asked for."""

    PRE_ELECTION = "pre-election"
    ELECTION = "election"
    TRANSFER = "transfer"
    """The leader asked us to take over; there is nobody to disturb, so no pre-vote."""


def on_campaign_now(core: Core, _: Message) -> None:
    """Campaign because time is up or the driver says so."""
    start_campaign(core, Campaign.PRE_ELECTION if core.config.pre_vote else Campaign.ELECTION)


def on_timeout_now(core: Core, _: Message) -> None:
    """Campaign because the leader hands over to us (thesis, section 3.10)."""
    if not is_witness(core.id):  # which leads only where nobody else can
        start_campaign(core, Campaign.TRANSFER)


def start_campaign(core: Core, campaign: Campaign) -> None:
    """Campaign, unless we lead, do not vote, or may not know who votes."""
    # A leader that campaigned would depose itself. A replica that does not vote cannot win, and
    # one that has not applied a committed change of membership does not know which votes it needs.
    if core.role is LEADER or not core.is_promotable or _has_unapplied_conf_change(core):
        return
    _ask_for_votes(core, campaign)


def on_vote_request(core: Core, m: Message) -> None:
    """Grant or refuse a vote, or a pre-vote.

    A learner votes as well: it may have been promoted without knowing it yet, and its vote may
    be the one that is needed. The candidate that asks believes it to be a voter.
    """
    is_pre_vote = m.kind is MessageKind.PRE_VOTE
    may_vote = (
        core.vote == m.sender
        # Not if we know the leader of this term: a majority has voted then, and no other candidate
        # can win.
        or (core.vote == NO_REPLICA and core.leader == NO_REPLICA)
        # A pre-vote binds nobody, so many candidates may have ours. It is worth something only for
        # a term that is still to come.
        or (is_pre_vote and m.term > core.term)
    )
    # The restriction that keeps committed entries (Raft §5.4.1): every committed entry is on a
    # majority, a winner needs a vote from that majority, and that voter refuses a log which ends
    # before its own. Planted as up-to-date-check-skipped.
    granted = may_vote and core.log.is_up_to_date(last_index=m.index, last_term=m.log_term)
    if granted and not is_pre_vote:
        # Who votes waits a full timeout for the winner to show up. A refusal does not reset the
        # clock, or a candidate that cannot win could keep the others from campaigning (Raft §5.2).
        core.election_elapsed = 0
        core.vote = m.sender
    committed, committed_term = _known_commit(core)
    # The vote leaves only when it is on disk: a voter that crashed and forgot it could vote twice
    # in one term. Planted as vote-not-persisted.
    core.after_append.append(
        Message(
            kind=MessageKind.PRE_VOTE_RESPONSE if is_pre_vote else MessageKind.VOTE_RESPONSE,
            to=m.sender,
            sender=core.id,
            # A granted pre-vote answers in the term it was asked for, which is ahead of ours; in
            # our own term the candidate would take the answer for an old one.
            term=m.term if granted else core.term,
            reject=not granted,
            index=committed,
            log_term=committed_term,
        )
    )


def on_vote_response(core: Core, m: Message) -> None:
    """Count a vote, as a candidate or pre-candidate."""
    known = core.log.committed
    hear_commit(core, m)
    if core.log.committed > known and _has_unapplied_conf_change(core):
        # We have asked the wrong ones, perhaps; again when we know whom to ask.
        core.become_follower(core.term, NO_REPLICA)
        return
    awaited = (
        MessageKind.PRE_VOTE_RESPONSE if core.role is PRE_CANDIDATE else MessageKind.VOTE_RESPONSE
    )
    if m.kind is not awaited:
        return  # an answer to our pre-vote that arrives when we are past it
    result = core.tracker.record_vote(m.sender, granted=not m.reject)
    # The term stays as it is. A pre-candidate has not entered a new one, and a candidate that lost
    # waits in the term of the winner, or of nobody.
    if result is VoteResult.LOST:
        core.become_follower(core.term, NO_REPLICA)
    elif result is VoteResult.WON:
        if core.role is PRE_CANDIDATE:
            _ask_for_votes(core, Campaign.ELECTION)
        else:
            _take_office(core)


def hear_commit(core: Core, m: Message) -> None:
    """Commit what a voter knows to be committed, as far as our log is its log.

    A leader that is not in the new membership steps down when that is committed, and may be the
    only one who knows. It does not campaign any more; the others, who still need its vote, lack
    the end of its log and are refused. Its refusal tells them that its vote is not needed: without
    that nobody would ever lead again (seed 709038).
    """
    log = core.log
    # The same term at the same index is the same log up to there (Raft §5.3).
    if m.index > log.committed and log.term_at(m.index) == m.log_term:
        log.commit_to(m.index)


def _known_commit(core: Core) -> tuple[Index, Term]:
    """Return the last entry that we know to be committed, by its index and term."""
    if not core.config.votes_tell_commit:
        return Index(0), Term(0)
    index = core.log.committed
    return index, core.log.term_at(index) or Term(0)


def _ask_for_votes(core: Core, campaign: Campaign) -> None:
    if campaign is Campaign.PRE_ELECTION:
        core.become_pre_candidate()
        term = Term(core.term + 1)  # the term we would campaign in
        request, response = MessageKind.PRE_VOTE, MessageKind.PRE_VOTE_RESPONSE
    else:
        # Raises the term and votes for ourselves. In a transfer this happens without a pre-vote,
        # since the leader has agreed and voters in its lease would refuse (thesis §3.10).
        core.become_candidate()
        term = core.term
        request, response = MessageKind.VOTE, MessageKind.VOTE_RESPONSE
    context = TRANSFER_CONTEXT if campaign is Campaign.TRANSFER else b""
    for voter in core.tracker.voters:
        if voter == core.id:
            # Our own vote counts once it is on disk, like everybody's.
            core.after_append.append(Message(kind=response, to=voter, sender=core.id, term=term))
            continue
        core.messages.append(
            Message(
                kind=request,
                to=voter,
                sender=core.id,
                term=term,
                index=core.log.last_index,
                log_term=core.log.last_term,
                context=context,
            )
        )


def _take_office(core: Core) -> None:
    # Of the entries that we inherited none may be committed by counting replicas, even if every
    # replica has them (Raft §5.4.2, figure 8). They are committed together with this one.
    core.become_leader()
    # An entry of our own term: committing it commits everything before it, too (paper, section
    # 8), and nothing is served before that.
    append(core, (Entry(term=core.term, index=Index(core.log.last_index + 1)),))
    broadcast_append(core)


def _has_unapplied_conf_change(core: Core) -> bool:
    """Tell whether a committed membership change waits to be applied.

    Campaigning without it could win with votes of a configuration that is no longer in force.
    """
    log = core.log
    # Page by page: the stretch between applied and committed may be longer than memory.
    index = Index(log.applied + 1)
    while index <= log.committed:
        page = log.entries(index, Index(log.committed + 1), core.config.applying_bytes_max)
        if any(entry.kind is not EntryKind.NORMAL for entry in page):
            return True
        index = Index(page[-1].index + 1)
    return False
