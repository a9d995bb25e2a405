"""What Raft peers say to each other, and what they keep.

These values are created by the hundred thousand per second and travel between nodes, so they are
`msgspec` structs: frozen, without a per-instance dictionary, outside the garbage collector's walk.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import msgspec

from angarium.ids import Buffer, Index, ReplicaId, Term

APPEND_THREAD: Final = ReplicaId(-1)
"""Where `STORAGE_APPEND` goes: the thread that writes this replica's log to disk."""

APPLY_THREAD: Final = ReplicaId(-2)
"""Where `STORAGE_APPLY` goes: the thread that applies committed entries to the machine."""


class EntryKind(IntEnum):
    """What an entry's data means to Raft itself."""

    NORMAL = 0
    CONF_CHANGE = 1
    """One voter or learner more or less (the thesis' single-server change, section 4.1)."""
    CONF_CHANGE_V2 = 2
    """Any change of membership, through joint consensus if need be (section 4.3)."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An item of a Raft log."""

    term: Term
    index: Index
    data: Buffer = b""
    kind: EntryKind = EntryKind.NORMAL


class HardState(msgspec.Struct, frozen=True, gc=False):
    """What a replica must remember across restarts before it answers anybody."""

    term: Term = Term(0)
    vote: ReplicaId = ReplicaId(0)
    commit: Index = Index(0)


class ConfState(msgspec.Struct, frozen=True):
    """Who votes and who listens, as stored in snapshots."""

    voters: tuple[ReplicaId, ...] = ()
    learners: tuple[ReplicaId, ...] = ()
    voters_outgoing: tuple[ReplicaId, ...] = ()
    """The old half of a joint configuration; empty outside one."""
    learners_next: tuple[ReplicaId, ...] = ()
    """Voters of the old half that become learners when the joint configuration is left."""
    auto_leave: bool = False


class Snapshot(msgspec.Struct, frozen=True):
    """A machine's state after the entry at `index`, standing in for all entries up to it."""

    index: Index = Index(0)
    term: Term = Term(0)
    conf_state: ConfState = ConfState()
    data: Buffer = b""


class MessageKind(IntEnum):
    """Every message between peers, and the local ones to the storage threads."""

    HUP = 0
    """Local: campaign now."""
    PROPOSE = 1
    APPEND = 2
    APPEND_RESPONSE = 3
    HEARTBEAT = 4
    HEARTBEAT_RESPONSE = 5
    VOTE = 6
    VOTE_RESPONSE = 7
    PRE_VOTE = 8
    PRE_VOTE_RESPONSE = 9
    SNAPSHOT = 10
    SNAPSHOT_STATUS = 11
    UNREACHABLE = 12
    CHECK_QUORUM = 13
    TRANSFER_LEADER = 14
    TIMEOUT_NOW = 15
    READ_INDEX = 16
    READ_INDEX_RESPONSE = 17
    FORGET_LEADER = 18
    STORAGE_APPEND = 19
    STORAGE_APPEND_RESPONSE = 20
    STORAGE_APPLY = 21
    STORAGE_APPLY_RESPONSE = 22
    BEAT = 23
    """Local: time to send heartbeats."""


OF_LEADERS: Final = frozenset(
    {
        MessageKind.APPEND,
        MessageKind.HEARTBEAT,
        MessageKind.SNAPSHOT,
        MessageKind.TIMEOUT_NOW,
    }
)
"""What only a leader says."""

OF_PEERS: Final = OF_LEADERS | {
    MessageKind.APPEND_RESPONSE,
    MessageKind.HEARTBEAT_RESPONSE,
    MessageKind.VOTE,
    MessageKind.VOTE_RESPONSE,
    MessageKind.PRE_VOTE,
    MessageKind.PRE_VOTE_RESPONSE,
}
"""What replicas say to each other to agree."""

FORWARDED: Final = frozenset(
    {
        MessageKind.PROPOSE,
        MessageKind.TRANSFER_LEADER,
        MessageKind.READ_INDEX,
        MessageKind.READ_INDEX_RESPONSE,
    }
)
"""What a follower may pass on to its leader, and what comes back. All other kinds are local."""


def by_number(kinds: frozenset[MessageKind]) -> tuple[bool, ...]:
    """Return the same by number: asking a set would hash the enum's member, which is slow."""
    return tuple(kind in kinds for kind in sorted(MessageKind))


class Message(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One message. Which fields mean something depends on `kind`.

    A message points only at older, frozen values, so it can never be part of a cycle; that is
    what makes it safe to keep the garbage collector from walking it.
    """

    kind: MessageKind
    to: ReplicaId = ReplicaId(0)
    sender: ReplicaId = ReplicaId(0)
    term: Term = Term(0)
    log_term: Term = Term(0)
    index: Index = Index(0)
    entries: tuple[Entry, ...] = ()
    commit: Index = Index(0)
    vote: ReplicaId = ReplicaId(0)
    """With `term` and `commit`: the hard state a `STORAGE_APPEND` carries."""
    snapshot: Snapshot | None = None
    reject: bool = False
    reject_hint: Index = Index(0)
    context: bytes = b""
    """What a read-index request is for; on heartbeats, which reads their echo will confirm;
    on votes, whether the leader itself asked for this election."""
    responses: tuple[Message, ...] = ()
    """Messages to deliver once the storage thread has done what this one asks for."""
