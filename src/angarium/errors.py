"""The one tree of errors.

Every error a caller can meet has a stable `code`, says whether the same request may succeed
later (`retriable`), and whose fault it is. One table elsewhere translates codes for gRPC, REST,
GraphQL and the command line; nothing else may invent an error of its own.

A *definite* error means that the request changed nothing. An error whose outcome is not known
says so (`OutcomeUnknown`).
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import ClassVar, Final


class Fault(Enum):
    """Who has to do something about it."""

    CALLER = "caller"
    """The request was wrong; sending it again unchanged will fail again."""
    CLUSTER = "cluster"
    """The cluster cannot serve right now: an election, an overload, a full disk."""
    DATA = "data"
    """Stored bytes are damaged; an operator should know."""


class AngariumError(Exception):
    """The root. Never raised itself."""

    code: ClassVar[str] = "INTERNAL"
    retriable: ClassVar[bool] = False
    fault: ClassVar[Fault] = Fault.CLUSTER


# --- the caller's input ---------------------------------------------------------------------


class InvalidArgument(AngariumError):
    """A value outside what the contract allows."""

    code = "INVALID_ARGUMENT"
    fault = Fault.CALLER


class InvalidBatch(InvalidArgument):
    """Bytes that are not a well-formed batch: wrong magic, length, checksum or column."""

    code = "INVALID_BATCH"


class InvalidCommand(InvalidArgument):
    """A log entry whose bytes no machine of this version understands."""

    code = "INVALID_COMMAND"


# --- what requests name ---------------------------------------------------------------------


class NotFound(AngariumError):
    """The named thing does not exist."""

    code = "NOT_FOUND"
    fault = Fault.CALLER


def no_partition(topic: str, partitions: int, number: int) -> AngariumError:
    """Return why a topic has no such partition: no topic has one below 0, whatever its form."""
    if number < 0:
        return InvalidArgument(f"partitions are numbered from 0, so there is no {number}")
    return NotFound(f"topic {topic!r} has the partitions 0 to {partitions - 1}, not {number}")


class AlreadyExists(AngariumError):
    """The name is taken."""

    code = "ALREADY_EXISTS"
    fault = Fault.CALLER


class OffsetOutOfRange(AngariumError):
    """The offset was never written, or has been trimmed away."""

    code = "OFFSET_OUT_OF_RANGE"
    fault = Fault.CALLER

    def __init__(self, *, offset: int, start: int, end: int) -> None:
        super().__init__(f"offset {offset} is outside [{start}, {end})")
        self.offset, self.start, self.end = offset, start, end


class Expired(AngariumError):
    """The record was there, and its time is over: it is not delivered any more."""

    code = "EXPIRED"
    fault = Fault.CALLER

    def __init__(self, *, offset: int) -> None:
        super().__init__(f"the record at offset {offset} has expired")
        self.offset = offset


# --- who asks ---------------------------------------------------------------------------------


class Unauthenticated(AngariumError):
    """Nobody knows who asks: no proof, a wrong one, or one that has expired or was revoked."""

    code = "UNAUTHENTICATED"
    fault = Fault.CALLER


class JoinRefused(Unauthenticated):
    """A node wants to come in, and brings no join token that lets it."""

    code = "JOIN_REFUSED"


class PermissionDenied(AngariumError):
    """It is known who asks, and that it may not."""

    code = "PERMISSION_DENIED"
    fault = Fault.CALLER


# --- producers and transactions -------------------------------------------------------------


class ProducerFenced(AngariumError):
    """A newer epoch of the same producer has spoken; this one must stop."""

    code = "PRODUCER_FENCED"
    fault = Fault.CALLER


class SequenceGap(AngariumError):
    """A batch arrived before the one that precedes it; nothing was stored."""

    code = "SEQUENCE_GAP"
    fault = Fault.CALLER


class UnknownProducer(AngariumError):
    """The partition no longer remembers this producer, so it cannot tell a duplicate."""

    code = "UNKNOWN_PRODUCER"
    fault = Fault.CALLER


class KeyReused(AngariumError):
    """The idempotency key came before, with other content; nothing was stored this time."""

    code = "KEY_REUSED"
    fault = Fault.CALLER


class TransactionAborted(AngariumError):
    """The transaction has been decided against; none of it is or becomes visible."""

    code = "TRANSACTION_ABORTED"
    fault = Fault.CALLER


class TransactionPending(AngariumError):
    """An earlier transaction of the same name is not finished yet; ask again soon."""

    code = "TRANSACTION_PENDING"
    retriable = True


class LayoutChanged(AngariumError):
    """The topic's keys are dealt to partitions in another way by now; nothing was stored or read.

    Describe the topic, deal what was refused by its layout, and go on.
    """

    code = "LAYOUT_CHANGED"
    retriable = True


class GroupFenced(AngariumError):
    """The group's position was set anew after this delivery; what it says no longer counts."""

    code = "GROUP_FENCED"
    fault = Fault.CALLER


# --- the cluster's state --------------------------------------------------------------------


class NotLeader(AngariumError):
    """This replica does not lead the group; `leader` says who does, where that is known."""

    code = "NOT_LEADER"
    retriable = True

    def __init__(self, message: str = "not the leader", *, leader: int | None = None) -> None:
        super().__init__(message)
        self.leader = leader


class HomeLost(AngariumError):
    """Nobody leads the partitions that live in the publisher's region, and the topic has publishes
    refused then (`home_lost=refuse`). Nothing was stored."""

    code = "HOME_LOST"
    retriable = True


class TooStale(AngariumError):
    """No replica that can be reached is known to be as new as the reader wants (`max_staleness`).
    Allow more, or ask again when the leader can be reached."""

    code = "TOO_STALE"
    retriable = True


class PreconditionFailed(AngariumError):
    """The cluster is not in a state that allows this: too few hosts, a node still in use."""

    code = "PRECONDITION_FAILED"
    fault = Fault.CALLER


class RoleHeld(PreconditionFailed):
    """The role is not deleted, because users hold it; the message names some of them."""

    code = "ROLE_HELD"


class TooFewReplicas(PreconditionFailed):
    """A disk more would be one too many: a partition has too few full replicas. Ask again later."""

    code = "TOO_FEW_REPLICAS"
    retriable = True
    fault = Fault.CLUSTER


class ArchiveAdvanced(PreconditionFailed):
    """An archive is further than the commit began from: nothing of the commit was added.

    Its marks have to be read again, and what lies behind them archived.
    """


class FilesChanged(PreconditionFailed):
    """The files of an archive changed during a commit, and nothing was added: commit again."""


class AuditUnwritable(AngariumError):
    """An administrative action was not carried out, because it could not be recorded first."""

    code = "AUDIT_UNWRITABLE"
    retriable = True


class OutcomeUnknown(AngariumError):
    """The request may or may not have taken effect; retry it with the same sequence."""

    code = "OUTCOME_UNKNOWN"
    retriable = True


class LimitExceeded(AngariumError):
    """A named bound was reached; nothing was stored and nobody else is affected."""

    code = "RESOURCE_EXHAUSTED"
    retriable = True

    retry_after: float
    """In how many seconds it is worth another try; only there if that is known."""

    def __init__(self, limit: str, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(f"{limit}: {message}")
        self.limit = limit
        if retry_after is not None:
            self.retry_after = retry_after


class QuotaExceeded(LimitExceeded):
    """Who asks has used up what it may have in a second; it was slowed down before. Nothing was
    done, and `retry_after` says when it is worth another try."""

    code = "QUOTA_EXCEEDED"
    fault = Fault.CALLER


class StoredQuotaExceeded(LimitExceeded):
    """The topics under a prefix hold as much as they may. Waiting does not help by itself: delete
    records, keep them for less long, or have the quota raised."""

    code = "STORED_QUOTA_EXCEEDED"
    retriable = False
    fault = Fault.CALLER


class TopicQuotaExceeded(LimitExceeded):
    """The principal has created as many topics or partitions as its quota allows. Nothing was
    created. Waiting does not help: delete topics, or have the quota raised."""

    code = "TOPIC_QUOTA_EXCEEDED"
    retriable = False
    fault = Fault.CALLER


RETRY_AFTER_S_MAX: Final = 3_600.0
"""A longer wait than this is not believed: it is taken for this."""


def retry_after_of(error: BaseException) -> float | None:
    """Return in how many seconds an error is worth another try; None if nobody has said so.

    It may have come from somebody else, so it is looked at before it is believed.
    """
    told = getattr(error, "retry_after", None)
    if isinstance(told, bool) or not isinstance(told, int | float) or not told >= 0:
        return None
    return min(float(told), RETRY_AFTER_S_MAX)


class TooLarge(LimitExceeded):
    """The request is itself beyond a named bound: waiting does not help, a smaller one does."""

    code = "TOO_LARGE"
    retriable = False
    fault = Fault.CALLER


# --- between two processes -------------------------------------------------------------------


class WireError(AngariumError):
    """Something about the connection itself, not about what was asked over it."""

    code = "WIRE"


class Unreachable(WireError):
    """There is no open connection to the peer. Nothing was sent; trying again is safe."""

    code = "UNREACHABLE"
    retriable = True


class ConnectionLost(OutcomeUnknown):
    """The connection ended while something was under way on it."""

    code = "CONNECTION_LOST"


class DeadlineExceeded(OutcomeUnknown):
    """The answer did not come in time."""

    code = "DEADLINE_EXCEEDED"


# --- disks ----------------------------------------------------------------------------------


class StorageError(AngariumError):
    """Something about the files under a node."""

    code = "STORAGE"


class DiskFull(StorageError):
    """No room for an append. What was there stays; appends go on when there is room again."""

    code = "DISK_FULL"
    retriable = True


class SyncFailed(StorageError):
    """fsync reported an error. What is on disk is unknown, so the node stops: fatal."""

    code = "SYNC_FAILED"


class CorruptData(StorageError):
    """Stored bytes fail their checksum. They are never served, and never silently dropped."""

    code = "CORRUPT_DATA"
    fault = Fault.DATA


class NewerRelease(StorageError):
    """A newer release wrote this and gives it a meaning that this one does not know.

    Nothing is wrong with the data: start the newer release on them.
    """

    code = "NEWER_RELEASE"
    fault = Fault.CALLER


# --- by their codes -------------------------------------------------------------------------

_classes: dict[str, type[AngariumError]] = {}
"""Every class that names a code of its own. Where two share one, the one nearer to the root stands
for it."""


def rebuilt(code: str, message: str) -> AngariumError | None:
    """Return the error that was told of by its code and message; None if no class has the code."""
    if code not in _classes:
        # Somebody may have imported a room with errors of its own since we last looked.
        _collect_classes()
    error_class = _classes.get(code)
    if error_class is None:
        return None
    # Constructors build messages from parts; the message is there already, so they are passed by.
    error = error_class.__new__(error_class, message)
    error.args = (message,)
    return error


def _collect_classes() -> None:
    # Breadth first: of two classes with one code, the one nearer to the root is met first.
    waiting = deque(AngariumError.__subclasses__())
    while waiting:
        error_class = waiting.popleft()
        if "code" in vars(error_class):
            _classes.setdefault(error_class.code, error_class)
        waiting.extend(error_class.__subclasses__())
