"""Three nodes in processes of their own that ask who somebody is, and record what they do."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tests.cluster.command_line import COMMAND, READY_SECONDS, environment, free_port_base, ran

from angarium.app.invitations import are_pending, invite
from angarium.client import Client, ClientSettings
from angarium.errors import AngariumError, Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ADMIN: Final = ("admin", "a long password")
DAMAGED: Final = 8
"""How `angarium audit verify` ends where something is wrong."""


class AuditedNodes:
    """Nodes 1 to 3, with every door open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base = free_port_base()
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def port(self, node: int, door: str = "wire") -> int:
        return self.base + 10 * (node - 1) + ("wire", "grpc", "http").index(door)

    def address(self, node: int, door: str = "wire") -> str:
        return f"127.0.0.1:{self.port(node, door)}"

    def start(self, node: int) -> None:
        ports = [
            word
            for door in ("wire", "grpc", "http")
            for word in (f"--{door}-port", str(self.port(node, door)))
        ]
        entry = ["--form"]
        if node > 1:
            token = str(self._invitation(node))
            entry = [f"--join={self.address(1)}", "--join-token-file", token]
        command = [*COMMAND, "serve", "--data", f"node-{node}", *entry, *ports]
        with (self.folder / f"{node}.log").open("ab") as log:
            self._running[node] = subprocess.Popen(
                [*command, "--authentication", "required"],
                cwd=self.folder,
                env=environment()
                | {"ANGARIUM_ADMIN_PASSWORD": ADMIN[1], "ANGARIUM_SECURITY_TRUST_PEERS": "true"},
                stdout=log,
                stderr=log,
            )

    def start_all(self) -> None:
        """Start the first, which lets the others in, and then those."""
        host = self.folder / "node-1"
        invite(host, [self._invitation(2), self._invitation(3)])
        self.start(1)
        deadline = time.monotonic() + READY_SECONDS
        while are_pending(host):
            assert time.monotonic() < deadline, "nobody was invited"
            time.sleep(0.05)
        self.start(2)
        self.start(3)

    def _invitation(self, node: int) -> Path:
        return self.folder / f"node-{node}.join-token"

    def kill(self, node: int) -> None:
        process = self._running.pop(node)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)

    def end(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait(timeout=60)

    def client(self, *nodes: int, user: tuple[str, str] = ADMIN, **settings: Any) -> Client:
        """Return a client of some nodes, which waits as long as a busy machine may take."""
        chosen = {"request_timeout_s": 60.0, "publish_timeout_s": 60.0} | settings
        return Client(
            *(self.address(one) for one in nodes or (1, 2, 3)),
            user=user[0],
            password=user[1],
            settings=ClientSettings(**chosen),
        )

    async def ready(self) -> None:
        """Return when all three are members, and the audit records are on all of them."""
        async with asyncio.timeout(3 * READY_SECONDS):
            while True:
                try:
                    async with self.client(1) as admin:
                        info = await admin.describe_topic("angarium.audit")
                        if len(info.partitions[0].replicas) == 3:
                            return
                except AngariumError:
                    pass
                await asyncio.sleep(0.2)

    async def have_heard_of(self, user: tuple[str, str]) -> None:
        """Return when every node lets somebody in who was just made."""
        async with asyncio.timeout(READY_SECONDS):
            for node in (1, 2, 3):
                while True:
                    try:
                        async with self.client(node, user=user):
                            break
                    except Unauthenticated:
                        await asyncio.sleep(0.1)

    async def angarium(self, *words: str, status: int = 0) -> str:
        """Run a command as the administrator; return what it prints."""
        return await asyncio.to_thread(self._angarium, *words, status=status)

    def _angarium(self, *words: str, status: int) -> str:
        who = {"ANGARIUM_USER": ADMIN[0], "ANGARIUM_PASSWORD": ADMIN[1]}
        servers = ",".join(self.address(one) for one in (1, 2, 3))
        done = ran(self.folder, *words, "--timeout", "60", ANGARIUM_SERVERS=servers, **who)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout


@contextmanager
def audited_nodes(folder: Path) -> Iterator[AuditedNodes]:
    """Start three nodes; they are gone when the block ends, however it ends."""
    nodes = AuditedNodes(folder)
    try:
        nodes.start_all()
        yield nodes
    finally:
        nodes.end()
