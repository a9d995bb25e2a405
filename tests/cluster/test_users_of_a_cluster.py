"""A cluster with authentication, as somebody runs it: from the first password to a lost one."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.cluster.command_line import COMMAND, environment, eventually, free_port_base, ran

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOT_FOUND = 3
DENIED = 10
"""How a command ends that was not let in, or not allowed."""


class Cluster:
    """One node in a process of its own, and the command to talk to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port_base()
        self.log = folder / "log"

    @contextmanager
    def running(self, *words: str, **more: str) -> Iterator[None]:
        ports = ("--wire-port", str(self.port), "--grpc-port", "off", "--http-port", "off")
        command = [*COMMAND, "serve", "--data", "data", "--authentication", "required", *ports]
        with (
            self.log.open("ab") as log,
            subprocess.Popen(
                [*command, *words],
                cwd=self.folder,
                env=environment() | more,
                stdout=log,
                stderr=log,
            ) as node,
        ):
            try:
                yield
                node.terminate()
                assert node.wait(timeout=120) == 0
            finally:
                node.kill()

    def angarium(
        self, *words: str, user: str, password: str, stdin: str = "", status: int = 0
    ) -> str:
        """Run a command as somebody; return what it prints."""
        who = {"ANGARIUM_USER": user, "ANGARIUM_PASSWORD": password}
        servers = {"ANGARIUM_SERVERS": f"127.0.0.1:{self.port}"}
        done = ran(self.folder, *words, stdin=stdin, **who, **servers)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr


def test_from_the_first_administrator_to_one_who_was_lost(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    told = tmp_path / "data" / "first-administrator"
    secrets = ["alices-secret", "bosss-new-secret"]
    with cluster.running("--form"):
        eventually(told.exists)
        password = told.read_text().strip()
        secrets.append(password)
        assert stat.S_IMODE(told.stat().st_mode) == 0o600

        def admin(*words: str, stdin: str = "", status: int = 0) -> str:
            return cluster.angarium(
                *words, user="admin", password=password, stdin=stdin, status=status
            )

        def alice(*words: str, status: int = 0) -> str:
            return cluster.angarium(*words, user="alice", password=secrets[0], status=status)

        assert "proved by       password" in admin("whoami")
        admin("topic", "create", "team-a.orders")
        made = admin("user", "create", "alice", "--role", "monitor", stdin=secrets[0] + "\n")
        assert "monitor" in made
        # She sees the topic, and no record of it, until she is granted to.
        assert "team-a.orders" in alice("topic", "list")
        refused = alice("pub", "team-a.orders", "x", status=DENIED)
        assert "'alice' may not topic.publish on topic 'team-a.orders'" in refused
        granted = admin("grant", "create", "user:alice", "topic.publish", "topic:team-a*")
        assert "topic:team-a*" in granted
        alice("pub", "team-a.orders", "x")
        assert "allow topic.publish" in admin("can", "alice", "topic.publish", "team-a.orders")
        assert "no grant" in admin("can", "alice", "topic.read", "team-ab", status=DENIED)
        # A ban of a role wins over what she was given herself.
        admin("role", "create", "quiet")
        admin("grant", "create", "role:quiet", "*", "topic:*", "--deny")
        admin("user", "alter", "alice", "--role", "quiet")
        assert "deny" in admin("can", "alice", "topic.publish", "team-a.orders", status=DENIED)
        assert "there is no topic" in alice("pub", "team-a.orders", "x", status=NOT_FOUND)
        admin("grant", "list")
        assert "deny" in admin("grant", "show", "2")
        assert "no grant 999" in admin("grant", "show", "999", status=NOT_FOUND)
        admin("role", "show", "quiet")
        assert "alice" in admin("user", "show", "alice")
        admin("user", "alter", "alice", "--no-roles")
        token = admin("token", "create", "ci", "--owner", "alice", "--expires", "1d").strip()
        secrets.append(token)
        assert "ci" in admin("token", "list", "--owner", "alice")
        assert token not in admin("--format", "json", "token", "list")
        assert "what its owner may" in admin("token", "show", "ci", "--owner", "alice")
        only = ("--only", "topic.read@topic:team-a*")
        secrets.append(admin("token", "create", "less", "--owner", "alice", *only).strip())
        assert "topic.read  topic:team-a*" in admin("token", "show", "less", "--owner", "alice")
        assert "no token" in admin("token", "show", "less", status=NOT_FOUND)
        rotated = admin("token", "rotate", "ci", "--owner", "alice").strip()
        assert rotated != token
        secrets.append(rotated)
        admin("token", "delete", "ci", "--owner", "alice")
        admin("user", "alter", "alice", "--lock")
        assert "wrong" in alice("whoami", status=DENIED)
        admin("user", "delete", "alice", "--yes")
        assert "admin" in admin("user", "list")
        # The folder is in use: nobody is recovered beside a running node.
        busy = ("user", "recover", "boss", "--data", "data")
        assert "in use" in admin(*busy, stdin=secrets[1] + "\n", status=4)
    cluster.angarium(
        "user", "recover", "boss", "--data", "data", user="", password="", stdin=secrets[1] + "\n"
    )
    recovery = tmp_path / "data" / "recover-administrator"
    assert stat.S_IMODE(recovery.stat().st_mode) == 0o600
    with cluster.running():
        eventually(lambda: not recovery.exists())
        assert "admin" in cluster.angarium("whoami", user="boss", password=secrets[1])
        recorded = ""

        def is_recorded() -> bool:
            nonlocal recorded
            recorded = cluster.angarium("audit", "list", user="boss", password=secrets[1])
            return "recover an administrator user boss" in recorded

        eventually(is_recorded)
        assert "make the first administrator user admin" in recorded
        assert [one for one in secrets if one in recorded] == [], "a secret is in a record"
        checked = cluster.angarium("audit", "verify", user="boss", password=secrets[1])
        assert "all is sound" in checked
    logged = cluster.log.read_text()
    assert [one for one in secrets if one in logged] == [], "a secret is in the log"
    lines = [json.loads(line) for line in logged.splitlines()]
    assert "recovered an administrator" in {one["message"] for one in lines}


def test_the_first_password_may_be_given(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text("from-a-file\n")
    cluster = Cluster(tmp_path)
    with cluster.running("--form", ANGARIUM_SECURITY_ADMIN_PASSWORD_FILE=os.fspath(given)):
        eventually(lambda: "made the first administrator" in cluster.log.read_text())
        cluster.angarium("whoami", user="admin", password="from-a-file")
    assert not (tmp_path / "data" / "first-administrator").exists()
    # It is made once: another password changes nothing.
    with cluster.running("--form", ANGARIUM_ADMIN_PASSWORD="from-the-environment"):
        eventually(lambda: cluster.log.read_text().count('"serving"') == 2)
        cluster.angarium("whoami", user="admin", password="from-a-file")
