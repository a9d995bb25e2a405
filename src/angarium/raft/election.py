"""How a leader comes to be: campaigning, voting, counting.

At most one leader per term, because each voter grants one vote per term and a majority is needed
(paper, section 5.2); and only one whose log holds everything committed, because a voter refuses a
candidate whose log ends earlier than its own (section 5.4.1).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from angarium.ids import NO_REPLICA, Index, Term
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
    start_campaign(core, Campaign.TRANSFER)


def start_campaign(core: Core, campaign: Campaign) -> None:
    """Campaign, unless we lead, do not vote, or may not know who votes."""
    if core.role is LEADER or not core.is_promotable or _has_unapplied_conf_change(core):
        return
    _ask_for_votes(core, campaign)


def on_vote_request(core: Core, m: Message) -> None:
    """Grant or refuse a vote, or a pre-vote.

    A learner votes as well: it may have been promoted without knowing it yet, and its vote may
    be the one that is needed. Who asks it believes it to be a voter.
    """
    is_pre_vote = m.kind is MessageKind.PRE_VOTE
    may_vote = (
        core.vote == m.sender
        or (core.vote == NO_REPLICA and core.leader == NO_REPLICA)
        or (is_pre_vote and m.term > core.term)
    )
    granted = may_vote and core.log.is_up_to_date(last_index=m.index, last_term=m.log_term)
    if granted and not is_pre_vote:
        core.election_elapsed = 0
        core.vote = m.sender
    core.after_append.append(
        Message(
            kind=MessageKind.PRE_VOTE_RESPONSE if is_pre_vote else MessageKind.VOTE_RESPONSE,
            to=m.sender,
            sender=core.id,
            # A granted pre-vote answers in the term it was asked for, which is ahead of ours; in
            # our own term the candidate would take the answer for an old one.
            term=m.term if granted else core.term,
            reject=not granted,
        )
    )


def on_vote_response(core: Core, m: Message) -> None:
    """Count a vote, as a candidate or pre-candidate."""
    awaited = (
        MessageKind.PRE_VOTE_RESPONSE if core.role is PRE_CANDIDATE else MessageKind.VOTE_RESPONSE
    )
    if m.kind is not awaited:
        return  # an answer to our pre-vote that arrives when we are past it
    result = core.tracker.record_vote(m.sender, granted=not m.reject)
    if result is VoteResult.LOST:
        core.become_follower(core.term, NO_REPLICA)
    elif result is VoteResult.WON:
        if core.role is PRE_CANDIDATE:
            _ask_for_votes(core, Campaign.ELECTION)
        else:
            _take_office(core)


def _ask_for_votes(core: Core, campaign: Campaign) -> None:
    if campaign is Campaign.PRE_ELECTION:
        core.become_pre_candidate()
        term = Term(core.term + 1)  # the term we would campaign in
        request, response = MessageKind.PRE_VOTE, MessageKind.PRE_VOTE_RESPONSE
    else:
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
    index = Index(log.applied + 1)
    while index <= log.committed:
        page = log.entries(index, Index(log.committed + 1), core.config.applying_bytes_max)
        if any(entry.kind is not EntryKind.NORMAL for entry in page):
            return True
        index = Index(page[-1].index + 1)
    return False
