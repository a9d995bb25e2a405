"""`angarium serve --processes`: several nodes on a machine, which live and end together.

Two "machines" here are two supervisors with different host labels.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.certificates import Folder
from tests.cluster.command_line import (
    COMMAND,
    READY_SECONDS,
    angarium,
    environment,
    eventually,
    free_port_base,
    is_alive,
)

from angarium.errors import JoinRefused
from angarium.ids import Incarnation, NodeId
from angarium.log import folder_identity
from angarium.log.os_disk import OsDisk
from angarium.security.tls import NodeTls
from angarium.wire import Hello, Role, dial
from angarium.wire.operations import JoinHeader, Operation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Machine:
    """A supervisor with two processes."""

    def __init__(self, folder: Path, name: str, port: int, *entry: str, **more: str) -> None:
        self.servers = f"127.0.0.1:{port}"
        self._log = folder / f"{name}.log"
        names = ("--wire-port", "--grpc-port", "--http-port")
        doors = [word for at, name in enumerate(names) for word in (name, str(port + at))]
        words = ("serve", "--processes", "2", "--host", name, "--data", name, *doors, *entry)
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*COMMAND, *words], cwd=folder, env=environment() | more, stderr=log
            )

    def lines(self, message: str) -> list[dict[str, Any]]:
        """Return what it has logged under a message."""
        text = self._log.read_text(encoding="utf-8")
        whole = [line for line in text.splitlines() if f'"message":"{message}"' in line]
        return [json.loads(line) for line in whole]

    def wait_until_it_runs(self) -> None:
        """Wait until both nodes are members."""
        eventually(self._runs, seconds=READY_SECONDS)

    def _runs(self) -> bool:
        assert self.process.poll() is None, self._log.read_text(encoding="utf-8")
        return bool(self.lines("all processes run"))

    @property
    def pids(self) -> list[int]:
        return [line["pid"] for line in self.lines("process started")]

    def leaves_nobody(self) -> None:
        eventually(lambda: not any(map(is_alive, self.pids)), seconds=30)


@contextmanager
def machine(folder: Path, name: str, port: int, *entry: str, **more: str) -> Iterator[Machine]:
    """Run one until the end of the block, whatever happens in it."""
    running = Machine(folder, name, port, *entry, **more)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()
        running.leaves_nobody()


def two_bases() -> tuple[int, int]:
    """Return ports from which on two machines of two processes have room."""
    return free_port_base(), free_port_base()


def incarnation_of(node: int, folder: Path) -> Incarnation:
    found = [folder_identity.load(OsDisk(one.parent)) for one in folder.glob("*/*/identity")]
    [incarnation] = [one.incarnation for one in found if one is not None and one.node_id == node]
    return incarnation


async def joins_elsewhere(node: int, incarnation: Incarnation, port: int, tls: NodeTls) -> None:
    """Ask to be let in as one of the nodes, with its incarnation and somewhere else."""
    connection = await dial(host="127.0.0.1", port=port, hello=Hello(role=Role.CLIENT), tls=tls)
    try:
        addresses = (("wire", "127.0.0.1:9"),)
        wish = JoinHeader(NodeId(node), incarnation, addresses, "", "", "", 1, 99)
        await connection.request(Operation.JOIN, wish, timeout_s=30.0)
    finally:
        await connection.close()


def test_no_two_replicas_share_a_machine_and_a_stop_leaves_nobody(tmp_path: Path) -> None:
    first, second = two_bases()
    with machine(tmp_path, "a", first, "--form") as a:
        a.wait_until_it_runs()
        with machine(tmp_path, "b", second, "--join", a.servers) as b:
            b.wait_until_it_runs()
            servers = ("--servers", a.servers, "--format", "json")
            wide = ("topic", "create", "wide", "--partitions", "12", "--replication")
            refused = angarium(tmp_path, *wide, "3", *servers, status=None)
            assert refused.returncode != 0, "three replicas do not fit on two machines"
            angarium(tmp_path, *wide, "2", *servers)

            status = json.loads(angarium(tmp_path, "cluster", "status", *servers).stdout)
            host = {node["id"]: node["host"] for node in status["nodes"]}
            assert sorted(host.values()) == ["a", "a", "b", "b"]
            topic = json.loads(angarium(tmp_path, "topic", "describe", "wide", *servers).stdout)
            replicas = [one["replicas"] for one in topic["partitions"]]
            assert all({host[one] for one in pair} == {"a", "b"} for pair in replicas)
            assert {one for pair in replicas for one in pair} == set(host), "all nodes are used"

            angarium(tmp_path, "pub", "wide", "x", "--partition", "7", *servers)
            b.process.terminate()
            assert b.process.wait(timeout=120) == 0
            assert len(b.pids) == 2
            assert not any(map(is_alive, b.pids))
        a.process.send_signal(signal.SIGINT)
        assert a.process.wait(timeout=120) == 0
        assert not any(map(is_alive, a.pids))


def test_a_process_that_dies_ends_its_machine_which_then_comes_back_whole(tmp_path: Path) -> None:
    port = free_port_base()
    with machine(tmp_path, "a", port, "--form") as a:
        a.wait_until_it_runs()
        angarium(tmp_path, "pub", "kept", "x", "--servers", a.servers)
        subprocess.run(["kill", "-9", str(a.pids[1])], check=True)
        assert a.process.wait(timeout=120) == 1
        assert not any(map(is_alive, a.pids))
    with machine(tmp_path, "a", port, "--form") as a:
        a.wait_until_it_runs()
        servers = ("--servers", a.servers)
        eventually(
            lambda: (
                "x" in angarium(tmp_path, "fetch", "kept", "0", "0", *servers, status=None).stdout
            )
        )
        # Not even kill -9 on the supervisor leaves a process behind.
        a.process.kill()
        a.process.wait()
        a.leaves_nobody()
    refused = angarium(tmp_path, "serve", "--data", "a", "--form", status=2)
    assert "start with --processes 2" in refused.stderr


def test_a_secure_machine_is_let_in_by_one_token(tmp_path: Path) -> None:
    """Its first process is invited by somebody, and invites the others itself."""
    certificates = Folder(tmp_path)
    one_pair, two_pair = certificates.node("one"), certificates.node("two")
    secure = {
        "ANGARIUM_TLS_CERTIFICATE": str(one_pair.certificate),
        "ANGARIUM_TLS_PRIVATE_KEY": str(one_pair.key),
        "ANGARIUM_TLS_AUTHORITIES": str(certificates.ca),
        "ANGARIUM_SECURITY_AUTHENTICATION": "required",
        "ANGARIUM_ADMIN_PASSWORD": "a long password",
    }
    of_two = {
        "ANGARIUM_TLS_CERTIFICATE": str(two_pair.certificate),
        "ANGARIUM_TLS_PRIVATE_KEY": str(two_pair.key),
    }
    first, second = two_bases()
    who = {
        "ANGARIUM_TLS_CA": str(certificates.ca),
        "ANGARIUM_USER": "admin",
        "ANGARIUM_PASSWORD": "a long password",
        "ANGARIUM_SERVERS": f"127.0.0.1:{first}",
    }

    def ask(*words: str) -> str:
        done = subprocess.run(
            [*COMMAND, *words], env=environment() | who, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    with machine(tmp_path, "one", first, "--form", **secure) as one:
        one.wait_until_it_runs()
        token = tmp_path / "token"
        token.write_text(ask("cluster", "invite"))
        entry = ("--join", f"127.0.0.1:{first}", "--join-token-file", str(token))
        with machine(tmp_path, "two", second, *entry, **secure | of_two) as two:
            two.wait_until_it_runs()
            status = json.loads(ask("--format", "json", "cluster", "status"))
            assert [node["id"] for node in status["nodes"]] == [1, 2, 3, 4]
            listed = json.loads(ask("--format", "json", "cluster", "invitations"))
            assert [invited["used_by"] for invited in listed] == [2, 3, 4]
            assert not list(tmp_path.glob("*/*.join-token")), "their files are gone"
            assert not list(tmp_path.glob("*/*/join-tokens"))
            # The processes of a machine share its NAME, which no other machine's number has.
            for node, shown in ((1, two_pair), (2, two_pair), (3, one_pair), (4, one_pair)):
                tls = NodeTls(certificates.files(shown))
                moved = joins_elsewhere(node, incarnation_of(node, tmp_path), first, tls)
                with pytest.raises(JoinRefused, match="is bound to the NAME"):
                    asyncio.run(moved)
    # With their data they need nobody's word.
    with machine(tmp_path, "one", first, **secure) as one:
        one.wait_until_it_runs()
