"""`angarium serve`: one node as a process, and what it refuses to do."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING

from tests.cluster.command_line import COMMAND, angarium, environment, eventually, free_port_base

if TYPE_CHECKING:
    from pathlib import Path


def test_a_node_serves_switches_its_log_level_and_stops_on_sigterm(tmp_path: Path) -> None:
    port = free_port_base()
    words = [
        "serve",
        "--form",
        "--data",
        "data",
        "--wire-port",
        str(port),
        "--grpc-port",
        str(port + 1),
        "--http-port",
        str(port + 2),
    ]
    log = tmp_path / "log"
    servers = ("--servers", f"127.0.0.1:{port}")
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [*COMMAND, *words], cwd=tmp_path, env=environment(), stderr=stderr
        ) as node,
    ):
        try:
            eventually(lambda: '"serving"' in log.read_text(), seconds=60)
            eventually(lambda: angarium(tmp_path, "pub", "t", "x", *servers, status=None).stdout)
            assert "x" in angarium(tmp_path, "fetch", "t", "0", "0", *servers).stdout
            node.send_signal(signal.SIGUSR2)
            eventually(lambda: '"level":"DEBUG"' in log.read_text())
            node.terminate()
            assert node.wait(timeout=120) == 0
        finally:
            node.kill()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines[-1]["message"] == "stopped"


def test_a_node_that_comes_back_at_another_address_is_found_again(tmp_path: Path) -> None:
    base = free_port_base()
    members = [f"127.0.0.1:{base + 10 * number}" for number in range(3)]
    join = ",".join(members)

    def start(number: int, port: int, *words: str) -> subprocess.Popen[bytes]:
        doors = ["--wire-port", str(port), "--grpc-port", str(port + 1)]
        doors += ["--http-port", str(port + 2)]
        with (tmp_path / f"{number}.log").open("ab") as log:
            return subprocess.Popen(
                [*COMMAND, "serve", "--data", f"node-{number}", *doors, *words],
                cwd=tmp_path,
                env=environment(),
                stderr=log,
            )

    def alive() -> list[str]:
        done = angarium(
            tmp_path, "cluster", "status", "--servers", members[0], "--format", "json", status=None
        )
        nodes = json.loads(done.stdout)["nodes"] if done.returncode == 0 else []
        return [node["addresses"]["wire"] for node in nodes if node["alive"]]

    nodes = [start(0, base, "--form")]
    try:
        eventually(lambda: alive() == members[:1], seconds=60)
        nodes.append(start(1, base + 10, "--join", join))
        eventually(lambda: alive() == members[:2], seconds=60)
        nodes.append(start(2, base + 20, "--join", join))
        eventually(lambda: alive() == members, seconds=60)
        nodes[2].kill()
        nodes[2].wait()
        nodes[2] = start(2, base + 25, "--join", join)
        eventually(lambda: alive() == [*members[:2], f"127.0.0.1:{base + 25}"], seconds=60)
    finally:
        for node in nodes:
            node.terminate()
        for node in nodes:
            node.wait(timeout=120)


def test_an_open_listener_is_refused_because_there_is_no_authentication(tmp_path: Path) -> None:
    refused = angarium(tmp_path, "serve", "--form", "--listen", "0.0.0.0", status=2)
    assert "authentication is off" in refused.stderr
    assert "--authentication required" in refused.stderr
    assert "--insecure" in refused.stderr
    assert not list(tmp_path.iterdir())


def test_check_shows_the_settings_and_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text("[listen]\nwire_port = 1234\n", encoding="utf-8")
    assert "1234" in angarium(tmp_path, "serve", "--config", "node.toml", "--check").stdout
    (tmp_path / "node.toml").write_text("[listen]\nwire = 1\n", encoding="utf-8")
    refused = angarium(tmp_path, "serve", "--config", "node.toml", "--check", status=2)
    assert "node.toml, line 2: listen.wire: there is no such setting" in refused.stderr


def test_nobody_there_is_told_with_what_to_do(tmp_path: Path) -> None:
    servers = f"127.0.0.1:{free_port_base()}"
    failed = angarium(tmp_path, "topic", "list", "--servers", servers, "--timeout", "2", status=5)
    assert "angarium up" in failed.stderr
