"""`angarium up --secure`: the first five minutes of the README, with TLS and authentication."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.command_line import COMMAND, Up, angarium, environment, eventually, is_alive

README = Path(__file__).parents[2] / "README.md"
READY = "Try next, in another terminal:"
DENIED = 10
SECURE = ("--secure",)


def in_python(folder: Path, program: str) -> str:
    """Run a program in a folder; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def first_port(folder: Path) -> int:
    state = json.loads((folder / ".angarium" / "up.json").read_bytes())
    return int(state["nodes"][0]["wire_port"])


def the_readmes_program(port: int) -> str:
    """Return the README's first program; only the port is the test's own."""
    [program, *_] = re.findall(
        r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL
    )
    assert 'Client("127.0.0.1:7400")' in program
    return str(program).replace("7400", str(port))


def modes(folder: Path) -> dict[str, int]:
    """Return the modes of all files with secrets."""
    found = [folder / "credentials", folder / "profiles.toml", folder / "curl.conf"]
    found += (folder / "tls").iterdir()
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in found}


def test_the_first_five_minutes_work_unchanged_and_strangers_stay_out(tmp_path: Path) -> None:
    local = tmp_path / ".angarium"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with Up(tmp_path, more=SECURE) as up:
        up.wait_for(READY)
        port, pids = first_port(tmp_path), up.pids
        assert set(modes(local).values()) == {0o600}
        assert not (local / "first-password").exists()
        assert " consistent" in angarium(tmp_path, "pub", "demo", "hello, world").stdout
        said = angarium(tmp_path, "sub", "demo", "--no-follow", "--format", "raw").stdout
        assert said == "hello, world\n"
        eventually(lambda: "3 of 3 alive" in angarium(tmp_path, "cluster", "status").stdout)
        assert "admin" in angarium(tmp_path, "whoami").stdout
        assert "from Python" in in_python(tmp_path, the_readmes_program(port))

        # From anywhere else nobody is anybody, whether they speak TLS or not.
        address = f"127.0.0.1:{port}"
        plain = angarium(elsewhere, "--servers", address, "topic", "list", status=None)
        assert plain.returncode != 0
        assert "TLS" in plain.stderr
        believing = environment() | {"ANGARIUM_TLS_CA": str(local / "tls" / "ca.crt")}
        nobody = subprocess.run(
            [*COMMAND, "--servers", address, "topic", "list"],
            cwd=tmp_path,  # even here: who says something about TLS says all of it
            env=believing,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert nobody.returncode == DENIED
        assert "wants to know who asks" in nobody.stderr
        # The profile works from there, for who may read it.
        named = environment() | {"ANGARIUM_PROFILES": str(local / "profiles.toml")}
        subprocess.run([*COMMAND, "whoami"], cwd=elsewhere, env=named, timeout=120, check=True)

        os.kill(pids[1], signal.SIGKILL)
        up.wait_for("killed by SIGKILL")
        angarium(tmp_path, "pub", "demo", "after")
        angarium(tmp_path, "up", "--restart")
        eventually(lambda: len(up.pids) == 3 and up.pids[1] != pids[1])
        pids = up.pids
        stopped = angarium(tmp_path, "up", "--stop")
        assert "Stopped" in stopped.stdout
        assert up.wait() == 0
        assert not any(map(is_alive, pids))

    assert not (local / "profiles.toml").exists()
    assert not (local / "curl.conf").exists()
    kept = {name: (local / name).read_bytes() for name in ("credentials", "tls/ca.crt")}
    # The second time it need not be said: what was secure starts as that, with all it had.
    with Up(tmp_path) as up:
        up.wait_for(READY)
        assert "holds a secure cluster" in up.said()
        values = angarium(tmp_path, "sub", "demo", "--no-follow", "--format", "raw").stdout
        assert sorted(values.split("\n")) == ["", "after", "from Python", "hello, world"]
        assert {name: (local / name).read_bytes() for name in kept} == kept
        password = re.search(rb'password = "(.*)"', kept["credentials"])
        assert password is not None
        logs = b"".join(path.read_bytes() for path in local.glob("*.log"))
        assert password[1] not in logs + up.said().encode()
        for pid in up.pids:
            for told in ("cmdline", "environ"):
                assert password[1] not in Path(f"/proc/{pid}/{told}").read_bytes()


def test_a_plain_cluster_becomes_a_secure_one_and_a_lost_password_is_made_anew(
    tmp_path: Path,
) -> None:
    with Up(tmp_path) as up:
        up.wait_for(READY)
        angarium(tmp_path, "pub", "demo", "before")
    # Its settings are those of `up` itself; whoever edited them is told what is missing.
    edited = tmp_path / ".angarium" / "node-2.toml"
    written = edited.read_text()
    edited.write_text(written + '[log]\nlevel = "DEBUG"\n')
    base = str(first_port(tmp_path))
    refused = angarium(tmp_path, "up", "--secure", "--port-base", base, status=2)
    assert "security.authentication is not there, and has to be 'required'" in refused.stderr
    edited.unlink()
    with Up(tmp_path, more=SECURE) as up:
        up.wait_for(READY)
        assert "before" in angarium(tmp_path, "sub", "demo", "--no-follow").stdout
    credentials = tmp_path / ".angarium" / "credentials"
    before = credentials.read_text()
    credentials.unlink()
    with Up(tmp_path) as up:
        up.wait_for(READY)
        assert credentials.read_text() != before
        assert "admin" in angarium(tmp_path, "whoami").stdout


@pytest.mark.parametrize("profile", ["hermes", "bale", "geo"])
def test_a_secure_cluster_has_no_listeners_for_earlier_clients(
    tmp_path: Path, profile: str
) -> None:
    words = ("up", "--secure", "--compat", profile, "--compat-ports", "own")
    refused = angarium(tmp_path, *words, "--port-base", "24900", status=2)
    assert "clients of earlier brokers speak no TLS" in refused.stderr
    assert not list(tmp_path.glob(".angarium/tls"))
