"""Going on with what is left of a partition, when a majority of its replicas is lost for good."""

from __future__ import annotations

from typing import Protocol

import msgspec

from angarium.ids import Index, NodeId, Offset, Term


class LostReplica(msgspec.Struct, frozen=True, kw_only=True):
    """A replica that voted, and is not there."""

    node: NodeId
    address: str = ""
    silent_ms: int | None = None
    """For how long its node has not been reached; None: the node is there, without the replica."""


class LeftReplica(msgspec.Struct, frozen=True, kw_only=True):
    """A replica that is there."""

    node: NodeId
    last_term: Term
    last_index: Index
    """Where its log ends."""
    halted: str = ""
    """Why it has stopped for good, if it has: nothing goes on with it."""


class GroupLeft(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer group, as the replica knows it with which the partition goes on."""

    name: str
    position: Offset
    """Everything before it is settled."""


class RecoveryInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What recovering a partition would do now, and what it may lose."""

    topic: str
    partition: int
    source: NodeId | None = None
    """The node with whose replica it goes on; None if none is left."""
    last_term: Term = Term(0)
    last_index: Index = Index(0)
    commit: Index = Index(0)
    """Up to where it knows its log to be committed."""
    end_offset: Offset = Offset(0)
    """Where its committed records end."""
    behind: int = 0
    """Entries that it is known to lack: a leader has told it of them. There may be more."""
    lost: tuple[LostReplica, ...] = ()
    left: tuple[LeftReplica, ...] = ()
    groups: tuple[GroupLeft, ...] = ()
    """The first hundred; positions that the lost replicas knew of later ones go back to these."""
    may_lose: tuple[str, ...] = ()
    """The same in sentences."""
    objection: str = ""
    """Why it may not be done now; empty if it may."""
    code: str = ""
    """Confirms exactly this, and nothing that it has become since."""
    is_done: bool = False
    """Whether the catalog has it so."""


class RecoveryBroker(Protocol):
    """The part of the contract that is about lost majorities."""

    async def describe_recovery(self, topic: str, partition: int) -> RecoveryInfo:
        """Return what `recover_partition` would do now, and the code that confirms it."""

    async def recover_partition(self, topic: str, partition: int, code: str) -> RecoveryInfo:
        """Go on with the best replica that is left, and without all others for ever.

        `PreconditionFailed` while a majority is there or may come back, and if what the code
        confirms is not what would be done now.
        """
