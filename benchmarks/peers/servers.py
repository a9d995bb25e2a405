"""Server processes of peers: started with a log each, stopped by their ids."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.peers.port import NotInstalled

from angarium.bench.resources import Watched, usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

START_SECONDS_MAX: Final = 90.0
"""A peer that cannot be used by then is given up, with the end of its logs."""

STOP_SECONDS_MAX: Final = 10.0
"""Servers that have not stopped by then are killed."""

LOOK_SECONDS: Final = 0.1


class Servers:
    """The processes of one peer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []

    def launch(
        self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        """Start a server; what it says goes into a file of its name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._log(name).open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [*_dying_with_us(), *command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **(environment or {})},
                    cwd=self.folder,
                    process_group=0,
                )
            )

    @property
    def watched(self) -> list[Watched]:
        """The processes that do the work: a server started by a script is the script's child."""
        return [Watched(_largest(process.pid)) for process in self._processes]

    async def until(
        self, is_ready: Callable[[], Awaitable[bool]], *refusals: type[Exception]
    ) -> None:
        """Ask until the answer is yes; `refusals` are a server's ways to say not yet."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            with suppress(*refusals, OSError, TimeoutError):
                if await is_ready():
                    return
            ended = [process for process in self._processes if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise SystemExit(f"a peer did not come up:\n{self.last_words()}")
            await asyncio.sleep(LOOK_SECONDS)

    def stop(self) -> None:
        """Stop the servers, each with the processes it started."""
        for process in reversed(self._processes):
            _signal(process, signal.SIGTERM)
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS_MAX)
            # Its group as well: a script may have gone before the server that it started.
            _signal(process, signal.SIGKILL)
            process.wait()
        self._processes.clear()

    def last_words(self) -> str:
        """Return the end of each log."""
        lines: list[str] = []
        for path in sorted(self.folder.glob("*.log")):
            said = path.read_text(encoding="utf-8", errors="replace").splitlines()
            lines += [f"{path.stem}: {line}" for line in said[-8:]]
        return "\n".join(lines)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


def program(name: str, install: str, *places: Path) -> str:
    """Return where a program is; raises `NotInstalled`."""
    for place in places:
        if (place / name).exists():
            return str(place / name)
    found = shutil.which(name)
    if found is None:
        raise NotInstalled(install)
    return found


def version_of(*command: str) -> str:
    """Return the first line of what a program says about itself."""
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    return (said.stdout or said.stderr).strip().splitlines()[0]


def _dying_with_us() -> list[str]:
    """Return what to put before a command so that it ends when this process is killed."""
    setpriv = shutil.which("setpriv")
    return [] if setpriv is None else [setpriv, "--pdeathsig", "TERM", "--"]


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _largest(pid: int) -> int:
    """Return who uses most memory among a process and its descendants."""
    family = [pid]
    for one in family:  # grows while we look
        with suppress(OSError):
            children = Path(f"/proc/{one}/task/{one}/children").read_text(encoding="ascii")
            family += map(int, children.split())

    def memory(one: int) -> int:
        used = usage(Watched(one))
        return 0 if used is None else used.memory_bytes

    return max(family, key=memory)
