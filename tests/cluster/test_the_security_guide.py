"""The commands of the security guide, as they stand there: three machines, and all that rotates.

The machines are folders, and addresses of this one. `scp` and `ssh` are programs of ours that copy
there and run there; names of hosts and ports are the test's own. Everything else is as printed.
"""

from __future__ import annotations

import http.client
import os
import re
import shlex
import ssl
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.command_line import READY_SECONDS, environment, eventually, free_port_base

from angarium.doors.status import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "security.md"
DOORS = ("wire", "grpc", "http")

SHIMS = {
    "angarium": f'exec {shlex.quote(sys.executable)} -m angarium "$@"',
    # The last word is HOST:/PATH.
    "scp": 'to="${@: -1}"; set -- "${@:1:$#-1}"; shift\n'
    'exec cp -p "$@" "$MACHINES/${to%%:*}${to#*:}"',
    # A word that begins with / is a path on the machine.
    "ssh": 'on="$MACHINES/$1"; shift; words=()\n'
    'for one in "$@"; do case "$one" in /*) one="$on$one";; esac; words+=("$one"); done\n'
    'exec "${words[@]}"',
}


def blocks(heading: str) -> list[str]:
    """Return what a section has for the shell."""
    section = GUIDE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    section = section.partition("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


class Machines:
    """Node 1 to 3, a gateway, and the machine of who administrates them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own = folder / "own"
        self.own.mkdir()
        self.base = free_port_base()
        programs = folder / "bin"
        programs.mkdir()
        for name, script in SHIMS.items():
            (programs / name).write_text(f"#!/bin/bash\nset -e\n{script}\n")
            (programs / name).chmod(0o700)
        for name in ("node-1", "node-2", "node-3", "gateway"):
            for kept in ("etc", "var/lib"):
                (self._machine(name) / kept / "angarium").mkdir(parents=True, mode=0o700)
        ports = {
            f"ANGARIUM_LISTEN_{door.upper()}_PORT": str(self.base + number)
            for number, door in enumerate(DOORS)
        }
        self._environment = environment() | {
            "MACHINES": str(folder),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            **ports,
        }

    def _machine(self, name: str) -> Path:
        return self.folder / f"{name}.example.org"

    def _with_real_addresses(self, text: str) -> str:
        text = re.sub(r"node-(\d)\.example\.org:7400", rf"127.0.0.\1:{self.base}", text)
        text = re.sub(r'host = "node-(\d)\.example\.org"', r'host = "127.0.0.\1"', text)
        text = re.sub(r"\b10\.0\.0\.(\d)", r"127.0.0.\1", text)
        return text.replace("7402", str(self.gateway_port))

    @property
    def gateway_port(self) -> int:
        return self.base + 9

    def run(self, block: str) -> str:
        """Run commands on one's own machine, in the shell of those before; return what they say."""
        kept = "[ ! -f ../shell ] || . ../shell\n"
        script = f"set -e\n{kept}{self._with_real_addresses(block)}\nexport -p > ../shell\n"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.own,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _there(self, name: str, block: str) -> str:
        for path in ("/etc/angarium", "/var/lib/angarium"):
            block = block.replace(path, f"{self._machine(name)}{path}")
        return self._with_real_addresses(block)

    def run_on(self, name: str, block: str) -> None:
        """Run commands on another machine."""
        script = f"set -e\n{self._there(name, block)}"
        subprocess.run(["bash", "-c", script], env=self._environment, timeout=120, check=True)

    @contextmanager
    def serving(self, name: str, block: str) -> Iterator[None]:
        """Run a command there that serves until it is told to stop."""
        log = self.folder / f"{name}.log"
        with (
            log.open("ab") as written,
            subprocess.Popen(
                # Its last command takes the shell's place, and its signals.
                ["bash", "-c", self._there(name, block).replace("angarium ", "exec angarium ", 1)]
                if not block.startswith("ANGARIUM_")
                else ["bash", "-c", "exec env " + self._there(name, block)],
                env=self._environment,
                stdout=written,
                stderr=written,
            ) as process,
        ):
            try:
                yield
                assert process.poll() is None, log.read_text()[-2_000:]
                process.terminate()
                assert process.wait(timeout=120) == 0, log.read_text()[-2_000:]
            finally:
                process.kill()

    def reloads(self, name: str) -> int:
        """Return how often somebody has taken new files."""
        return (self.folder / f"{name}.log").read_text().count("took new certificates")

    def shown_by(self, name: str) -> str:
        """Return the certificate that a node or the gateway shows now."""
        is_gateway = name == "gateway"
        host = "127.0.0.1" if is_gateway else f"127.0.0.{name[-1]}"
        port = self.gateway_port if is_gateway else self.base + DOORS.index("http")
        return ssl.get_server_certificate((host, port), timeout=60)


LISTENING = {"node-1": "nodes", "node-2": "nodes", "node-3": "nodes", "gateway": "gateways"}


def rotate(machines: Machines) -> None:
    """Do what the guide says about rotating, and wait between the steps as it says."""
    passwords, certificates, both, anew, one = blocks("Rotate everything")
    machines.run(passwords)
    for number, step in enumerate((certificates, both, anew, one)):
        before = {name: machines.reloads(name) for name in LISTENING}
        machines.run(step)
        for name, kind in LISTENING.items():
            if number in (0, 2):
                new = (machines.own / "tls" / kind / f"{name}.crt").read_text()
                eventually(lambda who=name, new=new: machines.shown_by(who) == new)  # type: ignore[misc]
            elif name != "gateway":  # which asks nobody for a certificate, and has no such file
                eventually(lambda who=name, was=before[name]: machines.reloads(who) > was)  # type: ignore[misc]
        assert "admin" in machines.run("angarium whoami")


def status_of(machines: Machines, path: str, header: str | None = None) -> int:
    """Ask the gateway something, as somebody who believes the cluster's authority."""
    context = ssl.create_default_context(cafile=str(machines.own / "tls" / "ca.crt"))
    connection = http.client.HTTPSConnection(
        "127.0.0.1", machines.gateway_port, context=context, timeout=60
    )
    try:
        connection.request("GET", path, headers={} if header is None else {"Authorization": header})
        return connection.getresponse().status
    finally:
        connection.close()


def test_three_machines_are_made_secure_and_everything_on_them_is_rotated(tmp_path: Path) -> None:
    machines = Machines(tmp_path)
    steps = blocks("A checklist for three machines")
    make, configure, form, admin, invite, join, came_in, users, audit, copy, gateway = steps
    machines.run(make)
    for n in "123":
        own = configure.replace("node-1", f"node-{n}").replace("10.0.0.1", f"10.0.0.{n}")
        machines.run_on(f"node-{n}", own)
    key = tmp_path / "node-1.example.org" / "etc" / "angarium" / "node-1.key"
    assert key.stat().st_mode & 0o777 == 0o600
    with ExitStack() as running:
        running.enter_context(machines.serving("node-1", form))
        told = tmp_path / "node-1.example.org" / "var" / "lib" / "angarium" / "first-administrator"
        eventually(told.exists, seconds=READY_SECONDS)
        first = told.read_text().strip()
        assert "admin" in machines.run(admin)
        assert not told.exists()
        for n in "23":
            machines.run(invite.replace("node-2", f"node-{n}"))
            running.enter_context(machines.serving(f"node-{n}", join))
            eventually(
                lambda n=n: f"{n} of {n} alive" in machines.run("angarium cluster status"),  # type: ignore[misc]
                seconds=2 * READY_SECONDS,
            )
        assert "used by node 3" in machines.run(came_in)
        assert "yes" in machines.run(users).lower()
        assert "all is sound" in machines.run(audit)
        machines.run(copy)
        running.enter_context(machines.serving("gateway", gateway))
        eventually(lambda: "reached the cluster" in (tmp_path / "gateway.log").read_text())
        token = (machines.own / "checkout.token").read_text().strip()
        assert status_of(machines, "/v1/whoami") == 401
        assert status_of(machines, "/v1/whoami", f"Bearer {token}") == 200

        old_authority = (machines.own / "tls" / "ca.crt").read_text()
        rotate(machines)
        # What was is good for nothing any more.
        eventually(lambda: status_of(machines, "/v1/whoami", f"Bearer {token}") == 401)
        token = (machines.own / "checkout.token").read_text().strip()
        eventually(lambda: status_of(machines, "/v1/whoami", f"Bearer {token}") == 200)
        machines.run(f"! ANGARIUM_PASSWORD={shlex.quote(first)} angarium whoami")
        (machines.own / "old.crt").write_text(old_authority)
        asked = "code=0; ANGARIUM_TLS_CA=old.crt angarium whoami >&2 || code=$?; echo $code"
        assert int(machines.run(asked)) != Exit.OK
