"""Errors that travel: as (code, message, details) there, as the same class again here.

An exception from outside the tree is a mistake in our own code: its text stays in the log of the
node it happened on, and the peer is told `INTERNAL` and no more.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from angarium.errors import AngariumError, Fault, rebuilt
from angarium.wire.errors import RemoteError

MESSAGE_CHARACTERS_MAX: Final = 4_096
"""Longer messages are cut: an error must always fit the smallest frame a peer may insist on."""

DETAILS_MAX: Final = 16
"""Attributes of an error that travel with it; the rest stays behind."""

DETAIL_CHARACTERS_MAX: Final = 256
"""A text among the details that is longer than this stays behind."""

Detail = bool | int | float | str | None

_log = logging.getLogger(__name__)


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as it travels.

    `retriable` and `fault` go along so that an older peer can treat a newer code rightly.
    """

    code: str
    message: str = ""
    retriable: bool = False
    fault: str = Fault.CLUSTER.value
    details: dict[str, Detail] = {}


def failure_of(error: BaseException) -> Failure:
    """Return what to tell a peer about `error`."""
    if not isinstance(error, AngariumError):
        _log.error("an unexpected error was answered with INTERNAL", exc_info=error)
        return Failure(AngariumError.code, "the node met an unexpected error; its log has it")
    return Failure(
        error.code,
        str(error)[:MESSAGE_CHARACTERS_MAX],
        error.retriable,
        error.fault.value,
        _details_of(error),
    )


def error_of(failure: Failure) -> AngariumError:
    """Return the error that `failure` describes, of the same class where this version has it."""
    error = rebuilt(failure.code, failure.message)
    if error is None:
        return RemoteError(
            failure.message,
            code=failure.code,
            retriable=failure.retriable,
            fault=_fault_of(failure.fault),
        )
    for name, value in failure.details.items():
        # A peer may fill what the class leaves open, never replace what the class itself says.
        if name.isidentifier() and not name.startswith("_") and not hasattr(type(error), name):
            error.__dict__[name] = value
    return error


def _details_of(error: AngariumError) -> dict[str, Detail]:
    own = type(error)
    details: dict[str, Detail] = {}
    for name, value in vars(error).items():
        if name.startswith("_") or hasattr(own, name) or not _may_travel(value):
            continue
        details[name] = value
        if len(details) == DETAILS_MAX:
            break
    return details


def _may_travel(value: object) -> bool:
    if value is None or isinstance(value, bool | float):
        return True
    if isinstance(value, int):
        return -(1 << 63) <= value < 1 << 64
    return isinstance(value, str) and len(value) <= DETAIL_CHARACTERS_MAX


def _fault_of(name: str) -> Fault:
    try:
        return Fault(name)
    except ValueError:
        return Fault.CLUSTER
