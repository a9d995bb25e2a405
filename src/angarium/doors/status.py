"""The one table that says what each error code is called at each door.

Every code of the error tree has a row, and a test compares the two, so that a new error cannot be
forgotten here. A code that only a newer peer knows is judged by what it says of itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError, Fault
from angarium.wire.grpc.codes import GrpcCode

if TYPE_CHECKING:
    from collections.abc import Mapping


class Exit(IntEnum):
    """How the command line ends, so that scripts can tell what to do next."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    """What was asked makes no sense; argparse uses the same number."""
    NOT_FOUND = 3
    CONFLICT = 4
    """The state of things does not allow it: a name taken, a node still in use."""
    UNAVAILABLE = 5
    """Try again: nothing has happened."""
    UNKNOWN = 6
    """It may or may not have happened."""
    LIMIT = 7
    """A named bound was reached."""
    DATA = 8
    """Stored bytes are damaged."""
    REMOVED = 9
    """The node was removed from its cluster: starting it again changes nothing."""
    DENIED = 10
    """Who asks is not known, or may not."""


@dataclass(frozen=True, slots=True)
class Status:
    """One kind of failure, as each door calls it."""

    grpc: GrpcCode
    http: int
    graphql: str
    """`extensions.code` of a GraphQL error; our own code stands beside it."""
    exit: Exit


# gRPC, HTTP, GraphQL, command line
INVALID: Final = Status(GrpcCode.INVALID_ARGUMENT, 400, "BAD_USER_INPUT", Exit.USAGE)
NOT_FOUND: Final = Status(GrpcCode.NOT_FOUND, 404, "NOT_FOUND", Exit.NOT_FOUND)
UNKNOWN_CALLER: Final = Status(GrpcCode.UNAUTHENTICATED, 401, "UNAUTHENTICATED", Exit.DENIED)
DENIED: Final = Status(GrpcCode.PERMISSION_DENIED, 403, "FORBIDDEN", Exit.DENIED)
TAKEN: Final = Status(GrpcCode.ALREADY_EXISTS, 409, "CONFLICT", Exit.CONFLICT)
GONE: Final = Status(GrpcCode.NOT_FOUND, 410, "GONE", Exit.NOT_FOUND)
OUT_OF_RANGE: Final = Status(GrpcCode.OUT_OF_RANGE, 416, "OUT_OF_RANGE", Exit.NOT_FOUND)
STATE_FORBIDS: Final = Status(GrpcCode.FAILED_PRECONDITION, 409, "CONFLICT", Exit.CONFLICT)
REMOVED: Final = Status(GrpcCode.FAILED_PRECONDITION, 409, "CONFLICT", Exit.REMOVED)
USED_OTHERWISE: Final = Status(GrpcCode.FAILED_PRECONDITION, 422, "CONFLICT", Exit.CONFLICT)
DECIDED_AGAINST: Final = Status(GrpcCode.ABORTED, 409, "CONFLICT", Exit.CONFLICT)
# Clients are often told to repeat UNAVAILABLE blindly. So it stands for definite failures only.
UNAVAILABLE: Final = Status(GrpcCode.UNAVAILABLE, 503, "UNAVAILABLE", Exit.UNAVAILABLE)
OUTCOME_UNKNOWN: Final = Status(GrpcCode.UNKNOWN, 504, "OUTCOME_UNKNOWN", Exit.UNKNOWN)
TOO_LATE: Final = Status(GrpcCode.DEADLINE_EXCEEDED, 504, "OUTCOME_UNKNOWN", Exit.UNKNOWN)
TOO_MUCH: Final = Status(GrpcCode.RESOURCE_EXHAUSTED, 429, "RESOURCE_EXHAUSTED", Exit.LIMIT)
TOO_LARGE: Final = Status(GrpcCode.RESOURCE_EXHAUSTED, 413, "RESOURCE_EXHAUSTED", Exit.LIMIT)
NO_ROOM: Final = Status(GrpcCode.RESOURCE_EXHAUSTED, 507, "RESOURCE_EXHAUSTED", Exit.LIMIT)
NOT_SERVED: Final = Status(GrpcCode.UNIMPLEMENTED, 501, "NOT_IMPLEMENTED", Exit.USAGE)
CALLED_OFF: Final = Status(GrpcCode.CANCELLED, 499, "CANCELLED", Exit.UNKNOWN)
DAMAGED: Final = Status(GrpcCode.DATA_LOSS, 500, "DATA_LOSS", Exit.DATA)
INTERNAL: Final = Status(GrpcCode.INTERNAL, 500, "INTERNAL_SERVER_ERROR", Exit.INTERNAL)

STATUSES: Final[Mapping[str, Status]] = {
    "INTERNAL": INTERNAL,
    # the caller's input
    "INVALID_ARGUMENT": INVALID,
    "INVALID_BATCH": INVALID,
    "UNUSABLE_CERTIFICATE": INVALID,
    "INVALID_COMMAND": INVALID,
    # names and offsets
    "NOT_FOUND": NOT_FOUND,
    "ALREADY_EXISTS": TAKEN,
    "OFFSET_OUT_OF_RANGE": OUT_OF_RANGE,
    "EXPIRED": GONE,
    # who asks
    "UNAUTHENTICATED": UNKNOWN_CALLER,
    "JOIN_REFUSED": UNKNOWN_CALLER,
    "PERMISSION_DENIED": DENIED,
    # producers, transactions, groups
    "PRODUCER_FENCED": STATE_FORBIDS,
    "SEQUENCE_GAP": STATE_FORBIDS,
    "UNKNOWN_PRODUCER": STATE_FORBIDS,
    "KEY_REUSED": USED_OTHERWISE,
    "TRANSACTION_ABORTED": DECIDED_AGAINST,
    "LAYOUT_CHANGED": UNAVAILABLE,
    "TRANSACTION_PENDING": UNAVAILABLE,
    "GROUP_FENCED": STATE_FORBIDS,
    # the cluster's state
    "NOT_LEADER": UNAVAILABLE,
    "HOME_LOST": UNAVAILABLE,
    "TOO_STALE": UNAVAILABLE,
    "PRECONDITION_FAILED": STATE_FORBIDS,
    "ROLE_HELD": STATE_FORBIDS,
    "TOO_FEW_REPLICAS": UNAVAILABLE,
    "AUDIT_UNWRITABLE": UNAVAILABLE,
    "OUTCOME_UNKNOWN": OUTCOME_UNKNOWN,
    "RESOURCE_EXHAUSTED": TOO_MUCH,
    "QUOTA_EXCEEDED": TOO_MUCH,
    "STORED_QUOTA_EXCEEDED": TOO_MUCH,
    "TOPIC_QUOTA_EXCEEDED": TOO_MUCH,
    "TOO_LARGE": TOO_LARGE,
    # disks
    "STORAGE": INTERNAL,
    "DISK_FULL": NO_ROOM,
    "SYNC_FAILED": INTERNAL,
    "CORRUPT_DATA": DAMAGED,
    "IDENTITY_LOST": DAMAGED,
    "VOID_REPLICA": DAMAGED,
    "NEWER_RELEASE": STATE_FORBIDS,
    "FOLDER_IN_USE": STATE_FORBIDS,
    # Raft
    "RAFT": INTERNAL,
    "PROPOSAL_DROPPED": UNAVAILABLE,
    "UNKNOWN_PEER": STATE_FORBIDS,
    "CONTRADICTED": DAMAGED,
    "LOCAL_MESSAGE": INVALID,
    "INVALID_CONF_CHANGE": INVALID,
    "LOG_CONTRADICTION": DAMAGED,
    "COMPACTED": INTERNAL,
    "UNAVAILABLE_ENTRY": INTERNAL,
    "SNAPSHOT_TEMPORARILY_UNAVAILABLE": UNAVAILABLE,
    # the wire
    "WIRE": INTERNAL,
    "INVALID_FRAME": INVALID,
    "FRAME_TOO_LARGE": TOO_LARGE,
    "HANDSHAKE_REFUSED": STATE_FORBIDS,
    "VERSION_MISMATCH": STATE_FORBIDS,
    "TLS_MISMATCH": STATE_FORBIDS,
    "CERTIFICATE_REFUSED": STATE_FORBIDS,
    "UNTRUSTED_NODE": STATE_FORBIDS,
    "WRONG_CLUSTER": STATE_FORBIDS,
    "CLUSTER_SUCCEEDED": STATE_FORBIDS,
    "WRONG_NODE": STATE_FORBIDS,
    "ROLLED_BACK": STATE_FORBIDS,
    "NODE_REMOVED": REMOVED,
    "NODE_IS_ALIVE": STATE_FORBIDS,
    "ADDRESS_DISPUTED": STATE_FORBIDS,
    "NOT_REGISTERED": UNAVAILABLE,
    "UNSUPPORTED_OPERATION": NOT_SERVED,
    "UNREACHABLE": UNAVAILABLE,
    "DISCOVERY_FAILED": UNAVAILABLE,
    "CONNECTION_LOST": OUTCOME_UNKNOWN,
    "DEADLINE_EXCEEDED": TOO_LATE,
    "STREAM_CANCELLED": CALLED_OFF,
}
"""By `AngariumError.code`."""


def status_of(error: BaseException) -> Status:
    """Return what the doors call `error`, also if only a newer version knows its code.

    What is not of the error tree is a mistake in our own code.
    """
    if not isinstance(error, AngariumError):
        return INTERNAL
    return STATUSES.get(error.code) or _status_by_kind(error)


def _status_by_kind(error: AngariumError) -> Status:
    if error.retriable:
        # Definite or not is unknown here, and the careful reading is that it is not.
        return OUTCOME_UNKNOWN
    match error.fault:
        case Fault.CALLER:
            return STATE_FORBIDS
        case Fault.DATA:
            return DAMAGED
        case Fault.CLUSTER:
            return INTERNAL
