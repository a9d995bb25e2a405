"""Which message meets which rule: first its term is judged, then the role decides.

A newer term always wins (paper, section 5.1), but for two messages that speak of a term nobody
has entered yet, the pre-vote and its grant. An older term is ignored, except where silence would
leave its sender stuck.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from angarium.ids import NO_REPLICA
from angarium.raft import election, following, leading, persistence, read_index
from angarium.raft.core import LEADER, Core, Role
from angarium.raft.messages import Message, MessageKind

if TYPE_CHECKING:
    from collections.abc import Mapping

Handler: TypeAlias = Callable[[Core, Message], None]


def step(core: Core, m: Message) -> None:
    """Act upon one message, from a peer or from ourselves."""
    term = m.term
    # Term 0: a local message, or one that is passed on and speaks for no term.
    if term and term != core.term:
        # The sender does not know that its term is over. Nothing it says can be acted upon: a
        # deposed leader must not commit, a late vote must not count (Raft §5.1).
        if term < core.term:
            _answer_older_term(core, m)
            return
        if not _enter_newer_term(core, m):
            return
    # A table and not a chain of comparisons: a node with thousands of groups comes by here for
    # every message.
    _HANDLERS[core.role][m.kind](core, m)


def tick(core: Core) -> None:
    if core.role is LEADER:
        leading.tick(core)
    else:
        following.tick(core)


def _enter_newer_term(core: Core, m: Message) -> bool:
    """Follow in the newer term of `m`; return False if `m` is to be ignored."""
    kind = m.kind
    if kind in (MessageKind.VOTE, MessageKind.PRE_VOTE):
        # Within an election timeout of hearing from a leader, candidates are not listened to
        # (paper, section 6), unless that leader itself has sent them. Without this a replica that
        # was removed and does not know it, or one behind a one-way link, deposes a working leader
        # again and again (thesis §4.2.3). Leases rest on it too: while a majority is in this state
        # nobody else can be elected (thesis §6.4.1).
        in_lease = (
            core.config.check_quorum
            and core.leader != NO_REPLICA
            and core.election_elapsed < core.election_ticks
        )
        if in_lease and m.context != election.TRANSFER_CONTEXT:
            return False
    if kind is MessageKind.PRE_VOTE:
        # Our own term stays. Entering the term of a pre-vote would let the mere question depose
        # the leader, which is what pre-votes are there to prevent.
        return True  # a question about a term that may never begin
    if kind is MessageKind.PRE_VOTE_RESPONSE and not m.reject:
        return True  # a grant comes in the term we asked for; we enter it when we have won
    from_leader = kind in (MessageKind.APPEND, MessageKind.HEARTBEAT, MessageKind.SNAPSHOT)
    # Only a leader sends these three kinds, so the sender leads that term. Any other message of a
    # newer term proves that the term exists, and not who leads it.
    core.become_follower(m.term, m.sender if from_leader else NO_REPLICA)
    return True


def _answer_older_term(core: Core, m: Message) -> None:
    kind = m.kind
    if kind in (MessageKind.HEARTBEAT, MessageKind.APPEND):
        if core.config.check_quorum or core.config.pre_vote:
            # We advanced our term in vain, and now neither win nor hear the leader, while the
            # others ignore our candidacy. Our newer term makes it step down and frees us. Through
            # `after_append`, like every answer that carries our term: the term is on stable
            # storage before others hear of it (Raft, figure 2).
            core.after_append.append(
                Message(
                    kind=MessageKind.APPEND_RESPONSE, to=m.sender, sender=core.id, term=core.term
                )
            )
    elif kind is MessageKind.PRE_VOTE:
        # A candidate behind our term must hear of it, or with a shorter log in a newer term on the
        # other side the two could refuse each other for ever.
        core.after_append.append(
            Message(
                kind=MessageKind.PRE_VOTE_RESPONSE,
                to=m.sender,
                sender=core.id,
                term=core.term,
                reject=True,
            )
        )
    elif kind is MessageKind.STORAGE_APPEND_RESPONSE and m.snapshot is not None:
        # Entries written in an older term may have been replaced since, with the replacing write
        # still under way, so we do not believe they are stable. Snapshots always are.
        persistence.snapshot_installed(core, m.snapshot)


def _ignore(_core: Core, _m: Message) -> None:
    """Nothing to do about it in this role."""


_ANY_ROLE: Final[dict[MessageKind, Handler]] = {
    MessageKind.HUP: election.on_campaign_now,
    MessageKind.STORAGE_APPEND_RESPONSE: persistence.on_written,
    MessageKind.STORAGE_APPLY_RESPONSE: persistence.on_applied,
    MessageKind.VOTE: election.on_vote_request,
    MessageKind.PRE_VOTE: election.on_vote_request,
}

# A leader has no rule for APPEND, HEARTBEAT or SNAPSHOT: of its own term there can be none, since
# at most one leader is elected per term (Raft §5.2), and other terms were judged above.
_LEADER: Final[dict[MessageKind, Handler]] = {
    MessageKind.PROPOSE: leading.on_proposal,
    MessageKind.APPEND_RESPONSE: leading.on_append_response,
    MessageKind.HEARTBEAT_RESPONSE: leading.on_heartbeat_response,
    MessageKind.SNAPSHOT_STATUS: leading.on_snapshot_status,
    MessageKind.UNREACHABLE: leading.on_unreachable,
    MessageKind.TRANSFER_LEADER: leading.on_transfer,
    MessageKind.READ_INDEX: read_index.on_read_request,
}

_CANDIDATE: Final[dict[MessageKind, Handler]] = {
    MessageKind.PROPOSE: following.on_proposal_without_leader,
    MessageKind.APPEND: following.on_append,
    MessageKind.HEARTBEAT: following.on_heartbeat,
    MessageKind.SNAPSHOT: following.on_snapshot,
    MessageKind.VOTE_RESPONSE: election.on_vote_response,
    MessageKind.PRE_VOTE_RESPONSE: election.on_vote_response,
}

_FOLLOWER: Final[dict[MessageKind, Handler]] = {
    MessageKind.PROPOSE: following.on_proposal,
    MessageKind.APPEND: following.on_append,
    MessageKind.HEARTBEAT: following.on_heartbeat,
    MessageKind.SNAPSHOT: following.on_snapshot,
    MessageKind.TRANSFER_LEADER: following.forward_transfer,
    MessageKind.FORGET_LEADER: following.forget_leader,
    MessageKind.TIMEOUT_NOW: election.on_timeout_now,
    # The answers of those who are further away than the ones by whom we lost.
    MessageKind.VOTE_RESPONSE: election.hear_commit,
    MessageKind.PRE_VOTE_RESPONSE: election.hear_commit,
    MessageKind.READ_INDEX: read_index.forward_read,
    MessageKind.READ_INDEX_RESPONSE: read_index.on_read_response,
}


def _table(of_role: Mapping[MessageKind, Handler]) -> tuple[Handler, ...]:
    handlers = {**_ANY_ROLE, **of_role}
    return tuple(handlers.get(MessageKind(kind), _ignore) for kind in range(len(MessageKind)))


_OF_ROLE = {
    Role.FOLLOWER: _table(_FOLLOWER),
    Role.CANDIDATE: _table(_CANDIDATE),
    Role.LEADER: _table(_LEADER),
    Role.PRE_CANDIDATE: _table(_CANDIDATE),
}

_HANDLERS: Final = tuple(_OF_ROLE[Role(role)] for role in range(len(Role)))
"""By role, then by kind of message."""
