"""A unit test touches no socket, disk or process, and does not sleep: this tells one that does.

What is done is seen where it happens, by Python's audit events, so it does not matter which library
does it. uvloop and grpc have sockets of their own and are watched where they open them. Reading is
allowed: golden files and the pages of docs are read by many.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import grpc.aio
import pytest
import uvloop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT: Final = Path(__file__).resolve().parents[2]
WHERE_IT_BELONGS: Final = (
    "tests/unit holds what needs no socket, no disk, no process and no sleep (CONTRIBUTING.md). "
    "Give the part a port that the test can stand behind, or move the test to tests/component"
)

DEEDS: Final = {
    "socket.bind": "listens on a socket",
    "socket.connect": "connects a socket",
    "subprocess.Popen": "starts a process",
    "os.fork": "forks a process",
    "os.posix_spawn": "starts a process",
    "os.mkdir": "makes a folder",
}
"""Audit events, and what a test does that raises one."""

WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT
ALLOWED: Final = ("__pycache__", ".hypothesis", os.devnull)
"""Parts of paths that belong to Python and to the tools of testing."""


class Watch:
    """What the test that runs now did and should not; nothing is noted between tests."""

    def __init__(self) -> None:
        self.is_on = False
        self.deeds: dict[str, str] = {}
        """Each deed, and the line of ours that did it first."""

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Hear of every audited event of this process; it stays for good, so it is quick."""
        if not self.is_on:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITES and _is_a_file(path):
                self.note(f"opens {os.fsdecode(path)} for writing")
        elif event in DEEDS and not (event == "os.mkdir" and not _is_a_file(arguments[0])):
            self.note(DEEDS[event])

    def note(self, deed: str) -> None:
        """Remember a deed with the line of this repository that it comes from."""
        self.is_on = False  # what follows here may itself be audited
        try:
            lines = [one for one in traceback.extract_stack() if one.filename != __file__]
            ours = [at for at, one in enumerate(lines) if one.filename.startswith(str(ROOT))]
            last = ours[-1] if ours else len(lines) - 1
            # What Hypothesis writes to explain a failure is its own affair.
            if not any("/hypothesis/" in one.filename for one in lines[last + 1 :]):
                line = lines[last]
                where = f"{line.filename.removeprefix(f'{ROOT}/')}:{line.lineno}"
                self.deeds.setdefault(deed, where)
        finally:
            self.is_on = True

    def noting(self, deed: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function`, which raises no audit event, so that each call is noted."""

        def noted(*arguments: Any, **options: Any) -> Any:
            if self.is_on:
                self.note(deed)
            return function(*arguments, **options)

        return noted


def _is_a_file(path: object) -> bool:
    """Tell whether a path names a file of the test's own: descriptors are open already."""
    return isinstance(path, str | bytes | os.PathLike) and not any(
        part in os.fsdecode(path) for part in ALLOWED
    )


WATCH: Final = Watch()
sys.addaudithook(WATCH.audit)


@pytest.fixture(autouse=True)
def no_io(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that does what no unit test does, and say where it belongs."""
    for owner, name, deed in (
        (time, "sleep", "sleeps"),
        (uvloop.Loop, "create_server", "listens on a socket"),
        (uvloop.Loop, "create_connection", "connects a socket"),
        (grpc.aio, "server", "opens a gRPC server"),
        (grpc.aio, "insecure_channel", "opens a gRPC channel"),
    ):
        monkeypatch.setattr(owner, name, WATCH.noting(deed, getattr(owner, name)))
    WATCH.deeds.clear()
    WATCH.is_on = True
    try:
        yield
    finally:
        WATCH.is_on = False
    if WATCH.deeds:
        done = "; ".join(f"{deed} ({line})" for deed, line in WATCH.deeds.items())
        pytest.fail(f"this is no unit test, it {done}. {WHERE_IT_BELONGS}", pytrace=False)
