"""How much of its group's records a replica has, as far as it can know itself.

A replica that joined and was never taken in, or that its leader is still bringing up to date, holds
less than the group has promised. It must not stand for the group: nobody reads from it, no node is
ready with it, and no other disk may be given up because of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.ids import Index
from angarium.raft.messages import MessageKind

if TYPE_CHECKING:
    from angarium.ids import ReplicaId
    from angarium.raft import RaftNode
    from angarium.raft.messages import Message

MARK_TICKS: Final = 20
"""Ticks between two marks. What was committed one to two marks ago a member of the group should
have, however busy it is; a second with the default tick."""

_TELLS_ALL: Final = frozenset((MessageKind.APPEND, MessageKind.SNAPSHOT))
_FROM_A_LEADER: Final = _TELLS_ALL | {MessageKind.HEARTBEAT}


class Fullness:
    """What one replica has heard of its group, and when."""

    __slots__ = (
        "_conf_heard_ticks",
        "_earlier",
        "_goal",
        "_is_told",
        "_later",
        "_seated",
        "_ticks",
        "_was_full",
        "heard",
        "silent_ticks",
        "told_commit",
    )

    def __init__(self, raft: RaftNode, *, conf_heard_ticks: int) -> None:
        """Begin; `conf_heard_ticks` after a change of membership everybody has heard of it."""
        self._conf_heard_ticks = conf_heard_ticks
        self.told_commit = Index(0)
        """The highest commit index that a leader has told of."""
        self.heard: set[ReplicaId] = set()
        """Who has sent anything since this replica last had work or was woken."""
        self._was_full = False
        """Whether it had everything there was, at some time in this life."""
        self._is_told = False
        """Whether a leader has said in this life how far its group is."""
        self._goal: Index | None = None
        """What a leader had told of at the first mark: with that, nothing is missing any more of
        what was committed while it was away. The newest it may never reach, however long it tries:
        under load there is always an entry that the others have a moment sooner."""
        self._earlier = self._later = raft.commit
        self._seated = conf_heard_ticks if votes(raft) else 0
        """Ticks since it votes."""
        self._ticks = 0
        self.silent_ticks = 0
        """Ticks since a leader was heard."""

    def found(self) -> None:
        """Hear that the group has only just been formed: there is nothing to lack yet."""
        self._was_full = True

    def hear(self, message: Message, raft: RaftNode) -> None:
        """Note who speaks, and how far a leader says that its log is committed."""
        self.heard.add(message.sender)
        told = message.commit if message.snapshot is None else message.snapshot.index
        # A deposed leader's commit index says nothing about the group as it is now.
        if message.term < raft.term:
            return
        self.told_commit = max(told, self.told_commit)
        # A heartbeat speaks of what this replica is known to have, not of all there is.
        self._is_told |= message.kind in _TELLS_ALL
        if message.kind in _FROM_A_LEADER:
            self.silent_ticks = 0

    def tick(self, raft: RaftNode) -> None:
        """Let one tick pass."""
        self._seated = self._seated + 1 if votes(raft) else 0
        self._ticks += 1
        self.silent_ticks += 1
        if self._ticks % MARK_TICKS == 0:
            self._earlier, self._later = self._later, max(self.told_commit, raft.commit)
            if self._goal is None and self._is_told:
                self._goal = self.told_commit

    def begin_anew(self, commit: Index) -> None:
        """Forget who was heard: nothing is known any more of who is still there."""
        self.heard.clear()
        self._earlier = self._later = commit

    @property
    def settled_index(self) -> Index:
        """Up to here everything was committed a while ago."""
        return self._earlier

    def shortfall(self, raft: RaftNode, applied: Index) -> str:
        """Say in words why this replica does not stand for its group; empty if it does.

        What its log holds after a start says nothing about how far the others have come since, nor
        is all of it known to be committed. So it waits for a leader's word, and for an entry of
        that leader's term: before that one is committed, a new leader does not know itself what
        earlier ones have acknowledged (paper, section 8).
        """
        if not is_member(raft):
            return (
                "is empty and has not been taken in by the others yet"
                if not applied
                else ("does not belong to it any more")
            )
        if not self._was_full:
            # After a start there is no reason to be lenient: it may have been away for long.
            # Planted as restarted-replica-answers-at-once.
            if not self._is_told:
                return "has not heard since it started how far the others are"
            goal = self.told_commit if self._goal is None else self._goal
            if applied < goal:
                return f"is catching up, at entry {applied} of {self.told_commit}"
            # Until an entry of the leader's own term is committed, entries that earlier leaders
            # have acknowledged may be missing from its commit index (Raft §8).
            if not raft.is_commit_current:
                return "waits for the first entry of its leader"
            self._was_full = True
        elif applied < self._earlier:
            return f"is behind, at entry {applied} of {self.told_commit}"
        return ""

    def is_seated(self, *, is_resting: bool) -> bool:
        """Tell whether it votes and everybody has heard so, which is when a group may rest.

        Until then the replica that it replaces is needed for a majority.
        """
        return self._seated >= self._conf_heard_ticks or (is_resting and self._seated > 0)


def votes(raft: RaftNode) -> bool:
    """Tell whether a replica votes, in both halves of a membership that is changing."""
    state = raft.conf_state
    return raft.id in state.voters and (
        not state.voters_outgoing or raft.id in state.voters_outgoing
    )


def is_member(raft: RaftNode) -> bool:
    """Tell whether a replica votes or listens in its group, as far as its own log says."""
    state = raft.conf_state
    return raft.id in (*state.voters, *state.learners, *state.voters_outgoing)
