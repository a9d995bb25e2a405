"""One node with authentication and every door, in a process of its own, and its administrator."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.command_line import COMMAND, environment, eventually, free_port_base

if TYPE_CHECKING:
    from collections.abc import Iterator

ADMIN = "the first password"
PASSWORD = "a good password"


class SecuredNode:
    """Where its doors are, and its process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        base = free_port_base()
        self.wire, self.grpc, self.http, self.gateway = base, base + 1, base + 2, base + 3
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.wire}"

    @property
    def memory_bytes(self) -> int:
        """What the node has in memory now."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [one for one in status.splitlines() if one.startswith("VmRSS")]
        return int(line.split()[1]) * 1_024

    @contextmanager
    def running(self) -> Iterator[None]:
        ports = ("--wire-port", str(self.wire), "--grpc-port", str(self.grpc))
        command = [*COMMAND, "serve", "--data", "data", "--form", *ports]
        command += ["--http-port", str(self.http), "--authentication", "required"]
        with self._started("node.log", command) as process:
            self.process = process
            yield

    @contextmanager
    def with_gateway(self) -> Iterator[None]:
        command = [*COMMAND, "gateway", "--servers", self.address, "--port"]
        with self._started("gateway.log", [*command, str(self.gateway)]):
            eventually(lambda: "listening" in (self.folder / "gateway.log").read_text())
            yield

    @contextmanager
    def _started(self, log: str, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
        with (
            (self.folder / log).open("ab") as written,
            subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment() | {"ANGARIUM_ADMIN_PASSWORD": ADMIN},
                stdout=written,
                stderr=written,
            ) as process,
        ):
            try:
                yield process
                process.terminate()
                assert process.wait(timeout=120) == 0
            finally:
                process.kill()
