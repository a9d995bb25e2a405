"""One node as a real process: started, killed, paused, resumed, wiped, and never left behind.

Every process dies with the one that started it, also with one that is killed (`--parent`), and
`NodeProcess` signals its own child only, by its process id. Standard output and error of all
starts of a node go to one file, whose end is shown where a test fails.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from angarium.app.processes import is_new
from angarium.testing.reserved_port import HOST, ReservedPort

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from angarium.ids import NodeId

ANGARIUM: Final = (sys.executable, "-m", "angarium", "serve")
"""The program of a node, as users start it."""

SMALL: Final = (sys.executable, "-m", "angarium.testing.cluster.small_node")
"""The same node with small files and frequent snapshots, so that a short test meets them."""

STOP_SECONDS_MAX: Final = 60.0
"""How long a graceful stop may take on a busy machine; the node itself gives up after 20 s."""

LOG_BYTES_SHOWN: Final = 6_000


class NodeProcess:
    """One node, through all its starts."""

    def __init__(
        self,
        *,
        name: str,
        folder: Path,
        data: Path | None = None,
        program: Sequence[str] = ANGARIUM,
        settings: Mapping[str, int | str] | None = None,
        advertised_port: int | None = None,
        tls: Path | None = None,
    ) -> None:
        """`tls` is a folder with ca.crt, node.crt and node.key."""
        self.name = name
        self.id: NodeId | None = None
        """The id that the cluster has given it; known once it is a member."""
        self.port = ReservedPort()
        self.advertised_port = advertised_port
        self.data = data or folder / name
        self._folder = folder
        self.program = tuple(program)
        """What the next start runs."""
        self._settings = dict(settings or {})
        self._tls = tls
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where others reach it: host and port."""
        return f"{HOST}:{self.advertised_port or self.port.number}"

    @property
    def log(self) -> Path:
        """The file that everything it says goes to."""
        return self._folder / f"{self.name}.log"

    # --- its life ---------------------------------------------------------------------------

    def start(self, *, join: Sequence[str] = (), form: bool = False) -> None:
        """Start it, or start it again. `join` and `form` matter while it has no data."""
        assert not self.is_running, f"{self.name} runs already"
        settings = self._write_settings(join=join, form=form)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.program, "--config", str(settings), "--parent", str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(),
                process_group=0,
            )

    @property
    def is_running(self) -> bool:
        """Tell whether there is a process, paused or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The id of the running process."""
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """How the last process ended; None while it runs. Negative: by that signal."""
        return None if self._process is None else self._process.poll()

    def kill(self) -> None:
        """End it at once, as a crash would (SIGKILL); returns when it is gone."""
        self._send(signal.SIGKILL)
        self._wait(STOP_SECONDS_MAX)

    def pause(self) -> None:
        """Stop it in its tracks (SIGSTOP): connections stay, nothing is answered."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on (SIGCONT), not knowing that it was paused."""
        self._send(signal.SIGCONT)

    def terminate(self) -> None:
        """Ask it to stop in good order (SIGTERM); returns at once."""
        self._send(signal.SIGTERM)

    def wait(self, *, within_s: float = STOP_SECONDS_MAX) -> int:
        """Wait until it has ended; return its exit status."""
        return self._wait(within_s)

    def wipe(self) -> None:
        """Throw away everything it has kept. Only while it does not run."""
        assert not self.is_running, f"{self.name} runs"
        # The folder itself stays: it may be where a small disk is mounted.
        for entry in self.data.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def move(self) -> None:
        """Have another port from the next start on. Only while it does not run."""
        assert not self.is_running, f"{self.name} runs"
        old, self.port = self.port, ReservedPort()
        old.release()

    def end(self) -> None:
        """Make sure that nothing of it is left running."""
        if self.is_running:
            self.kill()
        self.port.release()

    # --- looking at it ----------------------------------------------------------------------

    def last_words(self) -> str:
        """Return the end of its log, for a person."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, self.log.stat().st_size - LOG_BYTES_SHOWN))
                return log.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def resident_bytes(self) -> int:
        """Return how much memory it holds."""
        fields = self._proc("statm").split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    def processor_seconds(self) -> float:
        """Return how much processor time it has used since its start."""
        # The name of the program, in brackets, may hold anything; what follows is in fixed columns.
        fields = self._proc("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def open_files(self) -> int:
        """Return how many descriptors it has open."""
        return sum(1 for _ in Path(f"/proc/{self.pid}/fd").iterdir())

    def disk_bytes(self) -> int:
        """Return how much its data take on disk."""
        total = 0
        for path in self.data.rglob("*"):
            with suppress(FileNotFoundError):  # removed while we looked
                total += path.stat().st_blocks * 512
        return total

    def _proc(self, name: str) -> str:
        return Path(f"/proc/{self.pid}/{name}").read_text(encoding="utf-8")

    # --- small parts ------------------------------------------------------------------------

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None, f"{self.name} was never started"
        # Popen sends nothing once the child has been waited for, so no stranger is ever hit.
        self._process.send_signal(number)

    def _wait(self, within_s: float) -> int:
        assert self._process is not None, f"{self.name} was never started"
        return self._process.wait(within_s)

    def _write_settings(self, *, join: Sequence[str], form: bool) -> Path:
        self.data.mkdir(parents=True, exist_ok=True)
        is_empty = is_new(self.data)
        lines = ["[node]", f'data = "{self.data}"']
        if form:
            lines.append("form = true")
        elif join:
            lines.append("join = [" + ", ".join(f'"{one}"' for one in join) + "]")
            if is_empty and self.id is not None:
                lines.append(f"id = {self.id}")
        lines += ["[listen]", f'host = "{HOST}"', f"wire_port = {self.port.number}"]
        lines += ['grpc_port = "off"', 'http_port = "off"']
        if self.advertised_port is not None:
            lines += ["[advertise]", f"wire_port = {self.advertised_port}"]
        if self._tls is not None:
            names = {"certificate": "node.crt", "private_key": "node.key", "authorities": "ca.crt"}
            lines += ["[tls]", *(f'{one} = "{self._tls / file}"' for one, file in names.items())]
        lines += ["[log]", 'format = "json"', 'level = "INFO"', "[cluster]"]
        lines += [f"{name} = {_toml(value)}" for name, value in self._settings.items()]
        path = self._folder / f"{self.name}.toml"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path


def _toml(value: int | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else f'"{value}"'


def _environment() -> dict[str, str]:
    """Return our environment without settings of a node: each has its own file."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ANGARIUM_")}
