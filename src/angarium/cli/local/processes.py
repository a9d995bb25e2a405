"""The nodes of a local cluster as child processes. They never outlive this one.

Each child asks the kernel to be killed when its parent ends (`angarium.app.parent`), so that even
`kill -9` on the supervisor leaves nothing behind. Children have process groups of their own:
Ctrl-C reaches the supervisor alone, which then stops them in good order.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from angarium.cli.local.folder import LOG_BYTES_MAX
from angarium.log.folder_modes import private_opener

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

STOP_SECONDS_MAX: Final = 10.0
"""Nodes that have not stopped by then are killed; their data survive that."""

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Child:
    """One node's process, from its latest start on."""

    def __init__(self, *, settings: Path, log: Path) -> None:
        self._settings = settings
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._log_begin = 0
        """Where in the log its latest start began."""

    def start(self) -> None:
        """Start it, or start it again."""
        if self._log.exists() and self._log.stat().st_size > LOG_BYTES_MAX:
            self._log.replace(self._log.with_suffix(".log.old"))
        command = [sys.executable, "-m", "angarium", "serve", "--config", str(self._settings)]
        with open(self._log, "ab", opener=private_opener) as log:
            self._log_begin = log.tell()
            self._process = subprocess.Popen(  # noqa: S603  (our own command)
                [*command, "--parent", str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(),
                process_group=0,
            )

    @property
    def pid(self) -> int | None:
        """The process's id while it runs."""
        return self._process.pid if self._process is not None and self.is_running else None

    @property
    def is_running(self) -> bool:
        """Tell whether it runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs."""
        return None if self._process is None else self._process.poll()

    @property
    def ending(self) -> str:
        """How it ended, in words; empty while it runs."""
        status = self.status
        if status is None:
            return ""
        if status < 0:
            return f"killed by {signal.Signals(-status).name}"
        return f"ended with status {status}"

    @property
    def memory_bytes(self) -> int | None:
        """Its resident memory; None if that cannot be told."""
        try:
            with open(f"/proc/{self.pid}/statm", encoding="ascii") as statm:  # noqa: PTH123
                return int(statm.read().split()[1]) * _PAGE
        except (OSError, ValueError, IndexError):
            return None

    def send(self, number: int) -> None:
        """Send a signal, if there is somebody to receive it."""
        if self._process is not None and self.is_running:
            self._process.send_signal(number)

    def last_lines(self, count: int) -> list[str]:
        """Return the end of its log, as far as it is about the latest start."""
        with self._log.open("rb") as log:
            log.seek(max(self._log_begin, self._log.stat().st_size - 8192))
            return log.read().decode("utf-8", "replace").splitlines()[-count:]


def stop_all(children: Iterable[Child]) -> None:
    """Stop every child gracefully; kill those that take too long. Returns when all are gone."""
    running = [child for child in children if child.is_running]
    for child in running:
        child.send(signal.SIGTERM)
        # A process that somebody paused could not hear it.
        child.send(signal.SIGCONT)
    deadline = time.monotonic() + STOP_SECONDS_MAX
    try:
        while time.monotonic() < deadline and any(child.is_running for child in running):
            time.sleep(0.02)
    finally:
        # Also when somebody presses Ctrl-C once more.
        for child in running:
            child.send(signal.SIGKILL)
        while any(child.is_running for child in running):
            time.sleep(0.01)


def _environment() -> dict[str, str]:
    """Return our environment without settings of a node: each child has its own node.toml."""
    sections = ("NODE", "LISTEN", "ADVERTISE")
    prefixes = tuple(f"ANGARIUM_{section}_" for section in sections)
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
