"""Errors on their way out: problem details (RFC 9457) with the code, as every door tells it.

The status comes from the one table. What HTTP itself has a word for (a wrong method, a media type
nobody reads here) keeps its status, and says INVALID_ARGUMENT like any other wrong request.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from angarium.doors.status import status_of
from angarium.errors import LimitExceeded, retry_after_of
from angarium.wire.error_codec import Failure, failure_of
from angarium.wire.http.messages import Response
from angarium.wire.http.request_reader import RequestRefused

PROBLEM_JSON: Final = b"application/problem+json"
CODE_HEADER: Final = b"X-Angarium-Code"
HINT_HEADER: Final = b"X-Leader-Hint"
RETRY_HEADER: Final = b"Retry-After"
RETRY_SECONDS: Final = 1
"""What a client that may try again is told to wait, at the least."""

WAYS_HEADER: Final = b"WWW-Authenticate"
WAYS: Final = b'Bearer realm="angarium", Basic realm="angarium", charset="UTF-8"'
"""How to say who one is."""

READABLE_HEADERS: Final = (
    CODE_HEADER,
    HINT_HEADER,
    RETRY_HEADER,
    b"Angarium-Node",
    b"Angarium-Region",
)
"""Headers of answers that the scripts of a web page may read."""

_RESERVED: Final = frozenset({"type", "title", "status", "detail", "code", "retriable", "fault"})


class ProblemOut(msgspec.Struct, frozen=True, rename={"kind": "type"}):
    """Why a request failed; RFC 9457. Further members say more where more is known."""

    kind: str
    title: str
    status: int
    detail: str
    code: str
    """Stable, and the same through every door."""
    retriable: bool
    """Whether the same request may succeed later."""
    fault: str
    """Who has to do something about it: caller, cluster or data."""


def http_status(error: Exception) -> int:
    """Return the status with which `error` is answered."""
    if isinstance(error, RequestRefused):
        return error.status
    if isinstance(error, LimitExceeded) and error.limit in {"body_bytes_max", "batch_bytes_max"}:
        return 413
    return status_of(error).http


def problem(
    error: Exception, *, status: int | None = None, extra: dict[str, object] | None = None
) -> Response:
    """Return the answer for `error`; `extra` members stand beside the usual ones."""
    if isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    failure = failure_of(error)
    code = status or http_status(error)
    headers = [(CODE_HEADER, failure.code.encode())]
    if failure.retriable and code in {429, 503}:
        wait_s = max(RETRY_SECONDS, math.ceil(retry_after_of(error) or 0))
        headers.append((RETRY_HEADER, str(wait_s).encode()))
    if code == 401:
        headers.append((WAYS_HEADER, WAYS))
    hint = getattr(error, "leader_hint", None)
    if isinstance(hint, str):
        headers.append((HINT_HEADER, hint.encode()))
    if isinstance(error, RequestRefused):
        headers += error.headers
    body = {**problem_members(failure, code), **(extra or {})}
    return Response(code, msgspec.json.encode(body), PROBLEM_JSON, tuple(headers))


def problem_members(failure: Failure, status: int) -> dict[str, object]:
    """Return an error as an object: in a body, in an event, in a message of a WebSocket."""
    details = {
        name: value
        for name, value in failure.details.items()
        if name not in _RESERVED and value is not None
    }
    return {
        "type": f"urn:angarium:{failure.code.lower().replace('_', '-')}",
        "title": failure.code.replace("_", " ").capitalize(),
        "status": status,
        "detail": failure.message,
        "code": failure.code,
        "retriable": failure.retriable,
        "fault": failure.fault,
        **details,
    }


def told(error: Exception) -> dict[str, object]:
    """Return an error as an object, for the inside of a stream."""
    if isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return problem_members(failure_of(error), http_status(error))
