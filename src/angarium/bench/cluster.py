"""A cluster of its own for a benchmark: node processes over a folder that goes away afterwards.

Nodes are started as anybody would start them (`angarium serve`), die with this process whatever
happens to it, and keep their data where the caller says.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.api import ClusterStatus
from angarium.errors import AngariumError
from angarium.security.tls import client_tls
from angarium.wire import Hello, Role, Unreachable, dial
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

HOST: Final = "127.0.0.1"

QUIET_PORTS: Final = (20_000, 32_000)
"""Nobody is given one of these without asking for it."""

START_SECONDS_MAX: Final = 180.0
"""A cluster that is not whole by then is given up, with the end of its nodes' logs."""

_RESERVED: Final[list[ExitStack]] = []
"""The sockets that keep reserved ports, until this process ends."""

STOP_SECONDS_MAX: Final = 10.0
"""Nodes that have not stopped by then are killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchNode:
    """One node under load."""

    wire: str
    """HOST:PORT"""
    grpc: str
    http: str
    pid: int
    data: Path


class BenchCluster:
    """Nodes on this machine, from `start` (or `async with`) to `stop`."""

    def __init__(
        self,
        folder: Path,
        *,
        nodes: int = 3,
        interpreter: Sequence[str] = (sys.executable,),
        environments: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Prepare; `environments` has, node by node, what else its environment says."""
        self._environments = environments
        self.nodes: list[BenchNode] = []
        self._folder = folder
        self._count = nodes
        self._interpreter = tuple(interpreter)
        """With what to run the nodes; a profiler goes here."""
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def servers(self) -> str:
        """All wire addresses, as `--servers` takes them."""
        return ",".join(node.wire for node in self.nodes)

    async def __aenter__(self) -> BenchCluster:
        try:
            await self.start()
        except BaseException:
            await asyncio.to_thread(self.stop)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)

    async def start(self) -> None:
        """Start the nodes, and return when all of them see each other."""
        ports = free_ports(3 * self._count)
        for number in range(self._count):
            self._start_node(number + 1, *ports[3 * number : 3 * number + 3])
            if number == 0:
                # Only a member can let others in.
                await self._until_members(1)
        await self._until_members(self._count)

    def stop(self) -> None:
        """Stop every node; those that take too long are killed. Returns when all are gone."""
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def _start_node(self, number: int, wire_port: int, grpc_port: int, http_port: int) -> None:
        data = self._folder / f"node-{number}"
        entry = ["--join", self.nodes[0].wire] if self.nodes else ["--form"]
        command = [*self._interpreter, "-m", "angarium", "serve", "--data", str(data), *entry]
        command += ["--wire-port", str(wire_port), "--grpc-port", str(grpc_port)]
        command += ["--http-port", str(http_port)]
        command += ["--log-level", "WARNING", "--parent", str(os.getpid())]
        self._folder.mkdir(parents=True, exist_ok=True)
        own = self._environments[number - 1] if self._environments else {}
        with self._log(number).open("ab") as log:
            process = subprocess.Popen(  # noqa: S603  (our own command)
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **own},
                process_group=0,
            )
        self._processes.append(process)
        self.nodes.append(
            BenchNode(
                wire=f"{HOST}:{wire_port}",
                grpc=f"{HOST}:{grpc_port}",
                http=f"{HOST}:{http_port}",
                pid=process.pid,
                data=data,
            )
        )

    async def _until_members(self, count: int) -> None:
        """Wait until every node started so far counts `count` members and hears all of them."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + START_SECONDS_MAX
        waiting = list(self.nodes)
        while waiting:
            waiting = [node for node in waiting if not await _sees(node, count)]
            if waiting and (loop.time() > deadline or self._has_ended()):
                raise Unreachable(f"the cluster did not come up:\n{self.last_words()}")
            await asyncio.sleep(0.05)

    def _has_ended(self) -> bool:
        return any(process.poll() is not None for process in self._processes)

    def last_words(self) -> str:
        """Return the end of each node's log, to see what went wrong."""
        lines: list[str] = []
        for number in range(1, len(self.nodes) + 1):
            said = self._log(number).read_text(encoding="utf-8", errors="replace").splitlines()
            lines += [f"node {number}: {line}" for line in said[-5:]]
        return "\n".join(lines)

    def _log(self, number: int) -> Path:
        return self._folder / f"node-{number}.log"


def free_ports(count: int) -> list[int]:
    """Return so many ports of this machine that no other caller is given while this process lives.

    They lie below those that the kernel gives to outgoing connections: one of those would be taken
    again by whoever connects somewhere before a node has come to listen there.
    """
    ports: list[int] = []
    while len(ports) < count:
        port = random.randrange(*QUIET_PORTS)
        if reserve_ports([port]):
            ports.append(port)
    return ports


def reserve_ports(ports: Sequence[int]) -> bool:
    """Keep all of `ports` from other callers while this process lives; tell whether they were free.

    Each is bound by a socket that does not listen. That refuses the port to everybody who asks for
    it alone, here and in other processes, and leaves it to a listener that shares its address, as
    every listener of a node does. A port that is only looked at could be given away twice before
    the first node listens on it.
    """
    with ExitStack() as giving_up:
        for port in ports:
            held = giving_up.enter_context(socket.socket())
            try:
                held.bind((HOST, port))
            except OSError:
                return False
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _RESERVED.append(giving_up.pop_all())
    return True


async def status_of(wire: str, *, timeout_s: float = 2.0) -> ClusterStatus:
    """Return the cluster as one node sees it; raises `AngariumError` if it does not say."""
    host, _, port = wire.rpartition(":")
    connection = await dial(
        host=host,
        port=int(port),
        hello=Hello(role=Role.CLIENT),
        timeout_s=timeout_s,
        tls=client_tls(),
    )
    try:
        answer = await connection.request(Operation.CLUSTER_STATUS, timeout_s=timeout_s)
        return answer.read(ClusterStatus)
    finally:
        await connection.close(timeout_s=1.0)


async def _sees(node: BenchNode, count: int) -> bool:
    try:
        status = await status_of(node.wire)
    except AngariumError:
        return False
    alive = sum(one.alive for one in status.nodes)
    return status.catalog_leader is not None and alive == len(status.nodes) == count
