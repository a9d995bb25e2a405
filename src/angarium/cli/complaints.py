"""What the command line says when something went wrong: what happened, and what to do about it."""

from __future__ import annotations

import errno
from typing import Final

from angarium.cli.main import TRACEBACK_VARIABLE
from angarium.doors.status import Exit, status_of
from angarium.errors import AngariumError, InvalidArgument
from angarium.telemetry.logs import escaped

_ADVICE: Final = {
    "UNREACHABLE": "Is the cluster running? `angarium up` starts a local one; --servers HOST:PORT,"
    " ANGARIUM_SERVERS or a profile say where another one is.",
    "DEADLINE_EXCEEDED": "The cluster may be electing a leader, or a majority may be down:"
    " `angarium cluster status` shows which nodes are alive. --timeout waits longer.",
    "NOT_LEADER": "An election passes in a moment; nodes that are missing have to come back:"
    " `angarium cluster status` shows them, `angarium up --restart` starts local ones.",
    "NOT_FOUND": "`angarium topic list` shows the topics, `angarium group list` the groups,"
    " `angarium cluster status` the nodes.",
    "ALREADY_EXISTS": "`angarium topic describe NAME` or `angarium group describe NAME` shows what"
    " is there; `topic create --if-not-exists` is content with it.",
    "OUTCOME_UNKNOWN": "It may or may not have happened: look before you repeat it.",
    "RESOURCE_EXHAUSTED": "The limit named above was reached: ask for less, or, where others use it"
    " up, wait until they are done.",
    "TOO_LARGE": "Waiting does not help: send less at once, or raise the limit if it is a topic's"
    " (`angarium topic alter NAME --batch-bytes-max 8MiB`).",
    "AUDIT_UNWRITABLE": "The topic angarium.audit cannot be written: `angarium topic describe"
    " angarium.audit` shows who leads it. If most of its replicas are gone for good, `angarium"
    " cluster recover-partition angarium.audit 0` comes first; [audit] unwritable ="
    ' "continue" does without.',
    "DISK_FULL": "A node's disk is full: make room there, or let retention drop old records"
    " (`angarium topic alter NAME --retention 1d`).",
    "WRONG_CLUSTER": "This address belongs to another cluster than the one expected.",
    "VERSION_MISMATCH": "Bring this command and the cluster to versions next to each other.",
}

_PORT_TAKEN: Final = (
    "\nAnother program listens there already; --wire-port, --grpc-port, --http-port of a node, or"
    " --port of a gateway, choose others."
)


class Refusal(InvalidArgument):
    """The command itself cannot do what it was asked to; the message says what to do."""


def sentence(error: Exception) -> str:
    """Return what to print about `error`."""
    if isinstance(error, AngariumError):
        told = [*str(error).splitlines(), *getattr(error, "__notes__", ())]
        said = "\n".join(map(escaped, told)) or error.code
        advice = "" if isinstance(error, Refusal) else _advice(error)
        return f"angarium: {said}" + (f"\n{advice}" if advice else "")
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        advice = _PORT_TAKEN if error.errno == errno.EADDRINUSE else ""
        return f"angarium: {where}{error.strerror or error}{advice}"
    return (
        f"angarium: an unexpected error, a mistake in this program: {type(error).__name__}:"
        f" {escaped(str(error))}\n{TRACEBACK_VARIABLE}=1 shows where it happened."
    )


def exit_status(error: Exception) -> int:
    """Return the exit status for `error`, as the one table of all doors has it."""
    return int(status_of(error).exit if isinstance(error, AngariumError) else Exit.INTERNAL)


def _advice(error: AngariumError) -> str:
    """Return what to do about `error`: what its code says, or the nearest class above it."""
    codes = [error.code, *(vars(one).get("code", "") for one in type(error).__mro__)]
    return next((_ADVICE[code] for code in codes if code in _ADVICE), "")
