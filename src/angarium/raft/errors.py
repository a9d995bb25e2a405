"""What a Raft core refuses, and what a log's storage may answer.

`RaftNode.step` raises `RaftError`s for what it refuses; a driver that feeds it messages from the
network may drop the offending message and carry on, for none of them has changed anything.
`LogContradiction` is the exception: this replica has lost what it promised to keep, and must stop.
The three storage answers at the end are no failures: they are how a `Storage` says "not here".
"""

from __future__ import annotations

from enum import Enum

from angarium.errors import (
    AngariumError,
    CorruptData,
    Fault,
    InvalidArgument,
    LimitExceeded,
    StorageError,
)


class RaftError(AngariumError):
    """A request or message that the core did not act upon."""

    code = "RAFT"


class ProposalDropped(RaftError):
    """The proposal was not appended, and nobody else was asked to: no leader is known, or it is
    handing over, or it has left the group. Definite: it will never appear in the log through
    this call."""

    code = "PROPOSAL_DROPPED"
    retriable = True


class UncommittedLimit(ProposalDropped, LimitExceeded):
    """The leader's uncommitted tail holds as many bytes as it may; wait for commits."""

    code = "RESOURCE_EXHAUSTED"

    def __init__(self, message: str) -> None:
        LimitExceeded.__init__(self, "uncommitted_bytes_max", message)


class UnknownPeer(RaftError):
    """A response from somebody who is not, or no longer, in the configuration."""

    code = "UNKNOWN_PEER"
    fault = Fault.CALLER


class LocalMessage(RaftError):
    """A message that only this replica may send to itself arrived from somebody else."""

    code = "LOCAL_MESSAGE"
    fault = Fault.CALLER


class Contradicted(RaftError):
    """A follower acknowledged entries that this leader does not have. A disk has gone back in time:
    this leader's own, or that of a replica whose vote elected it."""

    code = "CONTRADICTED"
    fault = Fault.DATA

    def __init__(self, replica: int, *, acknowledged: int, last_index: int) -> None:
        super().__init__(
            f"replica {replica} says that it has entry {acknowledged}, and this leader's log ends "
            f"at {last_index}"
        )
        self.replica = replica


class ConfChangeFault(Enum):
    """Why a change of membership cannot be made."""

    MALFORMED = "the bytes are no membership change"
    NOT_JOINT = "there is no joint configuration to leave"
    ALREADY_JOINT = "the joint configuration must be left first"
    NOTHING_TO_JOIN = "a group without voters has nothing to be joint with"
    SIMPLE_WHILE_JOINT = "a joint configuration takes no single-step change"
    SEVERAL_VOTERS = "more than one voter changes, which needs a joint configuration"
    NO_VOTER_LEFT = "nobody would be left to vote"
    CONTRADICTORY = "a replica cannot have two parts at once"


class InvalidConfChange(RaftError, InvalidArgument):
    """A membership change that does not fit the configuration it was applied to."""

    code = "INVALID_CONF_CHANGE"
    fault = Fault.CALLER

    def __init__(self, reason: ConfChangeFault, detail: str = "") -> None:
        super().__init__(f"{reason.value}: {detail}" if detail else reason.value)
        self.reason = reason


class LogContradiction(CorruptData):
    """The leader and this replica disagree about entries that are committed.

    Either this replica lost part of its log, or two logs were mixed up. It must not go on.
    """

    code = "LOG_CONTRADICTION"


# --- what a Storage may answer ---------------------------------------------------------------


class Compacted(StorageError):
    """The entry asked for has been replaced by a snapshot."""

    code = "COMPACTED"


class Unavailable(StorageError):
    """The entry asked for is not in the storage: it lies above the last index."""

    code = "UNAVAILABLE_ENTRY"


class SnapshotTemporarilyUnavailable(StorageError):
    """A snapshot is being made; ask again later."""

    code = "SNAPSHOT_TEMPORARILY_UNAVAILABLE"
    retriable = True
