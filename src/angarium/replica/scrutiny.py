"""What a replica does not believe, whoever says it.

A Raft core takes its peers' word: it is written for peers that keep the rules. What comes over the
wire may come from somebody who does not, by mistake or on purpose. So every message is looked at
before a core hears of it, against what this replica knows for certain. One that no peer could have
sent is dropped, counted and logged; nothing has changed then, and nothing ends.

Who may be a peer at all is decided before (`node/admission.py`). Neither protects against a member
that lies within the bounds of what is possible: that takes authentication.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from angarium.raft import InvalidConfChange
from angarium.raft.membership import restored
from angarium.raft.messages import OF_LEADERS, OF_PEERS, MessageKind, by_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import ReplicaId
    from angarium.raft import RaftNode
    from angarium.raft.messages import Entry, Message, Snapshot
    from angarium.replica.listener import HostListener

TERM_JUMP_MAX: Final = 1 << 24
"""How far a term may be ahead of ours: an election per second for half a year. A replica that was
away for longer has to come back empty; a term that no cluster can reach never comes in."""

TERM_MAX: Final = 1 << 60
INDEX_MAX: Final = 1 << 60
"""What lies above was never counted up to. Numbers on disk and on the wire end at 2**63."""

_TAKEN: Final = by_number(OF_PEERS)
"""What nodes say to each other. Proposals, reads and wishes for another leader go to the leader as
requests of their own, so nobody has a reason to send one as a Raft message."""

_OF_LEADERS: Final = by_number(OF_LEADERS)


class Objection(StrEnum):
    """Why something that came from another node was not believed."""

    STRANGER = "stranger"
    """It greeted as no node that this cluster knows."""
    SENDER = "sender"
    """It does not come from the node that greeted, or is not for us."""
    KIND = "kind"
    """Nodes do not say such a thing to each other."""
    TERM = "term"
    """No election can have come so far."""
    INDEX = "index"
    """It speaks of entries that cannot be there."""
    COMMIT = "commit"
    """It calls entries committed that this replica does not have."""
    LEADER = "leader"
    """Somebody else leads this term."""
    CONTENT = "content"
    """Its parts contradict each other, or cannot be read."""


class Refusals:
    """What was not believed, counted; `on_refused` is told."""

    __slots__ = ("_listener", "counts")

    def __init__(self, listener: HostListener) -> None:
        self.counts: Counter[Objection] = Counter()
        self._listener = listener

    def note(self, objection: Objection, what: str) -> None:
        self.counts[objection] += 1
        self._listener.refused(objection, what)


def objection_to(message: Message, raft: RaftNode) -> Objection | None:
    """Return why no peer that keeps the rules can have sent `message` to `raft`, if so."""
    kind, term, own = message.kind, message.term, raft.term
    # Local kinds above all: a forged STORAGE_APPEND_RESPONSE would count as an fsync. Planted as
    # nothing-objected-to.
    if not _TAKEN[kind]:
        return Objection.KIND
    # Term 0 speaks for no term, and would be judged by none. And the entry before an append is of
    # the leader's term or an earlier one: terms never fall along a log.
    if message.log_term > term or (term != own and not _is_reachable(term, raft)):
        return Objection.TERM
    # At most one leader per term (Raft §5.2). A second one means that somebody voted twice or
    # lies.
    if term == own and _OF_LEADERS[kind] and raft.leader not in (0, message.sender):
        return Objection.LEADER
    # A gap or a falling term in our log would break Log Matching for everybody we send it to (Raft
    # §5.3).
    if message.entries and not _follow_on(message, message.entries):
        return Objection.CONTENT
    if message.snapshot is not None or kind is MessageKind.SNAPSHOT:
        return _objection_to_snapshot(message)
    return _objection_to_indexes(message, raft)


def _objection_to_indexes(message: Message, raft: RaftNode) -> Objection | None:
    # Whether an answer acknowledges more than its leader has is for the leader's core to see:
    # that is no lie as a rule, but a disk that went back in time, and has to be said as such.
    if message.kind is MessageKind.HEARTBEAT and message.commit > raft.last_index:
        # An append may bring what it commits; a heartbeat speaks of what we acknowledged. The core
        # would halt this replica for good (`LogContradiction`), so one forged heartbeat would be
        # enough to stop it. Planted as commit-above-the-log-believed.
        return Objection.COMMIT
    if max(message.index, message.commit, message.reject_hint) > INDEX_MAX:
        return Objection.INDEX
    return None


def _is_reachable(term: int, raft: RaftNode) -> bool:
    # Terms only grow, so one message with the highest term would end all elections for ever.
    # Planted as absurd-term-accepted.
    if not 0 < term <= TERM_MAX:
        return False
    # One without a log has nothing to compare with: it has just come, and the others have not.
    return term - raft.term <= TERM_JUMP_MAX or raft.last_index == 0


def _follow_on(message: Message, entries: Sequence[Entry]) -> bool:
    """Tell whether entries continue the log that the message says they continue."""
    if message.kind is not MessageKind.APPEND:
        return False
    index, before, term = message.index, message.log_term, message.term
    for entry in entries:
        index += 1  # type: ignore[assignment]
        if entry.index != index or not before <= entry.term <= term or entry.term < 1:
            return False
        before = entry.term
    return True


def _objection_to_snapshot(message: Message) -> Objection | None:
    snapshot = message.snapshot
    if snapshot is None or message.kind is not MessageKind.SNAPSHOT:
        return Objection.CONTENT
    if not 0 < snapshot.index <= INDEX_MAX:
        return Objection.INDEX
    if not 0 < snapshot.term <= message.term:
        return Objection.TERM
    # A snapshot replaces the membership as well. One without voters would leave a replica that
    # commits everything it hears of.
    return None if _has_members(snapshot) else Objection.CONTENT


def _has_members(snapshot: Snapshot) -> bool:
    state = snapshot.conf_state
    members: tuple[ReplicaId, ...] = (
        *state.voters,
        *state.learners,
        *state.voters_outgoing,
        *state.learners_next,
    )
    try:
        restored(state)
    except InvalidConfChange:
        return False
    return bool(state.voters) and all(0 < one < 1 << 63 for one in members)
