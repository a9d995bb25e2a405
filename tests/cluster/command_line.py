"""The `angarium` command as a person runs it: another process, a folder, maybe a terminal."""

from __future__ import annotations

import json
import os
import pty
import random
import select
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Self

from angarium.bench.cluster import reserve_ports
from angarium.testing.cluster.fork_server import ForkServer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

COMMAND = (sys.executable, "-m", "angarium")
FORK_SERVER = ForkServer()
"""What this process forks nodes and commands by; it is started when the first one is wanted."""

READY_SECONDS = 120.0
"""How long a start may take on a machine that runs other tests as well."""


def environment() -> dict[str, str]:
    """Return ours without what would steer the command elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANGARIUM_")}
    return kept | {"TERM": "xterm", "ANGARIUM_PROFILES": "/nonexistent"}


def angarium(
    folder: Path, *words: str, stdin: str = "", status: int | None = 0
) -> subprocess.CompletedProcess[str]:
    """Run a command in `folder` to its end."""
    done = ran(folder, *words, stdin=stdin)
    assert "Traceback" not in done.stderr, done.stderr
    assert status is None or done.returncode == status, done.stderr
    return done


def ran(
    folder: Path, *words: str, stdin: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in `folder` to its end, with more variables in its environment.

    It is forked: what hundreds of commands cost are their imports. What a person starts and leaves
    running (`Running`), and what a shell starts, imports for itself.
    """
    return FORK_SERVER.run(
        [*COMMAND, *words],
        environment=environment() | more,
        folder=str(folder),
        given=stdin,
        timeout_s=120.0,
    )


def eventually(what: Callable[[], Any], *, seconds: float = 60.0) -> None:
    """Wait until `what` returns something true."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, f"this did not happen within {seconds} s"
        time.sleep(0.05)


def free_port_base() -> int:
    """Return a port from which on three nodes have room, and no other test is given it."""
    while True:
        base = random.randrange(20_000, 32_000, 10)  # below what the kernel hands out itself
        if reserve_ports(range(base, base + 30)):
            return base


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that only waits to be buried does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:  # noqa: PTH123
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Running:
    """A command that runs until it is told to end, on a terminal or not."""

    def __init__(self, folder: Path, *words: str, on_terminal: bool = False) -> None:
        self.folder = folder
        self._words = words
        self._said = b""
        self._terminal: int | None = None
        self._on_terminal = on_terminal

    def __enter__(self) -> Self:
        if self._on_terminal:
            self._terminal, other = pty.openpty()
            self._start(stdin=other, stdout=other, stderr=other)
            os.close(other)
        else:
            read, write = os.pipe()
            self._terminal = read
            self._start(stdin=subprocess.DEVNULL, stdout=write, stderr=write)
            os.close(write)
        return self

    def _start(self, **streams: int) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *self._words],
            cwd=self.folder,
            env=environment(),
            start_new_session=True,
            preexec_fn=_take_terminal if self._on_terminal else None,  # noqa: PLW1509
            **streams,  # type: ignore[call-overload]
        )

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.wait()
        if error[0] is not None:
            print(self.said())
            for log in self.folder.glob(".angarium/*.log"):
                print(log.name, log.read_text(encoding="utf-8")[-2_000:], sep="\n")
        assert self._terminal is not None
        os.close(self._terminal)

    def said(self) -> str:
        """Return everything it has written so far."""
        assert self._terminal is not None
        while select.select([self._terminal], [], [], 0)[0]:
            try:
                found = os.read(self._terminal, 65_536)
            except OSError:  # a terminal whose other side is gone
                break
            if not found:
                break
            self._said += found
        return self._said.decode()

    def wait_for(self, text: str, *, seconds: float = READY_SECONDS) -> None:
        """Wait until it has written `text`."""
        eventually(lambda: text in self.said() or self._check(text), seconds=seconds)

    def _check(self, text: str) -> bool:
        assert self.process.poll() is None, f"it ended without saying {text!r}: {self.said()}"
        return False

    def type_in(self, keys: bytes) -> None:
        """Press keys."""
        assert self._terminal is not None
        os.write(self._terminal, keys)

    def wait(self) -> int:
        """Wait for its end, reading on: a full pipe must not hold it up."""
        eventually(lambda: (self.said(), self.process.poll() is not None)[1], seconds=120)
        return int(self.process.wait())

    def interrupt(self) -> int:
        """Stop it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        return self.wait()


class Up(Running):
    """An `angarium up`, on a terminal or not."""

    def __init__(
        self, folder: Path, *, on_terminal: bool = False, more: Sequence[str] = ()
    ) -> None:
        base = str(free_port_base())
        super().__init__(folder, "up", "--port-base", base, *more, on_terminal=on_terminal)

    @property
    def pids(self) -> list[int]:
        """The nodes' processes, as it has written them down."""
        state = json.loads((self.folder / ".angarium" / "up.json").read_bytes())
        return [node["pid"] for node in state["nodes"] if node["pid"]]


def _take_terminal() -> None:
    """Make the terminal on standard input the one whose keys reach this process."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
