"""Real Serf agents for tests: processes on loopback that find each other by gossip."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Self

from tests.system_programs import require_program

from angarium.addresses import Address

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HOST = "127.0.0.1"
STARTED_S = 60.0


class SerfAgents:
    """Agents of one Serf cluster, by name. Use it with `with`: none is left running."""

    def __init__(self, folder: Path, *, key: str = "") -> None:
        self._program = require_program("serf", apt="serf")
        self._folder = folder
        self._key = key
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._gossip: dict[str, int] = {}
        self.rpc: dict[str, Address] = {}
        """Where each takes commands."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._processes):
            self.kill(name)

    def start(self, name: str, tags: Mapping[str, str]) -> Address:
        """Start an agent, let it join the others, and return where it takes commands."""
        port, rpc_port = _free_ports()
        config = self._folder / f"serf-{name}.json"
        config.write_text(json.dumps({"rpc_auth": self._key, "tags": dict(tags)}))
        others = [f"-retry-join={HOST}:{one}" for one in self._gossip.values()]
        log = self._folder / f"serf-{name}.log"
        with log.open("ab") as written:
            self._processes[name] = subprocess.Popen(
                [
                    self._program,
                    "agent",
                    f"-config-file={config}",
                    f"-node={name}",
                    f"-bind={HOST}:{port}",
                    f"-rpc-addr={HOST}:{rpc_port}",
                    "-profile=local",
                    "-retry-interval=1s",
                    *others,
                ],
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=written,
            )
        self._gossip[name], self.rpc[name] = port, Address(HOST, rpc_port)
        self._wait(name, log)
        return self.rpc[name]

    def kill(self, name: str) -> None:
        """End an agent without a word; the others find out by themselves."""
        process = self._processes.pop(name)
        self._gossip.pop(name, None)
        process.kill()
        process.wait()

    def leave(self, name: str) -> None:
        """Let an agent say good-bye; the others know at once, and it is gone."""
        self._command("leave", name)
        self.kill(name)

    def retag(self, name: str, **tags: str) -> None:
        """Change tags of a running agent."""
        self._command("tags", name, *(f"-set={key}={value}" for key, value in tags.items()))

    def _command(self, word: str, name: str, *arguments: str) -> None:
        rpc = [f"-rpc-addr={self.rpc[name]}", *([f"-rpc-auth={self._key}"] if self._key else [])]
        subprocess.run(
            [self._program, word, *rpc, *arguments], check=True, capture_output=True, timeout=60
        )

    def _wait(self, name: str, log: Path) -> None:
        deadline = time.monotonic() + STARTED_S
        while True:
            try:
                socket.create_connection(self.rpc[name], timeout=1).close()
            except OSError:
                assert self._processes[name].poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.01)
            else:
                return


def _free_ports() -> tuple[int, int]:
    """Return two ports that were free a moment ago, the first for TCP and UDP."""
    with socket.socket() as one, socket.socket() as other:
        one.bind((HOST, 0))
        other.bind((HOST, 0))
        return one.getsockname()[1], other.getsockname()[1]
