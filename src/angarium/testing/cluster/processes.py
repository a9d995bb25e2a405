"""One node as a real process: started, killed, paused, resumed, wiped, and never left behind.

Every process dies with the one that started it, also with one that is killed (`--parent`), and
`NodeProcess` signals its own child only, by its process id. Standard output and error of all
starts of a node go to one file, whose end is shown where a test fails.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from angarium.app.processes import is_new
from angarium.testing.reserved_port import HOST, ReservedPort

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from angarium.ids import NodeId
    from angarium.testing.cluster.fork_server import Forked, ForkServer

ANGARIUM: Final = (sys.executable, "-m", "angarium", "serve")
"""The program of a node, as users start it."""

SMALL: Final = (sys.executable, "-m", "angarium.testing.cluster.small_node")
"""The same node with small files and frequent snapshots, so that a short test meets them."""

STOP_SECONDS_MAX: Final = 60.0
"""How long a graceful stop may take on a busy machine; the node itself gives up after 20 s."""

LOG_BYTES_SHOWN: Final = 6_000

_Value: TypeAlias = "int | str | list[str]"


class NodeProcess:
    """One node, through all its starts."""

    fork_server: ClassVar[ForkServer | None] = None
    """What nodes are forked by, where that is wanted; else each is started as users start it."""

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
        doors: bool = False,
        sections: Mapping[str, Mapping[str, int | str]] | None = None,
    ) -> None:
        """`tls` is a folder with ca.crt, node.crt and node.key; `doors` opens those for gRPC and
        HTTP, too. `sections` are further settings, by their section."""
        self.name = name
        self.id: NodeId | None = None
        """The id that the cluster has given it; known once it is a member."""
        self.port = ReservedPort()
        """Where it listens from the next start on."""
        self.advertised_port = advertised_port
        self.data = data or folder / name
        self._folder = folder
        self.program = tuple(program)
        """What the next start runs."""
        self._settings = dict(settings or {})
        self.discovery: dict[str, int | str] = {}
        """The section `[discovery]` of the next start."""
        self.region = ""
        """Where it says that it is, from the next start on."""
        self._tls = tls
        self._sections = {name: dict(one) for name, one in (sections or {}).items()}
        self.grpc_port = ReservedPort() if doors else None
        self.http_port = ReservedPort() if doors else None
        self.join_token = ""
        """What it brings to be let in, if it has no data."""
        self._process: subprocess.Popen[bytes] | Forked | None = None

    @property
    def config(self) -> Path:
        """Its node.toml, as of its last start."""
        return self._folder / f"{self.name}.toml"

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
        words = [*self.program, "--config", str(settings), "--parent", str(os.getpid())]
        if self.fork_server is not None and self.fork_server.may_run(words):
            self._process = self.fork_server.start(
                words=words,
                environment=_environment(),
                files=(os.devnull, str(self.log), str(self.log)),
            )
            return
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                words,
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
        for port in (self.port, self.grpc_port, self.http_port):
            if port is not None:
                port.release()

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
        node: dict[str, _Value] = {"data": str(self.data)}
        if form:
            node["form"] = True
        elif join:
            node["join"] = list(join)
            if self.id is not None and is_new(self.data):
                node["id"] = int(self.id)
        if self.region:
            node["region"] = self.region
        if self.join_token:
            token = self._folder / f"{self.name}.join-token"
            token.write_text(self.join_token, encoding="ascii")
            node["join_token_file"] = str(token)
        listen: dict[str, _Value] = {"host": HOST, "wire_port": self.port.number}
        for door, port in (("grpc_port", self.grpc_port), ("http_port", self.http_port)):
            listen[door] = "off" if port is None else port.number
        sections: dict[str, dict[str, _Value]] = {
            "node": node,
            "listen": listen,
            "log": {"format": "json", "level": "INFO"},
            "cluster": dict(self._settings),
        }
        if self.advertised_port is not None:
            sections["advertise"] = {"wire_port": self.advertised_port}
        if self._tls is not None:
            names = {"certificate": "node.crt", "private_key": "node.key", "authorities": "ca.crt"}
            sections["tls"] = {one: str(self._tls / file) for one, file in names.items()}
        if self.discovery:
            sections["discovery"] = dict(self.discovery)
        for name, more in self._sections.items():
            sections[name] = {**sections.get(name, {}), **more}
        self.config.write_text(_written(sections), encoding="utf-8")
        return self.config


def _written(sections: Mapping[str, Mapping[str, _Value]]) -> str:
    lines: list[str] = []
    for section, content in sections.items():
        lines.append(f"[{section}]")
        # JSON's texts, numbers, truths and lists of texts are TOML's as well.
        lines += [f"{name} = {json.dumps(value)}" for name, value in content.items()]
    return "\n".join(lines) + "\n"


def _environment() -> dict[str, str]:
    """Return our environment without settings of a node: each has its own file."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ANGARIUM_")}
