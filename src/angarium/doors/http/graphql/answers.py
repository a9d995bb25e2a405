"""Answers as GraphQL shows them, and what went wrong in the one table's terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphql import GraphQLError

from angarium.doors.status import status_of
from angarium.errors import InvalidArgument, retry_after_of
from angarium.wire.error_codec import failure_of

if TYPE_CHECKING:
    from graphql import ExecutionResult


class InvalidDocument(InvalidArgument):
    """A document that the schema does not allow; `errors` says where and why."""

    def __init__(self, errors: list[GraphQLError]) -> None:
        super().__init__("; ".join(one.message for one in errors[:5]))
        self.errors = errors


def answer_of(result: ExecutionResult) -> dict[str, Any]:
    """Return a result as JSON shows it."""
    answer: dict[str, Any] = {"data": result.data}
    if result.errors:
        answer["errors"] = [told(one) for one in result.errors]
    return answer


def refusal(error: Exception) -> dict[str, Any]:
    """Return the answer to a request that was not executed at all."""
    if isinstance(error, InvalidDocument):
        return {"errors": [told(one) for one in error.errors]}
    return {"errors": [told(GraphQLError(str(error), original_error=error))]}


def told(error: GraphQLError) -> dict[str, Any]:
    """Return an error: where it stands in the document, and our code beside the usual one."""
    original = error.original_error
    # What graphql-core itself refuses is a mistake of the caller; it wraps what it says of
    # variables in a second error of its own.
    known = original
    if known is None or isinstance(known, GraphQLError):
        known = InvalidArgument(error.message)
    failure = failure_of(known)
    shown: dict[str, Any] = {"message": failure.message}
    if error.locations:
        shown["locations"] = [one.formatted for one in error.locations]
    if error.path is not None:
        shown["path"] = error.path
    shown["extensions"] = {
        "code": status_of(known).graphql,
        "angariumCode": failure.code,
        "retriable": failure.retriable,
        "fault": failure.fault,
    }
    wait_s = retry_after_of(known)
    if wait_s is not None:
        shown["extensions"]["retryAfter"] = wait_s
    return shown
