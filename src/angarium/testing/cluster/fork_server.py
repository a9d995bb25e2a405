"""Programs of ours, forked from one process that has imported what nodes need.

Most of what a node costs at its start are imports: the better part of a second of processor time.
Who starts hundreds of nodes has a server of this kind started once, and each node is a copy of it:
a process of its own all the same, with its own id, memory, files and signals, that is paused,
killed and waited for like any other. Its parent is who asked for it, not the server.

    python -m angarium.testing.cluster.fork_server

reads a `Wish` a line and answers each with the id of the process.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

IMPORTED: Final = (
    "angarium.app.composition",
    "angarium.app.serving",
    "angarium.cli.commands.serve",
    "angarium.cli.main",
    "angarium.client",
    "angarium.doors.grpc",
    "angarium.doors.http",
    "uvloop",
)
"""What a node imports sooner or later, and nothing that starts threads."""

FORKED: Final = frozenset(
    {
        "angarium",
        "angarium.testing.cluster.other_release",
        "angarium.testing.cluster.small_node",
    }
)
"""Programs that are the same whether they are forked or not. One that changes what it imports, such
as `odd_clock`, is none of them."""

LOOK_EVERY_S: Final = 0.005

_HOW_OPENED: Final = (os.O_RDONLY, *([os.O_WRONLY | os.O_APPEND | os.O_CREAT] * 2))

_PR_SET_CHILD_SUBREAPER: Final = 36
"""prctl(2): grandchildren whose parent has ended become children of this process."""


class Wish(msgspec.Struct, array_like=True):
    """A program to be run."""

    words: list[str]
    """The module, and its arguments."""
    environment: dict[str, str]
    folder: str
    """Where it runs."""
    files: tuple[str, str, str]
    """Its standard input, and what output and errors are appended to."""
    parent: int


class Forked:
    """A process that was forked for us, as `subprocess.Popen` shows its own."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._asking = threading.Lock()
        """One thread may wait for it while another one looks: only one of them is told."""

    def poll(self) -> int | None:
        """Return how it ended; None while it runs. Negative: by that signal."""
        with self._asking:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
            return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait until it has ended; raises `subprocess.TimeoutExpired`."""
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(LOOK_EVERY_S)
        return status

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended: its id may be somebody else's then."""
        if self.poll() is None:
            os.kill(self.pid, number)


class ForkServer:
    """The server as who asks it sees it; started with the first wish."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._asking = threading.Lock()

    def may_run(self, words: Sequence[str]) -> bool:
        """Tell whether a command is one of ours that may be forked."""
        return tuple(words[:2]) == (sys.executable, "-m") and words[2] in FORKED

    def start(
        self,
        *,
        words: Sequence[str],
        environment: Mapping[str, str],
        files: tuple[str, str, str],
        folder: str = "",
    ) -> Forked:
        """Run a command that may be forked; return its process."""
        assert self.may_run(words), words
        here = folder or str(Path.cwd())
        wish = Wish(list(words[2:]), dict(environment), here, files, os.getpid())
        with self._asking:
            server = self._server()
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(msgspec.json.encode(wish) + b"\n")
            server.stdin.flush()
            return Forked(int(server.stdout.readline()))

    def run(
        self,
        words: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: str,
        given: str = "",
        timeout_s: float,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, as `subprocess.run` does."""
        with TemporaryDirectory() as kept:
            files = [Path(kept) / name for name in ("in", "out", "errors")]
            files[0].write_text(given, encoding="utf-8")
            took, told, complained = map(str, files)
            process = self.start(
                words=words,
                environment=environment,
                files=(took, told, complained),
                folder=folder,
            )
            try:
                status = process.wait(timeout_s)
            except BaseException:
                process.send_signal(signal.SIGKILL)
                raise
            said = [one.read_text(encoding="utf-8", errors="replace") for one in files[1:]]
        return subprocess.CompletedProcess(list(words), status, *said)

    def _server(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
                raise OSError("this kernel gives grandchildren to nobody but the first process")
            # It ends with its standard input, which ends with this process.
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        return self._process


def main() -> None:
    """Serve until nobody asks any more; in each process that is asked for, run its program."""
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection would write to pages that all share
    while line := sys.stdin.buffer.readline():
        wish = msgspec.json.decode(line, type=Wish)
        receiving, sending = os.pipe()
        between = os.fork()
        if between == 0:
            pid = os.fork()
            if pid == 0:
                os.close(receiving)
                os.close(sending)
                _run(wish)
                return
            os.write(sending, b"%d\n" % pid)
            os._exit(0)
        os.close(sending)
        os.waitpid(between, 0)
        sys.stdout.buffer.write(os.read(receiving, 64))
        sys.stdout.buffer.flush()
        os.close(receiving)


def _run(wish: Wish) -> None:
    """Become the program that is wished for."""
    os.setpgid(0, 0)
    os.chdir(wish.folder)
    for target, (path, how) in enumerate(zip(wish.files, _HOW_OPENED, strict=True)):
        file = os.open(path, how, 0o600)
        os.dup2(file, target)
        os.close(file)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for good
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(  # noqa: SIM115
        2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )
    os.environ.clear()
    os.environ.update(wish.environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    while os.getppid() != wish.parent:
        time.sleep(LOOK_EVERY_S)  # until the process between the two is gone
    module, *words = wish.words
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
