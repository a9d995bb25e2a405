"""The one table that says what each error code is called at each door.

Every code of the error tree has a row, and a test compares the two, so that a new error cannot be
forgotten here. Codes that only a newer peer knows are placed by what they say of themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError, Fault

if TYPE_CHECKING:
    from collections.abc import Mapping


class GrpcCode(IntEnum):
    """The status codes of gRPC by number: this page is read by doors that have no grpc."""

    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One kind of failure, as each door calls it."""

    grpc: GrpcCode
    http: int
    graphql: str
    """`extensions.code` of a GraphQL error; our own code stands beside it."""
    exit: Exit


INVALID: Final = Status(
    grpc=GrpcCode.INVALID_ARGUMENT, http=400, graphql="BAD_USER_INPUT", exit=Exit.USAGE
)
NOT_FOUND: Final = Status(
    grpc=GrpcCode.NOT_FOUND, http=404, graphql="NOT_FOUND", exit=Exit.NOT_FOUND
)
TAKEN: Final = Status(
    grpc=GrpcCode.ALREADY_EXISTS, http=409, graphql="CONFLICT", exit=Exit.CONFLICT
)
GONE: Final = Status(grpc=GrpcCode.NOT_FOUND, http=410, graphql="GONE", exit=Exit.NOT_FOUND)
OUT_OF_RANGE: Final = Status(
    grpc=GrpcCode.OUT_OF_RANGE, http=416, graphql="OUT_OF_RANGE", exit=Exit.NOT_FOUND
)
STATE_FORBIDS: Final = Status(
    grpc=GrpcCode.FAILED_PRECONDITION, http=409, graphql="CONFLICT", exit=Exit.CONFLICT
)
REMOVED: Final = Status(
    grpc=GrpcCode.FAILED_PRECONDITION, http=409, graphql="CONFLICT", exit=Exit.REMOVED
)
USED_OTHERWISE: Final = Status(
    grpc=GrpcCode.FAILED_PRECONDITION, http=422, graphql="CONFLICT", exit=Exit.CONFLICT
)
DECIDED_AGAINST: Final = Status(
    grpc=GrpcCode.ABORTED, http=409, graphql="CONFLICT", exit=Exit.CONFLICT
)
# Clients are often told to repeat UNAVAILABLE blindly. So it stands for definite failures only.
UNAVAILABLE: Final = Status(
    grpc=GrpcCode.UNAVAILABLE, http=503, graphql="UNAVAILABLE", exit=Exit.UNAVAILABLE
)
OUTCOME_UNKNOWN: Final = Status(
    grpc=GrpcCode.UNKNOWN, http=504, graphql="OUTCOME_UNKNOWN", exit=Exit.UNKNOWN
)
TOO_LATE: Final = Status(
    grpc=GrpcCode.DEADLINE_EXCEEDED, http=504, graphql="OUTCOME_UNKNOWN", exit=Exit.UNKNOWN
)
TOO_MUCH: Final = Status(
    grpc=GrpcCode.RESOURCE_EXHAUSTED, http=429, graphql="RESOURCE_EXHAUSTED", exit=Exit.LIMIT
)
TOO_LARGE: Final = Status(
    grpc=GrpcCode.RESOURCE_EXHAUSTED, http=413, graphql="RESOURCE_EXHAUSTED", exit=Exit.LIMIT
)
NO_ROOM: Final = Status(
    grpc=GrpcCode.RESOURCE_EXHAUSTED, http=507, graphql="RESOURCE_EXHAUSTED", exit=Exit.LIMIT
)
NOT_SERVED: Final = Status(
    grpc=GrpcCode.UNIMPLEMENTED, http=501, graphql="NOT_IMPLEMENTED", exit=Exit.USAGE
)
CALLED_OFF: Final = Status(
    grpc=GrpcCode.CANCELLED, http=499, graphql="CANCELLED", exit=Exit.UNKNOWN
)
DAMAGED: Final = Status(grpc=GrpcCode.DATA_LOSS, http=500, graphql="DATA_LOSS", exit=Exit.DATA)
INTERNAL: Final = Status(
    grpc=GrpcCode.INTERNAL, http=500, graphql="INTERNAL_SERVER_ERROR", exit=Exit.INTERNAL
)

STATUSES: Final[Mapping[str, Status]] = {
    "INTERNAL": INTERNAL,
    # the caller's input
    "INVALID_ARGUMENT": INVALID,
    "INVALID_BATCH": INVALID,
    "INVALID_COMMAND": INVALID,
    # names and places
    "NOT_FOUND": NOT_FOUND,
    "ALREADY_EXISTS": TAKEN,
    "OFFSET_OUT_OF_RANGE": OUT_OF_RANGE,
    "EXPIRED": GONE,
    # producers, transactions, groups
    "PRODUCER_FENCED": STATE_FORBIDS,
    "SEQUENCE_GAP": STATE_FORBIDS,
    "UNKNOWN_PRODUCER": STATE_FORBIDS,
    "KEY_REUSED": USED_OTHERWISE,
    "TRANSACTION_ABORTED": DECIDED_AGAINST,
    "TRANSACTION_PENDING": UNAVAILABLE,
    "GROUP_FENCED": STATE_FORBIDS,
    # the cluster's state
    "NOT_LEADER": UNAVAILABLE,
    "PRECONDITION_FAILED": STATE_FORBIDS,
    "TOO_FEW_REPLICAS": UNAVAILABLE,
    "OUTCOME_UNKNOWN": OUTCOME_UNKNOWN,
    "RESOURCE_EXHAUSTED": TOO_MUCH,
    "TOO_LARGE": TOO_LARGE,
    # disks
    "STORAGE": INTERNAL,
    "DISK_FULL": NO_ROOM,
    "SYNC_FAILED": INTERNAL,
    "CORRUPT_DATA": DAMAGED,
    "IDENTITY_LOST": DAMAGED,
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
    "WRONG_CLUSTER": STATE_FORBIDS,
    "WRONG_NODE": STATE_FORBIDS,
    "ROLLED_BACK": STATE_FORBIDS,
    "NODE_REMOVED": REMOVED,
    "NODE_IS_ALIVE": STATE_FORBIDS,
    "NOT_REGISTERED": UNAVAILABLE,
    "UNSUPPORTED_OPERATION": NOT_SERVED,
    "UNREACHABLE": UNAVAILABLE,
    "CONNECTION_LOST": OUTCOME_UNKNOWN,
    "DEADLINE_EXCEEDED": TOO_LATE,
    "STREAM_CANCELLED": CALLED_OFF,
}
"""By `AngariumError.code`."""


def status_of(error: AngariumError) -> Status:
    """Return what the doors call `error`, also if only a newer version knows its code."""
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
