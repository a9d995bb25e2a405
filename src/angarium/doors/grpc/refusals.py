"""Errors on their way out: a gRPC status with everything a client needs to decide what to do.

An error of our tree becomes the status of the one table, a google.rpc.ErrorInfo in the status
details, and two trailing headers for clients that cannot read details. Anything else is a mistake
of ours: its text stays in the log, and the caller is told INTERNAL.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from angarium.doors.status import INTERNAL, status_of
from angarium.errors import AngariumError, InvalidArgument, retry_after_of
from angarium.proto.v1 import broker_pb2 as pb
from angarium.wire.error_codec import Failure, failure_of
from angarium.wire.grpc import CallRefused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from google.protobuf.message import Message

    from angarium.ids import NodeId
    from angarium.wire.grpc import GrpcCode

DOMAIN: Final = "angarium"
CODE_KEY: Final = "x-angarium-code"
HINT_KEY: Final = "x-leader-hint"
PUSHBACK_KEY: Final = "grpc-retry-pushback-ms"
"""Where gRPC itself looks, in clients that are told to repeat calls, for how long to wait."""
DETAILS_KEY: Final = "grpc-status-details-bin"

# Trailing headers are bounded: clients take 8 KiB unless told otherwise, and gRPC escapes some
# bytes of the message as three. The three bounds below stay under that together.
MESSAGE_BYTES_MAX: Final = 1_024
"""A longer message is cut."""
METADATA_BYTES_MAX: Final = 768
"""What does not fit into the metadata of an ErrorInfo is left out."""
EXTRA_BYTES_MAX: Final = 1_024
"""A further detail that is longer is left out."""


class Refusals:
    """How calls end that met an error. `address_of` finds the gRPC address of a node that leads."""

    def __init__(self, address_of: Callable[[NodeId], Awaitable[str | None]]) -> None:
        self._address_of = address_of

    async def of(self, error: Exception, *, extra: Iterable[Message] = ()) -> CallRefused:
        """Return what ends a call; `extra` messages go into the details where they are short."""
        known = expected(error)
        if isinstance(known, CallRefused):
            return known
        failure = failure_of(known)
        hint = None
        leader = getattr(known, "leader", None)
        if leader is not None:
            hint = await self._address_of(leader)
        message = _cut(failure.message)
        info = _error_info(failure, hint)
        wait_ms = retry_after_ms(known)
        about = [info, *extra] if wait_ms is None else [info, _retry_info(wait_ms), *extra]
        status = status_of(known) if isinstance(known, AngariumError) else INTERNAL
        trailing: list[tuple[str, str | bytes]] = [
            (DETAILS_KEY, _details(status.grpc, message, about)),
            (CODE_KEY, failure.code),
        ]
        if hint is not None:
            trailing.append((HINT_KEY, hint))
        if wait_ms is not None:
            trailing.append((PUSHBACK_KEY, str(wait_ms)))
        return CallRefused(status.grpc, message, trailing)


def expected(error: Exception) -> Exception:
    """Return `error` in terms of our tree, where it is one that a caller can cause."""
    if isinstance(error, ExceptionGroup):
        # From the tasks of a stream: the first one ended it, the others followed.
        return expected(error.exceptions[0])
    if isinstance(error, DecodeError):
        return InvalidArgument("the request is not the protobuf message that this call takes")
    return error


def error_message(error: Exception) -> pb.Error:
    """Return `error` for the inside of an answer."""
    known = expected(error)
    failure = failure_of(known)
    return pb.Error(
        code=failure.code,
        message=_cut(failure.message),
        retriable=failure.retriable,
        retry_after_ms=retry_after_ms(known),
    )


def retry_after_ms(error: Exception) -> int | None:
    """Return in how many milliseconds an error is worth another try; None if that is not known."""
    wait_s = retry_after_of(error)
    return None if wait_s is None else math.ceil(wait_s * 1_000)


def _retry_info(wait_ms: int) -> error_details_pb2.RetryInfo:
    info = error_details_pb2.RetryInfo()
    info.retry_delay.FromMilliseconds(wait_ms)
    return info


def _error_info(failure: Failure, hint: str | None) -> error_details_pb2.ErrorInfo:
    metadata = {"retriable": str(failure.retriable).lower(), "fault": failure.fault}
    if hint is not None:
        metadata["leader_hint"] = hint
    room = METADATA_BYTES_MAX
    for name, value in failure.details.items():
        if value is None:
            continue
        text = str(value).lower() if isinstance(value, bool) else _cut(str(value))
        room -= len(name) + len(text.encode())
        if room < 0:
            break
        metadata[name] = text
    return error_details_pb2.ErrorInfo(reason=failure.code, domain=DOMAIN, metadata=metadata)


def _details(code: GrpcCode, message: str, details: list[Message]) -> bytes:
    status = status_pb2.Status(code=code, message=message)
    for number, detail in enumerate(details):
        packed = any_pb2.Any()
        packed.Pack(detail)
        if number == 0 or packed.ByteSize() <= EXTRA_BYTES_MAX:
            status.details.append(packed)
    return bytes(status.SerializeToString())


def _cut(text: str) -> str:
    # A lone half of a surrogate pair has no UTF-8 form, and half a character at the cut neither.
    return text.encode(errors="replace")[:MESSAGE_BYTES_MAX].decode(errors="ignore")
